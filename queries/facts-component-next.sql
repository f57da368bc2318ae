-- title: In a sentence: which component of a simulated machine to look at next
-- topic: facts
-- needs: tasks.kind=req_in
--
WITH bins AS (
  SELECT *, coalesce(lead(bin_start) OVER same, 2 * bin_start - lag(bin_start) OVER same) AS bin_finish
  FROM component_metrics(program_tasks, bins => 40)
  WINDOW same AS (PARTITION BY run, location ORDER BY bin)
), pressure AS (
  SELECT run, location, round(avg(buffer_pressure), 4) AS mean_pressure, round(max(buffer_pressure), 4) AS peak_pressure,
    first_value(bin_start ORDER BY buffer_pressure DESC, bin) AS peak_start, first_value(bin_finish ORDER BY buffer_pressure DESC, bin) AS peak_finish
  FROM bins
  GROUP BY run, location
)
SELECT 'Look next at the queue in front of ' || location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ' (see Components), the fullest one: '
  || mean_pressure || ' requests on average had been sent to it and were not taken in yet, ' || peak_pressure || ' at its peak, from ' || time_text(peak_start) || ' to ' || time_text(peak_finish) || '.' AS fact
FROM pressure
WHERE mean_pressure > 0
ORDER BY mean_pressure DESC, run, location
LIMIT 1
