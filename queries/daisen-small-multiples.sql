-- title: Two metrics of the components that a regular expression chooses, side by side on one scale
-- topic: components
-- needs: tasks.kind=req_in
-- param components: TEXT = . -- a regular expression that the names match
-- param first: TEXT = req_in_count -- the metric of the left axis, a column of component_metrics
-- param second: TEXT = avg_latency -- the metric of the right axis
-- param bins: BIGINT = 40 -- number of equal intervals
-- param page: BIGINT = 1 -- which page of 16 components, of several runs 8, in the order of the trace
-- chart: line x=bin_start y=$first y2=$second panel=component
--
WITH chosen AS (
  SELECT run, location, place
  FROM (
    SELECT l.run, l.location, row_number() OVER (PARTITION BY l.run ORDER BY l.sort_index) AS place
    FROM program_locations l JOIN (SELECT DISTINCT run, location FROM program_tasks) t ON t.run = l.run AND t.location = l.location
    WHERE regexp_like(l.location, $components)
  )
  WHERE (place - 1) / CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 8 ELSE 16 END = $page - 1
)
SELECT run, location, bin, bin_start, req_in_count, req_complete_count, avg_latency, concurrent_task, buffer_pressure,
  request_buffer_pressure, response_buffer_pressure, pending_req_out, CASE WHEN (SELECT count(*) FROM runs) > 1 THEN run || ': ' ELSE '' END || location AS component
FROM component_metrics(program_tasks, bins => $bins) JOIN chosen USING (run, location)
ORDER BY place, location, run, bin
