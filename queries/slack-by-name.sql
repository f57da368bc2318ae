-- title: Which tasks could be slower without lengthening the critical path: slack by name
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
WITH names AS (
  SELECT run, name, count(*) AS tasks, min(slack) AS least_slack_time, max(slack) AS most_slack_time,
    count(*) FILTER (WHERE on_path) AS on_path, min(min(slack)) OVER (PARTITION BY name) AS of_name
  FROM slack()
  GROUP BY run, name
)
-- The names with the least slack in any run, so that each stands beside itself in the others.
SELECT run, name, tasks, least_slack_time, most_slack_time, on_path
FROM names
QUALIFY dense_rank() OVER (ORDER BY of_name, name) <= 30
ORDER BY of_name, name, run
LIMIT 300
