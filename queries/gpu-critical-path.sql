-- title: What the end of a run on host and devices really waited for: host, kernels, copies, launches, waits
-- topic: gpu
-- needs: links.kind=launch
-- chart: bar x=total_time y=part color=run
--
-- The executed path over threads and streams, backwards from the last finish. A kernel begins after its launch, the kernel before it
-- on its stream, what its stream was told to wait for, and what ended last on another stream of the device before it; a call that waits ends with the work that it awaits. The parts add up
-- to the makespan of what is recorded; nothing is trimmed or rounded.
WITH work AS MATERIALIZED (
  -- Annotations and rows of waits do no work; what waits say stands in links.
  SELECT t.run, t.task, t.name, t.kind, t.role, t.location, t.start, t.finish, l.kind = 'stream' AS is_device
  FROM path_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE l.kind <> 'async' AND t.finish IS NOT NULL
    AND t.kind NOT IN ('cuda_sync', 'user_annotation', 'gpu_user_annotation', 'nvtx', 'Trace', 'overhead')
), waits AS MATERIALIZED (
  SELECT s.run, s.task, s.name, s.location, s.finish, max(k.source) FILTER (WHERE k.name = 'call') AS call,
    max(k.source) FILTER (WHERE k.name <> 'call') AS awaited
  FROM program_tasks s JOIN links k ON k.run = s.run AND k.target = s.task
  WHERE s.kind = 'cuda_sync' AND k.kind = 'sync'
  GROUP BY s.run, s.task, s.name, s.location, s.finish
), ends AS (
  -- Nsight Systems does not say what a `Stream Sync` waits for: the work of its stream that ended last before it did.
  SELECT run, lane, call, work, count(work) OVER (PARTITION BY run, lane ORDER BY finish, call IS NOT NULL, work ROWS UNBOUNDED PRECEDING) AS number
  FROM (
    SELECT run, replace(location, ' (sync)', '') AS lane, finish, call, CAST(NULL AS BIGINT) AS work
    FROM waits WHERE name = 'Stream Sync' AND awaited IS NULL AND call IS NOT NULL
    UNION ALL
    SELECT run, location, finish, NULL, task FROM work WHERE is_device)
), launches AS (
  SELECT k.run, d.location, d.task, c.start AS launched FROM links k JOIN work c ON c.task = k.source JOIN work d ON d.task = k.target
  WHERE k.kind = 'launch'
), orders AS (
  -- A `Stream Wait Event` holds up what is launched next on its stream.
  SELECT run, location, task, awaited, count(task) OVER (PARTITION BY run, location ORDER BY launched DESC, task DESC ROWS UNBOUNDED PRECEDING) AS number
  FROM (
    SELECT run, location, task, launched, CAST(NULL AS BIGINT) AS awaited FROM launches
    UNION ALL
    SELECT w.run, w.location, NULL, c.start, w.awaited FROM waits w JOIN work c ON c.task = w.call
    WHERE w.name = 'Stream Wait Event' AND w.awaited IS NOT NULL)
), chain AS (
  SELECT run, source, target, kind FROM path_links WHERE kind IN ('launch', 'collective', 'device')
  UNION ALL
  SELECT run, awaited, call, 'sync' FROM waits WHERE name <> 'Stream Wait Event' AND awaited IS NOT NULL AND call IS NOT NULL
  UNION ALL
  SELECT run, source, call, 'sync' FROM (SELECT run, call, max(work) OVER (PARTITION BY run, lane, number) AS source FROM ends)
  WHERE source IS NOT NULL AND call IS NOT NULL
  UNION ALL
  SELECT run, awaited, target, 'event' FROM (SELECT run, awaited, max(task) OVER (PARTITION BY run, location, number) AS target FROM orders)
  WHERE awaited IS NOT NULL AND target IS NOT NULL
), steps AS MATERIALIZED (
  SELECT p.run, p.wait, p.running, p.cause, w.kind, w.role, w.is_device
  FROM executed_path(work, chain, (SELECT * FROM messages WHERE false)) p JOIN work w ON w.task = p.task
), parts AS (
  SELECT run, running AS time, CASE WHEN NOT is_device AND kind IN ('cuda_runtime', 'cuda_driver') THEN 'calls' WHEN NOT is_device THEN 'host'
    WHEN role = 'communication' THEN 'communication' WHEN role = 'copy' THEN 'copies' ELSE 'kernels' END AS part
  FROM steps
  UNION ALL
  SELECT run, wait, CASE cause WHEN 'launch' THEN 'from launch to start' WHEN 'sync' THEN 'from device to host' WHEN 'event' THEN 'from stream to stream' WHEN 'device' THEN 'between kernels'
    WHEN 'lane' THEN CASE WHEN is_device THEN 'between kernels' ELSE 'host, nothing recorded' END ELSE 'other waits' END
  FROM steps
)
SELECT run, part, total_time, steps, round(100.0 * total_time / nullif(sum(total_time) OVER (PARTITION BY run), 0), 2) AS percent
FROM (SELECT run, part, sum(time) AS total_time, count(*) AS steps FROM parts WHERE time > 0 GROUP BY run, part)
ORDER BY sum(total_time) OVER (PARTITION BY part) DESC, part, run
