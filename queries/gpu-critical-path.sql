-- title: What the end of a run on host and devices really waited for: calls, kernels, copies, launches
-- topic: gpu
-- needs: links.kind=launch
-- chart: stacked x=run y=time color=part
--
-- Work and waiting of a run add up to its makespan. Nothing is trimmed, rounded or left out; time between operators counts.
WITH work AS (
  -- Rows of waits are no work: what they say stands in links.
  SELECT t.*, l.kind = 'stream' AS is_device
  FROM tasks t JOIN locations l ON l.run = t.run AND l.location = t.location
  WHERE t.kind NOT IN ('cuda_sync', 'Trace', 'gpu_user_annotation', 'overhead') AND l.kind <> 'async'
), waits AS (
  SELECT s.run, s.task, s.name, s.location, s.start, max(k.source) FILTER (WHERE k.name = 'call') AS call,
    max(k.source) FILTER (WHERE k.name <> 'call') AS awaited
  FROM tasks s JOIN links k ON k.target = s.task
  WHERE s.kind = 'cuda_sync' AND k.kind = 'sync'
  GROUP BY s.run, s.task, s.name, s.location, s.start
), delayed AS (
  -- `Stream Wait Event` holds up the next work of its stream that is launched after the call.
  SELECT run, location, task, awaited, count(*) FILTER (WHERE awaited IS NULL) OVER (PARTITION BY run, location
    ORDER BY time DESC, task DESC ROWS UNBOUNDED PRECEDING) AS number
  FROM (
    SELECT w.run, w.location, CAST(NULL AS BIGINT) AS task, w.awaited, c.start AS time FROM waits w JOIN tasks c ON c.task = w.call
    WHERE w.name = 'Stream Wait Event' AND w.awaited IS NOT NULL
    UNION ALL
    SELECT d.run, d.location, d.task, NULL, c.start
    FROM links k JOIN tasks c ON c.task = k.source JOIN tasks d ON d.task = k.target
    WHERE k.kind = 'launch')
), held AS (
  SELECT run, awaited AS source, max(task) OVER (PARTITION BY run, location, number) AS target FROM delayed
), chain AS (
  SELECT run, source, target, kind FROM links WHERE kind = 'launch'
  UNION ALL
  SELECT run, awaited, call, 'sync' FROM waits WHERE name <> 'Stream Wait Event'
  UNION ALL
  SELECT run, source, target, 'event' FROM held WHERE source IS NOT NULL
), path AS (
  SELECT * FROM executed_path(work, chain, (SELECT * FROM messages WHERE false))
), steps AS (
  SELECT p.run, p.wait, p.running, p.cause, t.role, t.kind, t.is_device FROM path p JOIN work t ON t.task = p.task
), parts AS (
  SELECT run, CASE WHEN NOT is_device THEN CASE WHEN kind IN ('cuda_runtime', 'cuda_driver') THEN 'calls of the host' ELSE 'host' END
    WHEN role = 'communication' THEN 'communication' WHEN role = 'copy' THEN 'copies' ELSE 'kernels' END AS part, running AS time FROM steps
  UNION ALL
  SELECT run, 'waiting: ' || CASE cause WHEN 'launch' THEN 'launch to start' WHEN 'lane' THEN CASE WHEN is_device THEN 'between kernels of a stream' ELSE 'between spans of a thread' END
    WHEN 'sync' THEN 'device to host' WHEN 'event' THEN 'stream to stream' ELSE 'other' END, wait FROM steps
)
SELECT run, part, sum(time) AS time, count(*) AS steps, round(100.0 * sum(time) / nullif(sum(sum(time)) OVER (PARTITION BY run), 0), 2) AS percent
FROM parts
WHERE time > 0
GROUP BY run, part
ORDER BY run, time DESC, part
