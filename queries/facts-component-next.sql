-- title: In a sentence: which component of a simulated machine to look at next
-- topic: facts
-- needs: tasks.kind=req_in
--
WITH pressure AS (
  SELECT run, location, round(avg(buffer_pressure), 4) AS mean_pressure, round(max(buffer_pressure), 4) AS peak_pressure,
    first_value(bin_start ORDER BY buffer_pressure DESC, bin) AS peak_start
  FROM component_metrics(program_tasks, bins => 40)
  GROUP BY run, location
)
SELECT 'Look next at ' || location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ' (see Components): '
  || mean_pressure || ' requests waited on average until it took them in, ' || peak_pressure || ' at its peak, about ' || time_text(peak_start) || '.' AS fact
FROM pressure
WHERE mean_pressure > 0
ORDER BY mean_pressure DESC, run, location
LIMIT 1
