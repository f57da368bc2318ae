-- title: How much the durations of tasks with the same name vary: quartiles, for the names with the most time
-- topic: tasks
-- needs: tasks
-- param names: BIGINT = 10 -- how many names
-- chart: box x=name_of_run y=duration color=run
--
WITH largest AS (
  SELECT name, row_number() OVER (ORDER BY sum(duration) DESC, name) AS place
  FROM program_tasks
  WHERE duration IS NOT NULL
  GROUP BY name
)
SELECT t.run, t.name, t.duration, CASE WHEN (SELECT count(*) FROM runs) > 1 THEN t.run || ': ' ELSE '' END || t.name AS name_of_run
FROM program_tasks t
JOIN largest l ON l.name = t.name
WHERE l.place <= $names AND t.duration IS NOT NULL
ORDER BY l.place, t.run, t.task
