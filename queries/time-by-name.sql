-- title: Where the time went, by name of task, nested tasks not counted twice
-- topic: tasks
-- needs: tasks
-- chart: bar x=total_self_time y=name color=run
--
-- Locations of kind async and state (asynchronous spans, states of threads) execute nothing and are left out.
SELECT run, name, count(*) AS tasks, sum(self_time) AS total_self_time, sum(duration) AS total_time,
  round(100.0 * sum(self_time) / nullif(sum(sum(self_time)) OVER (PARTITION BY run), 0), 2) AS share_percent
FROM self_time(working_tasks)
GROUP BY run, name
QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(self_time) DESC, name) <= 30
ORDER BY run, total_self_time DESC, name
LIMIT 300
