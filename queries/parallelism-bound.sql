-- title: How far the run is from what its dependencies and its lanes allow
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
-- Of dependencies that were lost (`lost_dependencies`) nothing is known: with them, `path_time` and `bound_share` may be larger, and
-- `average_parallelism` smaller.
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH work AS (
  -- Tasks may overlap on a location (requests in flight); it can be busy only once.
  SELECT run, sum(busy_time) AS work_time
  FROM (SELECT run, location, busy(start, finish) AS busy_time FROM working_spans GROUP BY run, location)
  GROUP BY run
), graph AS (
  -- What the runtime does beside the tasks is no part of their graph.
  SELECT run, sum(busy_time) AS graph_time
  FROM (SELECT run, location, busy(start, finish) AS busy_time FROM working_tasks WHERE role IS DISTINCT FROM 'runtime'
    GROUP BY run, location)
  GROUP BY run
), path AS (
  SELECT run, count(*) AS path_steps, max(path_time) AS path_time FROM critical_path() GROUP BY run
), lanes AS (
  SELECT run, count(*) AS lanes FROM working_lanes GROUP BY run
)
SELECT r.run, r.makespan, p.path_steps, p.path_time, round(100.0 * p.path_time / nullif(r.makespan, 0), 1) AS path_percent, g.graph_time, w.work_time, l.lanes, w.work_time / l.lanes AS work_per_lane_time,
  round(1.0 * g.graph_time / nullif(p.path_time, 0), 2) AS average_parallelism,
  round(1.0 * greatest(p.path_time, w.work_time / l.lanes) / nullif(r.makespan, 0), 3) AS bound_share,
  coalesce(d.dependencies, 0) AS lost_dependencies
FROM runs r
JOIN work w ON w.run = r.run
JOIN path p ON p.run = r.run
LEFT JOIN graph g ON g.run = r.run
JOIN lanes l ON l.run = r.run
LEFT JOIN lost_dependencies d ON d.run = r.run
ORDER BY r.run
