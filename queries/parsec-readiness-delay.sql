-- title: How long tasks wait after their last input was ready, by class; delays below 0 are impossible and mean unaligned clocks
-- topic: parsec
-- needs: tasks, links
-- chart: bar x=total_delay_time y=name
--
WITH delays AS (
  SELECT * FROM ready((SELECT * FROM tasks WHERE kind = 'task'), (SELECT * FROM links WHERE kind = 'dependency'))
  WHERE delay IS NOT NULL)
SELECT run, name, count(*) AS tasks, sum(delay) AS total_delay_time, min(delay) AS min_delay_time,
  CAST(median(delay) AS BIGINT) AS median_delay_time, max(delay) AS max_delay_time, count(*) FILTER (WHERE delay < 0) AS impossible
FROM delays
GROUP BY run, name
ORDER BY run, total_delay_time DESC, name
