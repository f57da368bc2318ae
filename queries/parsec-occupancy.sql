-- title: How busy the worker threads are with task bodies: all ranks and each, whole run and quarters
-- topic: parsec
-- needs: tasks, locations
-- chart: bar x=occupancy y=label
--
WITH kernels AS (
  SELECT t.run, 'rank' || l.process AS rank, t.start, t.finish
  FROM tasks t JOIN locations l ON l.run = t.run AND l.location = t.location
  WHERE t.kind = 'task' AND t.finish IS NOT NULL),
scoped AS (
  SELECT run, 'all' AS scope, start, finish FROM kernels
  UNION ALL SELECT run, rank, start, finish FROM kernels),
workers AS (
  SELECT run, 'all' AS scope, count(*) AS threads FROM locations WHERE kind = 'worker' GROUP BY run
  UNION ALL SELECT run, 'rank' || process, count(*) FROM locations WHERE kind = 'worker' GROUP BY run, process),
bounds AS (SELECT run, scope, min(start) AS first_start, max(finish) AS last_finish FROM scoped GROUP BY run, scope),
windows AS (
  SELECT b.run, b.scope, q."window",
    first_start + (last_finish - first_start) * q.from_quarter / 4 AS window_start,
    first_start + (last_finish - first_start) * q.to_quarter / 4 AS window_finish
  FROM bounds b CROSS JOIN (VALUES ('whole', 0, 4), ('q1', 0, 1), ('q2', 1, 2), ('q3', 2, 3), ('q4', 3, 4)) AS q("window", from_quarter, to_quarter)),
sums AS (
  SELECT s.run, s.scope, w."window", w.window_start, w.window_finish,
    sum(greatest(0, least(s.finish, w.window_finish) - greatest(s.start, w.window_start))) AS busy
  FROM scoped s JOIN windows w ON w.run = s.run AND w.scope = s.scope
  GROUP BY s.run, s.scope, w."window", w.window_start, w.window_finish)
SELECT s.run, s.scope, s."window", s.scope || ' ' || s."window" AS label, p.threads, s.window_start, s.window_finish, s.busy,
  CAST(s.busy AS DOUBLE) / nullif(p.threads * (s.window_finish - s.window_start), 0) AS occupancy
FROM sums s JOIN workers p ON p.run = s.run AND p.scope = s.scope
ORDER BY s.run, length(s.scope), s.scope, s."window" <> 'whole', s.window_start
