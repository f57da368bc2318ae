-- title: How long tasks wait after their last input was ready, by class; delays below 0 are impossible and mean unaligned clocks
-- topic: parsec
-- needs: tasks, links
-- chart: bar x=total_delay_time y=name color=run
--
-- A task is ready once: links from one execution of a task to its next are left out, and so are starts without an end.
WITH delays AS (
  SELECT * FROM ready(
    (SELECT * FROM program_tasks WHERE kind = 'task'),
    (SELECT * FROM links WHERE kind = 'dependency' AND name IS DISTINCT FROM 'again'))
  WHERE delay IS NOT NULL AND finish IS NOT NULL)
SELECT run, name, count(*) AS tasks, sum(delay) AS total_delay_time, min(delay) AS min_delay_time,
  CAST(round(median(delay)) AS BIGINT) AS median_delay_time, max(delay) AS max_delay_time, count(*) FILTER (WHERE delay < 0) AS impossible
FROM delays
GROUP BY run, name
ORDER BY sum(sum(delay)) OVER (PARTITION BY name) DESC, name, run
