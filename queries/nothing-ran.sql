-- title: The longest stretches during which nothing ran on any location
-- topic: locations
-- needs: tasks.start
-- param limit: BIGINT = 5 -- how many of each run
-- param percent: DOUBLE = 1 -- of the run: shorter stretches are left out
--
-- Between the first start and the last finish. Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication)
-- run nothing and are left out. `wait` is the name of the recorded waits, or of the communication, that fill most of the stretch.
WITH longest AS MATERIALIZED (
  SELECT g.run, g.start, g.finish, g.duration, g.task_before, g.task_after, r.makespan
  FROM gaps((SELECT run, start, finish, task FROM working_spans)) g
  JOIN runs r ON r.run = g.run
  WHERE 100.0 * g.duration >= $percent * r.makespan
  QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.duration DESC, g.start) <= $limit
), waits AS (
  SELECT run, start, first_value(name ORDER BY wait_time DESC, name) AS wait
  FROM (
    SELECT g.run, g.start, o.name, sum(least(coalesce(o.finish, g.finish), g.finish) - greatest(o.start, g.start)) AS wait_time
    FROM longest g JOIN program_tasks o ON o.run = g.run AND o.start < g.finish AND coalesce(o.finish, g.finish) > g.start
    WHERE o.role IN ('wait', 'communication') AND o.name <> ''
    GROUP BY g.run, g.start, o.name
  )
  GROUP BY run, start
)
SELECT g.run, g.start, g.duration, round(100.0 * g.duration / nullif(g.makespan, 0), 1) AS percent_of_run, before.name AS name_before, w.wait, after.name AS name_after
FROM longest g
LEFT JOIN waits w ON w.run = g.run AND w.start = g.start
LEFT JOIN working_tasks before ON before.task = g.task_before
LEFT JOIN working_tasks after ON after.task = g.task_after
ORDER BY g.run, g.duration DESC, g.start
