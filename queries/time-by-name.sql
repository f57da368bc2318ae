-- title: Where the time went, by name of task, nested tasks not counted twice
-- topic: tasks
-- needs: tasks
-- chart: bar x=total_self_time y=name color=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH names AS (
  SELECT run, name, tasks, work_time AS total_self_time, total_time FROM work_by_name
), shares AS (
  SELECT *, sum(total_self_time) OVER (PARTITION BY run) AS of_run, sum(total_self_time) OVER (PARTITION BY name) AS of_name
  FROM names
)
-- The names that took most of all runs together, so that each stands beside itself in the others.
SELECT run, name, tasks, total_self_time, total_time, round(100.0 * total_self_time / nullif(of_run, 0), 2) AS share_percent
FROM shares
QUALIFY dense_rank() OVER (ORDER BY of_name DESC NULLS LAST, name) <= 30
ORDER BY of_name DESC NULLS LAST, name, run
LIMIT 300
