-- title: Two metrics of the components that a regular expression chooses, side by side on one scale
-- topic: components
-- needs: tasks.kind=req_in
-- param components: TEXT = . -- a regular expression that the names match
-- param first: TEXT = req_in_count -- the metric of the left axis, a column of component_metrics
-- param second: TEXT = avg_latency -- the metric of the right axis
-- param bins: BIGINT = 40 -- how many equal stretches of time
-- param page: BIGINT = 1 -- which 16 of them, in the order of the trace
-- chart: line x=bin_start y=first_value y2=second_value panel=location
--
WITH chosen AS (
  SELECT run, location
  FROM (
    SELECT l.run, l.location, row_number() OVER (PARTITION BY l.run ORDER BY l.sort_index) AS place
    FROM locations l JOIN (SELECT DISTINCT run, location FROM tasks) t ON t.run = l.run AND t.location = l.location
    WHERE regexp_like(l.location, $components)
  )
  WHERE place > 16 * ($page - 1) AND place <= 16 * $page
)
SELECT run, location, bin, bin_start,
  CASE $first WHEN 'req_in_count' THEN req_in_count WHEN 'req_complete_count' THEN req_complete_count
    WHEN 'avg_latency' THEN avg_latency WHEN 'concurrent_task' THEN concurrent_task WHEN 'buffer_pressure' THEN buffer_pressure
    WHEN 'request_buffer_pressure' THEN request_buffer_pressure WHEN 'response_buffer_pressure' THEN response_buffer_pressure
    WHEN 'pending_req_out' THEN pending_req_out END AS first_value,
  CASE $second WHEN 'req_in_count' THEN req_in_count WHEN 'req_complete_count' THEN req_complete_count
    WHEN 'avg_latency' THEN avg_latency WHEN 'concurrent_task' THEN concurrent_task WHEN 'buffer_pressure' THEN buffer_pressure
    WHEN 'request_buffer_pressure' THEN request_buffer_pressure WHEN 'response_buffer_pressure' THEN response_buffer_pressure
    WHEN 'pending_req_out' THEN pending_req_out END AS second_value
FROM component_metrics(tasks, bins => $bins) JOIN chosen USING (run, location)
ORDER BY run, location, bin
