-- title: The critical path of the task graph, task by task
-- topic: parsec
-- needs: tasks, links
-- chart: gantt
--
-- All executions of a task are one step, from its first start to its last end, at the location of the first one. Different ranks may have
-- tasks with the same id.
WITH executions AS (
  SELECT p.*, t.id
  FROM critical_path((SELECT * FROM program_tasks WHERE kind = 'task'), (SELECT * FROM links WHERE kind = 'dependency')) p
  JOIN program_tasks t ON t.task = p.task)
SELECT run, CAST(row_number() OVER (PARTITION BY run ORDER BY min(step)) AS BIGINT) - 1 AS step, id, min(name) AS name,
  first_value(location ORDER BY step) AS location, min(start) AS start, max(finish) AS finish, sum(duration) AS duration,
  max(path_time) AS path_time
FROM executions
GROUP BY run, id, split_part(location, '/', 1)
ORDER BY run, step
