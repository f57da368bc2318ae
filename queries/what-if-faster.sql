-- title: What it would gain to make the tasks of a name faster: the path and the bound before and after
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- param name: TEXT = NULL -- the name; without one, the name with the most time on the critical path
-- param percent: BIGINT = 50 -- how much of their duration stays
--
WITH chosen AS (
  SELECT coalesce($name, (
    SELECT name FROM critical_path() GROUP BY name ORDER BY sum(duration) DESC, name LIMIT 1)) AS name
), changed AS (
  SELECT t.task, t.duration * $percent / 100 AS duration
  FROM tasks t
  JOIN chosen c ON c.name = t.name
  WHERE t.duration IS NOT NULL
)
SELECT c.name, w.*
FROM what_if(tasks, (SELECT * FROM links WHERE kind = 'dependency'), changed) w
CROSS JOIN chosen c
ORDER BY w.run
