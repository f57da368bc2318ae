-- title: What the critical path is made of, by name of task
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- chart: bar x=total_time y=name color=run
--
SELECT run, name, count(*) AS steps, sum(duration) AS total_time,
  round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run), 0), 2) AS share_percent
FROM critical_path()
GROUP BY run, name
QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(duration) DESC, name) <= 30
ORDER BY run, total_time DESC, name
LIMIT 300
