-- title: The runs side by side: makespan, work, how busy, and speedup over the first run of the same problem size
-- topic: comparison
-- needs: tasks, runs.run_number=1
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH work AS (
  -- Tasks may overlap on a location (requests in flight); it can be busy only once.
  SELECT run, sum(busy_time) AS work_time
  FROM (SELECT run, location, busy(start, finish) AS busy_time FROM working_spans GROUP BY run, location)
  GROUP BY run
), counts AS (
  SELECT run, count(*) AS tasks FROM working_tasks GROUP BY run
), lanes AS (
  SELECT run, count(*) AS lanes FROM working_lanes GROUP BY run
)
SELECT r.run, coalesce(c.tasks, 0) AS tasks, coalesce(l.lanes, 0) AS lanes, r.makespan AS makespan_time, w.work_time,
  round(1.0 * w.work_time / nullif(l.lanes * r.makespan, 0), 3) AS occupancy,
  round(1.0 * first_value(r.makespan) OVER (PARTITION BY r.study, r.argument, r.problem_size ORDER BY r.run_number) / nullif(r.makespan, 0), 3) AS speedup
FROM runs r
LEFT JOIN work w ON w.run = r.run
LEFT JOIN counts c ON c.run = r.run
LEFT JOIN lanes l ON l.run = r.run
ORDER BY r.run_number
