-- title: How large a graph of tasks without times is: tasks, names, dependencies, the longest chain, and how many could run at once
-- topic: dependencies
-- needs: tasks, no tasks.start, no executions
--
-- Every task counts as one step: `tasks_per_step` is how many could run at once on average, were all equally long, however many locations there are.
WITH names AS (
  SELECT run, count(*) AS tasks, count(DISTINCT name) AS names FROM program_tasks GROUP BY run
), dependencies AS (
  SELECT run, count(*) AS dependencies FROM links WHERE kind = 'dependency' GROUP BY run
), chains AS (
  SELECT run, count(*) AS steps
  FROM critical_path((SELECT run, task, 1 AS duration FROM program_tasks), (SELECT run, source, target FROM links WHERE kind = 'dependency'))
  GROUP BY run
)
SELECT r.run, n.tasks, n.names, coalesce(d.dependencies, 0) AS dependencies, c.steps AS longest_chain_steps,
  round(1.0 * n.tasks / c.steps, 1) AS tasks_per_step
FROM runs r
JOIN names n ON n.run = r.run
LEFT JOIN dependencies d ON d.run = r.run
LEFT JOIN chains c ON c.run = r.run
ORDER BY r.run_number
