-- title: How much the durations of tasks with the same name vary: quartiles, for the names with the most time
-- topic: tasks
-- needs: tasks
-- param names: BIGINT = 10 -- how many names
-- chart: box x=name y=duration
--
WITH largest AS (
  SELECT run, name, row_number() OVER (PARTITION BY run ORDER BY sum(duration) DESC, name) AS place
  FROM program_tasks
  WHERE duration IS NOT NULL
  GROUP BY run, name
)
SELECT t.run, t.name, t.duration
FROM program_tasks t
JOIN largest l ON l.run = t.run AND l.name = t.name
WHERE l.place <= $names AND t.duration IS NOT NULL
ORDER BY t.run, l.place, t.task
