-- title: Which tasks could be slower without lengthening the critical path: slack by name
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
SELECT run, name, count(*) AS tasks, min(slack) AS least_slack_time, max(slack) AS most_slack_time,
  count(*) FILTER (WHERE on_path) AS on_path
FROM slack()
GROUP BY run, name
QUALIFY row_number() OVER (PARTITION BY run ORDER BY min(slack), name) <= 30
ORDER BY run, least_slack_time, name
LIMIT 300
