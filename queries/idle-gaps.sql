-- title: The longest intervals in which a location ran nothing
-- topic: locations
-- needs: tasks
--
-- From the first start to the last finish of its run, as its makespan, or within the slice: what a location waited for its first task (no
-- `name_before`) and after its last one (no `name_after`) counts too. `wait` is the name of the recorded waits that fill most of it, such as
-- cudaDeviceSynchronize, or of the communication in which other threads of its rank were for half of it or longer, such as gloo:all_reduce. Asynchronous spans, states of threads and
-- transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH longest AS MATERIALIZED (
  SELECT * FROM idle_stretches ORDER BY duration DESC, run, location, start LIMIT 20
), ranks AS (
  SELECT l.run, l.location, coalesce(d.process, l.process, l.location) AS rank
  FROM program_locations l LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock
), waits AS (
  SELECT run, location, start, first_value(name ORDER BY wait_time DESC, name) AS wait
  FROM (
    SELECT g.run, g.location, g.start, t.name, sum(least(coalesce(t.finish, g.finish), g.finish) - greatest(t.start, g.start)) AS wait_time
    FROM longest g JOIN program_tasks t ON t.run = g.run AND t.location = g.location
    WHERE t.role = 'wait' AND t.name <> '' AND t.start < g.finish AND coalesce(t.finish, g.finish) > g.start
    GROUP BY g.run, g.location, g.start, t.name
    UNION ALL
    SELECT g.run, g.location, g.start, c.name, sum(least(c.finish, g.finish) - greatest(c.start, g.start)) AS wait_time
    FROM longest g
    JOIN ranks l ON l.run = g.run AND l.location = g.location
    JOIN (
      SELECT t.run, r.rank, t.name, t.start, t.finish FROM program_tasks t JOIN ranks r ON r.run = t.run AND r.location = t.location
      WHERE t.role = 'communication' AND t.kind IS DISTINCT FROM 'kernel' AND t.name <> ''
    ) c ON c.run = g.run AND c.rank = l.rank
    WHERE c.start < g.finish AND c.finish > g.start
    GROUP BY g.run, g.location, g.start, g.duration, c.name
    HAVING 2 * sum(least(c.finish, g.finish) - greatest(c.start, g.start)) >= g.duration
  )
  GROUP BY run, location, start
)
SELECT g.run, g.location, g.start, g.duration, before.name AS name_before, w.wait, after.name AS name_after
FROM longest g
LEFT JOIN waits w ON w.run = g.run AND w.location = g.location AND w.start = g.start
LEFT JOIN working_tasks before ON before.task = g.task_before
LEFT JOIN working_tasks after ON after.task = g.task_after
ORDER BY g.duration DESC, g.run, g.location, g.start
