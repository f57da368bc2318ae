-- title: In a sentence: which component of a simulated machine to look at next
-- topic: facts
-- needs: tasks.kind=req_in
--
-- Components that differ in their indices alone are one kind (`GPU[*].L2[*]`); where those in front of which anything queued differ by a tenth
-- at most, the sentence says so.
WITH bins AS (
  SELECT *, coalesce(lead(bin_start) OVER same, 2 * bin_start - lag(bin_start) OVER same) AS bin_finish
  FROM component_metrics(program_tasks, bins => 40)
  WINDOW same AS (PARTITION BY run, location ORDER BY bin)
), peaks AS (
  SELECT run, location, bin_start, bin_finish, buffer_pressure, max(buffer_pressure) OVER (PARTITION BY run, location) AS peak FROM bins
), pressure AS (
  SELECT run, location, regexp_replace(location, '\[[0-9]+\]', '[*]', 'g') AS component_kind, avg(buffer_pressure) AS mean, max(peak) AS peak, count(*) AS intervals,
    count(*) FILTER (WHERE buffer_pressure = peak) AS peaks, min(bin_start) FILTER (WHERE buffer_pressure = peak) AS peak_start,
    min(bin_finish) FILTER (WHERE buffer_pressure = peak) AS peak_finish
  FROM peaks
  GROUP BY run, location
), kinds AS (
  SELECT run, component_kind, count(*) AS components, min(mean) >= 0.9 * max(mean) AS are_alike FROM pressure WHERE mean > 0 GROUP BY run, component_kind
), queues AS (
  -- Where less than half a request waits on average, queues are not what the run waits for.
  SELECT * FROM pressure WHERE mean >= 0.5 ORDER BY mean DESC, run, location LIMIT 1
), commands AS (
  SELECT t.run, t.name, count(*) AS calls, busy(t.start, t.finish) AS busy_time
  FROM program_tasks t JOIN program_tasks whole ON whole.task = t.parent AND whole.parent IS NULL
  WHERE t.name <> ''
  GROUP BY t.run, t.name
  ORDER BY busy_time DESC, t.run, t.name
  LIMIT 1
)
SELECT 'Look next at the queue in front of ' || location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ' (see Components), the fullest one'
  || CASE WHEN components > 1 AND are_alike THEN ', though those of all ' || components || ' ' || component_kind || ' are much alike' ELSE '' END || ': '
  || round(mean, 4) || ' requests on average had been sent to it and were not taken in yet, and ' || round(peak, 4)
  || CASE peaks WHEN 1 THEN ' in the fullest of ' || intervals || ' intervals, from ' ELSE ' in each of the ' || peaks || ' fullest of ' || intervals || ' intervals, the first from ' END
  || time_text(peak_start) || ' to ' || time_text(peak_finish) || '.' AS fact
FROM queues
JOIN kinds USING (run, component_kind)
UNION ALL
SELECT 'Look next at ' || name || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ', '
  || CASE calls WHEN 1 THEN 'which was' ELSE 'of which ' || calls || ' were' END || ' under way for ' || time_text(busy_time) || ' of ' || time_text(makespan)
  || '; in no queue was half a request on average (see Components).'
FROM commands JOIN runs USING (run)
WHERE (SELECT count(*) FROM queues) = 0
