-- title: The longest single pieces of work: tasks by the time of their own, without nested ones and without waiting for the last rank
-- topic: tasks
-- needs: tasks.start
-- param limit: BIGINT = 10 -- how many to show
--
-- Where tasks are nested, the longest ones (longest-tasks) are those that contain everything. `median_time` is that of all tasks of the name and kind.
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- A task that waits inside is several `working_spans`: its own time is that of all of them.
WITH pieces AS (
  SELECT s.task, sum(s.self_time) - coalesce(max(c.wait_time), 0) AS own_time
  FROM self_time(working_spans) s LEFT JOIN collectives c ON c.task = s.task
  WHERE s.self_time IS NOT NULL
  GROUP BY s.task
), longest AS MATERIALIZED (
  SELECT task, own_time FROM pieces ORDER BY own_time DESC, task LIMIT $limit
), usual AS (
  SELECT run, name, kind, CAST(round(median(duration)) AS BIGINT) AS median_time
  FROM program_tasks
  WHERE name IN (SELECT t.name FROM program_tasks t JOIN longest l ON l.task = t.task)
  GROUP BY run, name, kind
)
SELECT t.run, l.task, t.name, t.location, t.start, t.duration, l.own_time, u.median_time
FROM longest l
JOIN program_tasks t ON t.task = l.task
LEFT JOIN usual u ON u.run = t.run AND u.name = t.name AND u.kind = t.kind
ORDER BY l.own_time DESC, l.task
