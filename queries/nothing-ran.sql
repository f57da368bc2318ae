-- title: The longest stretches during which nothing ran on any location
-- topic: locations
-- needs: tasks.start
-- param limit: BIGINT = 5 -- how many of each run
-- param percent: DOUBLE = 1 -- of the run: shorter stretches are left out
--
-- Between the first start and the last finish. Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication)
-- run nothing and are left out.
SELECT g.run, g.start, g.duration, round(100.0 * g.duration / nullif(r.makespan, 0), 1) AS percent_of_run, before.name AS name_before, after.name AS name_after
FROM gaps((SELECT run, start, finish, task FROM working_spans)) g
JOIN runs r ON r.run = g.run
LEFT JOIN working_tasks before ON before.task = g.task_before
LEFT JOIN working_tasks after ON after.task = g.task_after
WHERE 100.0 * g.duration >= $percent * r.makespan
QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.duration DESC, g.start) <= $limit
ORDER BY g.run, g.duration DESC, g.start
