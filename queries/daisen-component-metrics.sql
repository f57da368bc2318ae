-- title: How many tasks each component has at a time, in equal intervals; with rates of requests, latency and pressure
-- topic: components
-- needs: tasks.kind=req_in
-- param bins: BIGINT = 40 -- number of equal intervals
-- param from: DOUBLE = NULL -- where the window begins, in ticks; the first start
-- param to: DOUBLE = NULL -- where the window ends; the last finish
-- param most: BIGINT = 40 -- how many components, those with most tasks at a time
-- param rules: TEXT = plain -- plain, or v3 or v5 for what the servers of these versions answer
-- chart: heatmap x=bin_start y=location value=concurrent_task panel=run
--
WITH metrics AS (
  SELECT *, sum(concurrent_task) OVER (PARTITION BY location) AS of_location
  FROM component_metrics(program_tasks, bins => $bins, from => $from, to => $to, rules => $rules)
)
SELECT run, location, bin, bin_start, req_in_count, req_complete_count, avg_latency, concurrent_task, buffer_pressure,
  request_buffer_pressure, response_buffer_pressure, pending_req_out
FROM metrics
QUALIFY dense_rank() OVER (ORDER BY of_location DESC, location) <= $most
ORDER BY location, bin, run
