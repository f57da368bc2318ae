-- title: Components with the fullest queues: requests that were sent to them and not taken in yet
-- topic: components
-- needs: tasks.kind=req_in
-- param bins: BIGINT = 40 -- number of equal intervals in which peaks are looked for
-- param limit: BIGINT = 20 -- how many components
-- chart: bar x=mean_pressure y=location color=run
-- metric mean_pressure: better=lower, tolerance=5%, by=location
--
WITH components AS (
  SELECT run, location, round(avg(buffer_pressure), 4) AS mean_pressure, round(max(buffer_pressure), 4) AS peak_pressure,
    first_value(bin_start ORDER BY buffer_pressure DESC, bin) AS peak_start,
    round(avg(request_buffer_pressure), 4) AS in_request_buffers,
    round(avg(response_buffer_pressure), 4) AS in_response_buffers
  FROM component_metrics(program_tasks, bins => $bins)
  GROUP BY run, location
  HAVING max(buffer_pressure) > 0 OR max(request_buffer_pressure) > 0 OR max(response_buffer_pressure) > 0
), ranked AS (
  SELECT *, max(mean_pressure) OVER of_location AS of_mean, max(greatest(in_request_buffers, in_response_buffers)) OVER of_location AS of_buffers
  FROM components
  WINDOW of_location AS (PARTITION BY location)
)
SELECT run, location, mean_pressure, peak_pressure, peak_start, in_request_buffers, in_response_buffers
FROM ranked
QUALIFY dense_rank() OVER (ORDER BY of_mean DESC NULLS LAST, of_buffers DESC, location) <= $limit
ORDER BY of_mean DESC NULLS LAST, of_buffers DESC, location, run
