-- title: How unevenly the work is spread over the locations, those that never ran included
-- topic: locations
-- needs: locations, tasks
--
-- `imbalance` is the busiest location's time over the mean: 1 is even. `imbalance_percent` is of the worst case, n / (n - 1) * (1 - mean / busiest) of n
-- locations: 0 is even, 100 is all work on one.
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- Streams of devices and the threads that feed them are no equals: each kind of location is compared with itself.
SELECT b.run, l.kind, count(*) AS lanes, round(imbalance(busy_time), 3) AS imbalance, max(busy_time) AS most_time, min(busy_time) AS least_time,
  round(gini(busy_time), 3) AS gini, round(load_balance(busy_time), 3) AS load_balance, round(imbalance_percent(busy_time), 1) AS imbalance_percent
FROM busy_lanes b JOIN program_locations l ON l.run = b.run AND l.location = b.location
GROUP BY b.run, l.kind
ORDER BY max(busy_time) DESC, l.kind, b.run
