-- title: HTA's kernel breakdown: total, longest, shortest and mean time of each kernel on each rank
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=total_time y=name
--
WITH ranks AS (
  -- A Kineto file is a rank: that of the directory, else of `distributedInfo`, else 0. So is a process of Nsight Systems.
  SELECT l.run, l.location, coalesce(TRY_CAST(d.process AS BIGINT), json_get_int(r.args, 'distributedInfo', 'rank'), CASE WHEN r.format = 'nsys'
    THEN CAST(dense_rank() OVER (PARTITION BY l.run ORDER BY l.process) AS BIGINT) - 1 END, 0) AS rank,
    -- The file's own time, in ns, at our 0.
    r.origin - coalesce(json_get_int(d.args, 'baseTimeNanoseconds'), 0) AS zero
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
)
SELECT run, class AS kernel_type, name, rank, count(*) AS kernels, sum(finish - start) AS total_time,
  max(finish - start) AS longest_time, min(finish - start) AS shortest_time, avg(finish - start) AS mean_time,
  coalesce(stddev(finish - start), 0) AS deviation_time
FROM device
WHERE class <> 'OTHER'
GROUP BY run, class, name, rank
ORDER BY run, kernel_type, name, rank
