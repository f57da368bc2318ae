-- title: Tasks that took far longer than others of their name, or of their kind where few have the name
-- topic: tasks
-- needs: tasks
-- chart: bar x=times_median y=name color=run
--
-- More than 10 times the median of what they are `compared_with`: at least five tasks of the name (these come first), else all of the kind.
WITH named AS (
  SELECT run, task, name, kind, location, start, duration, count(*) OVER (PARTITION BY run, kind, name) >= 5 AS of_name
  FROM program_tasks
  WHERE duration IS NOT NULL
), names AS (
  SELECT run, kind, name, CAST(round(median(duration)) AS BIGINT) AS median_time FROM named WHERE of_name GROUP BY run, kind, name
), kinds AS (
  SELECT run, kind, CAST(round(median(duration)) AS BIGINT) AS median_time FROM named GROUP BY run, kind
), compared AS (
  SELECT t.*, CASE WHEN of_name THEN 'name' ELSE 'kind' END AS compared_with, CASE WHEN of_name THEN n.median_time ELSE k.median_time END AS median_time
  FROM named t
  JOIN kinds k ON k.run = t.run AND k.kind = t.kind
  LEFT JOIN names n ON n.run = t.run AND n.kind = t.kind AND n.name = t.name
)
SELECT run, task, name, kind, location, start, duration, compared_with, median_time, round(1.0 * duration / nullif(median_time, 0), 1) AS times_median
FROM compared
WHERE duration > 10 * median_time
ORDER BY compared_with DESC, times_median DESC NULLS LAST, task
LIMIT 20
