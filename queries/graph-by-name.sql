-- title: What a graph of tasks without times is made of, by name of task
-- topic: dependencies
-- needs: links.kind=dependency, no tasks.start
-- chart: bar x=tasks y=name color=run
--
-- `chain_steps`: how many are on the longest chain, where every task counts as one step.
WITH waiting AS (
  SELECT target AS task, count(*) AS links FROM links WHERE kind = 'dependency' GROUP BY target
), awaited AS (
  SELECT source AS task, count(*) AS links FROM links WHERE kind = 'dependency' GROUP BY source
), chain AS (
  SELECT task FROM critical_path((SELECT run, task, 1 AS duration FROM program_tasks), (SELECT run, source, target FROM links WHERE kind = 'dependency'))
), names AS (
  SELECT t.run, t.name, count(*) AS tasks, count(*) FILTER (WHERE w.links IS NULL) AS first_tasks, count(*) FILTER (WHERE a.links IS NULL) AS last_tasks,
    coalesce(sum(w.links), 0) AS waits_for, coalesce(sum(a.links), 0) AS awaited_by, count(c.task) AS chain_steps
  FROM program_tasks t
  LEFT JOIN waiting w ON w.task = t.task
  LEFT JOIN awaited a ON a.task = t.task
  LEFT JOIN chain c ON c.task = t.task
  GROUP BY t.run, t.name
)
SELECT run, name, tasks, first_tasks, last_tasks, waits_for, awaited_by, chain_steps
FROM names
ORDER BY sum(tasks) OVER (PARTITION BY name) DESC, name, run
LIMIT 300
