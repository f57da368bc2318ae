-- title: Components whose requests wait longest before they are accepted
-- topic: components
-- needs: tasks.kind=req_in
-- param bins: BIGINT = 40 -- number of equal intervals in which peaks are looked for
-- param limit: BIGINT = 20 -- how many components
-- chart: bar x=mean_pressure y=location
-- metric mean_pressure: better=lower, tolerance=5%, by=location
--
SELECT run, location, round(avg(buffer_pressure), 4) AS mean_pressure, round(max(buffer_pressure), 4) AS peak_pressure,
  first_value(bin_start ORDER BY buffer_pressure DESC, bin) AS peak_start,
  round(avg(request_buffer_pressure), 4) AS in_request_buffers,
  round(avg(response_buffer_pressure), 4) AS in_response_buffers
FROM component_metrics(program_tasks, bins => $bins)
GROUP BY run, location
HAVING max(buffer_pressure) > 0 OR max(request_buffer_pressure) > 0 OR max(response_buffer_pressure) > 0
ORDER BY greatest(mean_pressure, in_request_buffers, in_response_buffers) DESC, run, location
LIMIT $limit
