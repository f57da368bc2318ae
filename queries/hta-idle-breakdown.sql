-- title: HTA's idle time breakdown: what each stream waits for between its kernels
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: stacked x=stream y=idle_time color=idle_category relative=true
--
WITH ranks AS (
  -- A Kineto file is a rank: that of the directory, else of `distributedInfo`, else 0. So is a process of Nsight Systems.
  SELECT l.run, l.location, coalesce(TRY_CAST(d.process AS BIGINT), json_get_int(r.args, 'distributedInfo', 'rank'), CASE WHEN r.format = 'nsys'
    THEN CAST(dense_rank() OVER (PARTITION BY l.run ORDER BY l.process) AS BIGINT) - 1 END, 0) AS rank,
    -- The file's own time, in ns, at our 0.
    r.origin - coalesce(json_get_int(d.args, 'baseTimeNanoseconds'), 0) AS zero,
    coalesce(d.args->>'first_phase', r.args->>'first_phase') AS first_phase
  FROM program_locations l JOIN runs r ON r.run = l.run
  LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock
  WHERE l.kind <> 'async'
), recorded AS (
  -- Rows kept: spans with a category.
  SELECT r.run, r.rank, r.zero, t.task, t.name, t.kind, t.start, t.finish, r.zero + t.start / (us(1) / 1000) AS start_ns,
    CASE WHEN t.args LIKE '%"stream"%' THEN coalesce(TRY_CAST(t.args->>'stream' AS BIGINT), -1) ELSE -1 END AS stream,
    CASE WHEN t.args LIKE '%"correlation"%' THEN coalesce(json_get_int(t.args, 'correlation'), -1) ELSE -1 END AS correlation
  FROM program_tasks t JOIN ranks r ON r.run = t.run AND r.location = t.location
  WHERE t.kind NOT IN ('', 'Trace') AND t.finish IS NOT NULL
), resolution AS (
  SELECT run, rank, bool_or(start_ns % 1000 <> 0) AS is_broken FROM recorded GROUP BY run, rank
), measured AS (
  -- Rounding: where a `ts` of the file has decimals, every span shrinks to whole microseconds, and a short one ends before it
  -- starts. HTA reads the numbers of the file as doubles, which are coarse for absolute times; so do we here.
  SELECT e.*, start_ns / 1000 + start_ns % 1000 / 1000.0 AS start_us, (e.finish - e.start) / (us(1) / 1000) / 1000.0 AS duration_us,
    (stream >= 0 AND correlation >= 0) OR name IN ('Event Sync', 'Context Sync') AS is_device, is_broken
  FROM recorded e JOIN resolution r ON r.run = e.run AND r.rank = e.rank
), events AS (
  SELECT run, rank, task, name, kind, stream, correlation, is_device,
    CASE WHEN is_broken THEN us(CAST(ceil(start_us) AS BIGINT) - zero / 1000) ELSE start END AS start,
    CASE WHEN is_broken THEN us(CAST(floor(start_us + duration_us) AS BIGINT) - zero / 1000) ELSE finish END AS finish
  FROM measured
), step_names AS (
  SELECT run, count(DISTINCT name) AS steps FROM recorded WHERE name LIKE '%ProfilerStep%' GROUP BY run
), last_steps AS (
  SELECT run, rank, max(start) AS last_step FROM events WHERE name LIKE '%ProfilerStep%' AND NOT is_device GROUP BY run, rank
), trimmed AS (
  -- Trimming: with two or more profiler steps, the host's spans that start before the last one, and what those launched.
  SELECT e.*, coalesce(n.steps, 0) < 2 AS is_whole, e.start < s.last_step AS is_early
  FROM events e LEFT JOIN step_names n ON n.run = e.run LEFT JOIN last_steps s ON s.run = e.run AND s.rank = e.rank
), launches AS (
  SELECT run, rank, correlation FROM trimmed WHERE NOT is_whole AND is_early AND NOT is_device AND correlation >= 0
), device AS (
  -- The device's spans have a stream (waits of `cuda_sync` too); two calls of one correlation make two rows of a kernel.
  SELECT e.run, e.rank, e.task, e.name, e.kind, e.stream, e.correlation, e.start, e.finish, CASE
      WHEN name ~ '^nccl.*Kernel' THEN 'COMMUNICATION' WHEN name ~ '^(Memcpy|Memset|dma)' THEN 'MEMORY'
      WHEN name ~ '^(.*Memcpy|Memset|.*Sync)' THEN 'OTHER' ELSE 'COMPUTATION' END AS class
  FROM trimmed e LEFT JOIN launches l ON l.run = e.run AND l.rank = e.rank AND l.correlation = e.correlation
  WHERE e.stream <> -1 AND (is_whole OR (is_device AND l.correlation IS NOT NULL) OR (NOT is_device AND is_early))
), calls AS (
  -- The last host span of a correlation is the kernel's launch.
  SELECT run, rank, correlation, last_value(start ORDER BY task) AS launch_time
  FROM trimmed
  WHERE NOT is_device AND correlation >= 0 AND (is_whole OR is_early)
  GROUP BY run, rank, correlation
), first_spans AS (
  -- Where no call has the correlation, HTA takes the first event of the file for the launch, if that is a row that it keeps.
  SELECT r.run, r.rank, min(t.task) AS task FROM program_tasks t JOIN ranks r ON r.run = t.run AND r.location = t.location
  WHERE r.first_phase = 'X'
  GROUP BY r.run, r.rank
), first_events AS (
  SELECT e.run, e.rank, e.start FROM trimmed e JOIN first_spans f ON f.run = e.run AND f.rank = e.rank AND f.task = e.task
  WHERE is_whole OR is_early
), ordered AS (
  -- The gap is to the span that started before, not to the latest finish: it can be negative. The first span has none.
  SELECT d.run, d.rank, d.stream, d.start,
    CASE WHEN c.correlation IS NOT NULL THEN c.launch_time WHEN d.correlation >= 0 THEN f.start END AS launch_time,
    lag(d.finish) OVER (PARTITION BY d.run, d.rank, d.stream ORDER BY d.start, d.task) AS previous_finish
  FROM device d
  LEFT JOIN calls c ON c.run = d.run AND c.rank = d.rank AND c.correlation = d.correlation
  LEFT JOIN first_events f ON f.run = d.run AND f.rank = d.rank
  WHERE d.kind IN ('kernel', 'Kernel', 'gpu_memset', 'Memset', 'gpu_memcpy', 'Memcpy', 'mtia_ccp_events')
), gaps AS (
  -- HTA documents its threshold of 30 as nanoseconds and compares it with microseconds.
  SELECT run, rank, stream, start - previous_finish AS gap, CASE
      WHEN launch_time > previous_finish THEN 'host_wait' WHEN start - previous_finish < us(30) THEN 'kernel_wait'
      ELSE 'other' END AS idle_category
  FROM ordered
), totals AS (
  SELECT run, rank, stream, idle_category, coalesce(sum(gap), 0) AS idle_time FROM gaps GROUP BY run, rank, stream, idle_category
)
SELECT run, rank, stream, idle_category, idle_time,
  round(1.0 * idle_time / nullif(sum(idle_time) OVER (PARTITION BY run, rank, stream), 0), 2) AS idle_share
FROM totals
ORDER BY run, rank, stream, idle_category
