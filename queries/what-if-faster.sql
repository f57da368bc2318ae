-- title: What would be gained if the tasks of a name were faster: the path and the bound before and after
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- param name: TEXT = NULL -- the name; without one, the name with the most time on the critical path
-- param percent: BIGINT = 50 -- the new duration, in percent of the old one
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH work AS (
  -- Tasks may overlap on a location (requests in flight); it can be busy only once.
  SELECT run, sum(busy_time) AS work_time
  FROM (SELECT run, location, busy(start, finish) AS busy_time FROM working_spans GROUP BY run, location)
  GROUP BY run
), chosen AS (
  SELECT coalesce($name, (
    SELECT name FROM critical_path() GROUP BY name ORDER BY sum(duration) DESC, name LIMIT 1)) AS name
), changed AS (
  SELECT t.task, t.duration * $percent / 100 AS duration
  FROM program_tasks t
  JOIN chosen c ON c.name = t.name
  WHERE t.duration IS NOT NULL
), dependencies AS (
  SELECT * FROM links WHERE kind = 'dependency'
), considered AS (
  -- As for the critical path: a long task outside of the graph is no path.
  SELECT * FROM program_tasks
  WHERE task IN (SELECT source FROM dependencies) OR task IN (SELECT target FROM dependencies) OR name IN (SELECT name FROM chosen)
), lanes AS (
  -- Also those that ran nothing: they could.
  SELECT run, CAST(count(*) AS BIGINT) AS lanes FROM working_lanes GROUP BY run
)
SELECT name, run, path_before, path_after, work_before, work_after, lanes,
  path_before + greatest(0, (work_before + lanes - 1) / lanes - path_before) AS bound_before,
  path_after + greatest(0, (work_after + lanes - 1) / lanes - path_after) AS bound_after, changed
FROM (
  SELECT c.name, w.run, w.path_before, w.path_after, k.work_time AS work_before,
    k.work_time - least(k.work_time, w.work_before - w.work_after) AS work_after, n.lanes, w.changed
  FROM what_if(considered, dependencies, changed) w
  JOIN work k ON k.run = w.run
  JOIN lanes n ON n.run = w.run
  CROSS JOIN chosen c
)
ORDER BY run
