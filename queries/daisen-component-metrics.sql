-- title: Request rates, latency, concurrency and buffer pressure of every component over time
-- topic: components
-- needs: tasks.kind=req_in
-- param bins: BIGINT = 40 -- number of equal intervals
-- param from: DOUBLE = NULL -- where the window begins, in ticks; the first start
-- param to: DOUBLE = NULL -- where the window ends; the last finish
-- param rules: TEXT = plain -- plain, or v3 or v5 for what the servers of these versions answer
-- chart: heatmap x=bin y=location value=concurrent_task
--
SELECT *
FROM component_metrics(program_tasks, bins => $bins, from => $from, to => $to, rules => $rules)
ORDER BY run, location, bin
