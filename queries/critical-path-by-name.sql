-- title: What the critical path is made of, by name of task
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- chart: bar x=total_time y=name color=run
--
WITH names AS (
  SELECT run, name, count(*) AS steps, sum(duration) AS total_time FROM critical_path() GROUP BY run, name
), shares AS (
  SELECT *, sum(total_time) OVER (PARTITION BY run) AS of_run, sum(total_time) OVER (PARTITION BY name) AS of_name FROM names
)
-- The names that are most of all runs together, so that each stands beside itself in the others.
SELECT run, name, steps, total_time, round(100.0 * total_time / nullif(of_run, 0), 2) AS share_percent
FROM shares
QUALIFY dense_rank() OVER (ORDER BY of_name DESC NULLS LAST, name) <= 30
ORDER BY of_name DESC NULLS LAST, name, run
LIMIT 300
