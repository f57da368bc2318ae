-- title: Which name of task is worth speeding up most: the path time that its tasks on the critical path could save
-- topic: dependencies
-- needs: tasks, links
--
SELECT c.run, c.name, count(*) AS steps, sum(c.duration) AS at_most_saved_time,
  round(100.0 * sum(c.duration) / max(p.path_time), 2) AS at_most_saved_percent
FROM critical_path() c
JOIN (SELECT run, max(path_time) AS path_time FROM critical_path() GROUP BY run) p ON p.run = c.run
GROUP BY c.run, c.name
ORDER BY c.run, at_most_saved_time DESC, c.name
LIMIT 10
