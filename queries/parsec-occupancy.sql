-- title: How busy the worker threads are with task bodies, from the first body to the last: all ranks and each, the whole and its quarters
-- topic: parsec
-- needs: tasks, locations
-- chart: bar x=occupancy y=label color=run
--
WITH kernels AS (
  SELECT t.run, 'rank' || l.process AS rank, t.start, t.finish
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE t.kind = 'task' AND t.finish IS NOT NULL),
scoped AS (
  SELECT run, 'all' AS scope, start, finish FROM kernels
  UNION ALL SELECT run, rank, start, finish FROM kernels),
workers AS (
  SELECT run, 'all' AS scope, count(*) AS threads FROM program_locations WHERE kind = 'worker' GROUP BY run
  UNION ALL SELECT run, 'rank' || process, count(*) FROM program_locations WHERE kind = 'worker' GROUP BY run, process),
bounds AS (
  SELECT run, scope, min(start) AS t0, max(finish) AS t4,
    min(start) + (max(finish) - min(start)) / 4 AS t1, min(start) + (max(finish) - min(start)) * 2 / 4 AS t2,
    min(start) + (max(finish) - min(start)) * 3 / 4 AS t3
  FROM scoped GROUP BY run, scope),
-- One pass over the tasks gives all quarters; they tile the whole.
quarters AS (
  SELECT s.run, s.scope, b.t0, b.t1, b.t2, b.t3, b.t4,
    sum(greatest(0, least(s.finish, b.t1) - s.start)) AS busy1,
    sum(greatest(0, least(s.finish, b.t2) - greatest(s.start, b.t1))) AS busy2,
    sum(greatest(0, least(s.finish, b.t3) - greatest(s.start, b.t2))) AS busy3,
    sum(greatest(0, s.finish - greatest(s.start, b.t3))) AS busy4
  FROM scoped s JOIN bounds b ON b.run = s.run AND b.scope = s.scope
  GROUP BY s.run, s.scope, b.t0, b.t1, b.t2, b.t3, b.t4),
windows AS (
  SELECT run, scope, "window",
    CASE "window" WHEN 'q2' THEN t1 WHEN 'q3' THEN t2 WHEN 'q4' THEN t3 ELSE t0 END AS window_start_time,
    CASE "window" WHEN 'q1' THEN t1 WHEN 'q2' THEN t2 WHEN 'q3' THEN t3 ELSE t4 END AS window_finish_time,
    CASE "window" WHEN 'q1' THEN busy1 WHEN 'q2' THEN busy2 WHEN 'q3' THEN busy3 WHEN 'q4' THEN busy4
      ELSE busy1 + busy2 + busy3 + busy4 END AS busy_time
  FROM (SELECT *, unnest(make_array('whole', 'q1', 'q2', 'q3', 'q4')) AS "window" FROM quarters))
SELECT w.run, w.scope, w."window", w.scope || ' ' || w."window" AS label, p.threads, w.window_start_time, w.window_finish_time, w.busy_time,
  CAST(w.busy_time AS DOUBLE) / nullif(p.threads * (w.window_finish_time - w.window_start_time), 0) AS occupancy
FROM windows w JOIN workers p ON p.run = w.run AND p.scope = w.scope
ORDER BY length(w.scope), w.scope, w."window" <> 'whole', w."window", w.run
