-- title: How busy the locations of each run were on average, and how many never ran anything
-- topic: locations
-- needs: locations, tasks
--
-- `busy_percent` is of all locations from the first start to the last finish.
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
SELECT r.run, r.makespan, count(*) AS lanes, count(*) FILTER (WHERE b.busy_time = 0) AS never_busy, CAST(round(avg(b.busy_time)) AS BIGINT) AS mean_busy_time,
  round(100.0 * sum(b.busy_time) / count(*) / nullif(r.makespan, 0), 1) AS busy_percent, round(imbalance(b.busy_time), 2) AS imbalance
FROM busy_lanes b JOIN runs r ON r.run = b.run
GROUP BY r.run, r.makespan, r.run_number
ORDER BY r.run_number
