-- title: HTA's kernel types: time in which exactly these kinds of kernels run together, over all ranks
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=total_time y=kernel_type
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
), ordered AS (
  SELECT run, rank, class, task, start, finish,
    max(finish) OVER (PARTITION BY run, rank, class ORDER BY start, task ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until
  FROM device
  WHERE class <> 'OTHER'
), numbered AS (
  SELECT *, count(*) FILTER (WHERE until IS NULL OR start > until)
    OVER (PARTITION BY run, rank, class ORDER BY start, task ROWS UNBOUNDED PRECEDING) AS stretch
  FROM ordered
), unions AS (
  -- Each class's own union of spans, with a bit for the class.
  SELECT run, rank, CASE class WHEN 'COMPUTATION' THEN 1 WHEN 'COMMUNICATION' THEN 2 ELSE 4 END AS bit,
    min(start) AS start, max(finish) AS finish
  FROM numbered
  GROUP BY run, rank, class, stretch
), edges AS (
  SELECT run, rank, start AS time, bit FROM unions
  UNION ALL
  SELECT run, rank, finish AS time, -bit FROM unions
), sweep AS (
  -- Which classes run from here to the next edge. A span that ends before it starts confuses the bits, as in HTA.
  -- At the same time: computation before communication before memory, and a start before an end. So classes that only touch have a row.
  SELECT run, sum(bit) OVER (in_turn ROWS UNBOUNDED PRECEDING) AS running, lead(time) OVER in_turn - time AS duration
  FROM edges
  WINDOW in_turn AS (PARTITION BY run, rank ORDER BY time, abs(bit), bit DESC)
), totals AS (
  SELECT run, running, sum(duration) AS total_time FROM sweep WHERE running > 0 AND duration IS NOT NULL GROUP BY run, running
)
SELECT run, array_to_string(array_remove_all(make_array(
    CASE WHEN running & 1 > 0 THEN 'COMPUTATION' ELSE '' END, CASE WHEN running & 2 > 0 THEN 'COMMUNICATION' ELSE '' END,
    CASE WHEN running & 4 > 0 THEN 'MEMORY' ELSE '' END), ''), ' overlapping ') AS kernel_type,
  total_time, round(100.0 * total_time / sum(total_time) OVER (PARTITION BY run), 1) AS percent
FROM totals
ORDER BY run, total_time DESC, kernel_type
