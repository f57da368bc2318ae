-- title: What idle locations waited for: idle time by the name of the task that ended it
-- topic: locations
-- needs: tasks
-- chart: bar x=idle_time y=name_after color=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- From the first start to the last finish of its run, as idle-gaps: what a location waited for its first task counts too, and nothing came after its last one.
WITH names AS (
  SELECT g.run, coalesce(CAST(after.name AS VARCHAR), '(nothing came)') AS name_after, count(*) AS gaps, sum(g.duration) AS idle_time,
    max(g.duration) AS longest_time
  FROM idle_stretches g
  LEFT JOIN working_tasks after ON after.task = g.task_after
  GROUP BY g.run, after.name
), shares AS (
  SELECT *, sum(idle_time) OVER (PARTITION BY run) AS of_run, sum(idle_time) OVER (PARTITION BY name_after) AS of_name FROM names
)
-- The names that ended most idle time of all runs together, so that each stands beside itself in the others.
SELECT run, name_after, gaps, idle_time, longest_time, round(100.0 * idle_time / nullif(of_run, 0), 1) AS share_percent
FROM shares
QUALIFY dense_rank() OVER (ORDER BY of_name DESC, name_after) <= 30
ORDER BY of_name DESC, name_after, run
LIMIT 300
