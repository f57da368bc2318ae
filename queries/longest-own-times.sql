-- title: The longest single pieces of work: tasks by the time of their own, without nested ones and without waiting for the last rank
-- topic: tasks
-- needs: tasks.start
-- param limit: BIGINT = 10 -- how many to show
--
-- Where tasks are nested, the longest ones (longest-tasks) are those that contain everything. `median_time` is that of all tasks of the name and kind.
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH longest AS MATERIALIZED (
  SELECT s.task, s.name, s.location, s.start, s.duration, s.self_time - coalesce(c.wait_time, 0) AS own_time
  FROM self_time(working_spans) s LEFT JOIN collectives c ON c.task = s.task
  WHERE s.self_time IS NOT NULL
  ORDER BY own_time DESC, s.task
  LIMIT $limit
), usual AS (
  SELECT run, name, kind, CAST(round(median(duration)) AS BIGINT) AS median_time
  FROM program_tasks
  WHERE name IN (SELECT name FROM longest)
  GROUP BY run, name, kind
)
SELECT t.run, l.task, l.name, l.location, l.start, l.duration, l.own_time, u.median_time
FROM longest l
JOIN program_tasks t ON t.task = l.task
LEFT JOIN usual u ON u.run = t.run AND u.name = t.name AND u.kind = t.kind
ORDER BY l.own_time DESC, l.task
