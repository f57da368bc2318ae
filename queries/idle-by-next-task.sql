-- title: What idle locations waited for: idle time by the name of the task that ended it
-- topic: locations
-- needs: tasks
-- chart: bar x=idle_time y=name_after color=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
SELECT g.run, coalesce(after.name, '(nothing came)') AS name_after, count(*) AS gaps, sum(g.duration) AS idle_time,
  max(g.duration) AS longest_time,
  round(100.0 * sum(g.duration) / nullif(sum(sum(g.duration)) OVER (PARTITION BY g.run), 0), 1) AS share_percent
FROM gaps(working_tasks) g
LEFT JOIN working_tasks after ON after.task = g.task_after
GROUP BY g.run, after.name
QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY sum(g.duration) DESC, after.name) <= 30
ORDER BY g.run, idle_time DESC, name_after
LIMIT 300
