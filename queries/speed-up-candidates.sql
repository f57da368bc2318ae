-- title: Which name of task is worth speeding up most: the path time that its tasks on the critical path could save
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- chart: bar x=at_most_saved_time y=name color=run
--
-- At most: where another chain is nearly as long, that one remains (what-if-faster).
WITH names AS (
  SELECT run, name, count(*) AS steps, sum(duration) AS at_most_saved_time FROM critical_path() GROUP BY run, name
), shares AS (
  SELECT *, sum(at_most_saved_time) OVER (PARTITION BY run) AS of_run, sum(at_most_saved_time) OVER (PARTITION BY name) AS of_name FROM names
)
-- The names that are most of all runs together, so that each stands beside itself in the others.
SELECT run, name, steps, at_most_saved_time, round(100.0 * at_most_saved_time / nullif(of_run, 0), 2) AS at_most_saved_percent
FROM shares
QUALIFY dense_rank() OVER (ORDER BY of_name DESC NULLS LAST, name) <= 10
ORDER BY of_name DESC NULLS LAST, name, run
LIMIT 100
