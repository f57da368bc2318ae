-- title: Which name of task is worth speeding up most: the path time that its tasks on the critical path could save
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- chart: bar x=at_most_saved_time y=name color=run
--
SELECT run, name, count(*) AS steps, sum(duration) AS at_most_saved_time,
  round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run), 0), 2) AS at_most_saved_percent
FROM critical_path()
GROUP BY run, name
QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(duration) DESC, name) <= 10
ORDER BY run, at_most_saved_time DESC, name
LIMIT 100
