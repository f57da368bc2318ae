-- title: Which location spends its time on which name of task
-- topic: locations
-- needs: tasks
-- chart: stacked x=location y=total_time color=name panel=run
--
WITH largest AS (
  SELECT name, sum(self_time) AS all_time FROM self_time(program_tasks) GROUP BY name ORDER BY all_time DESC, name LIMIT 12
)
SELECT s.run, s.location, coalesce(l.name, '(other)') AS name, count(*) AS tasks, sum(s.self_time) AS total_time
FROM self_time(program_tasks) s
LEFT JOIN largest l ON l.name = s.name
GROUP BY s.run, s.location, l.name
ORDER BY s.location, s.run, total_time DESC, name
