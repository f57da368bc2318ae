-- title: Tasks that took far longer than others of their kind
-- topic: tasks
-- needs: tasks
-- chart: bar x=times_median y=name color=run
--
WITH usual AS (
  SELECT run, kind, count(*) AS tasks, CAST(median(duration) AS BIGINT) AS median_time
  FROM program_tasks
  WHERE duration IS NOT NULL
  GROUP BY run, kind
)
SELECT t.run, t.task, t.name, t.kind, t.location, t.start, t.duration, u.median_time,
  round(1.0 * t.duration / nullif(u.median_time, 0), 1) AS times_median
FROM program_tasks t
JOIN usual u ON u.run = t.run AND u.kind = t.kind
WHERE t.duration > 10 * u.median_time
ORDER BY times_median DESC NULLS LAST, t.task
LIMIT 20
