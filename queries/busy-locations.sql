-- title: How much of the run each location was busy, those that never ran included
-- topic: locations
-- needs: locations, tasks
-- chart: bar x=share y=location color=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run
-- nothing and are left out, and so are executors, processes, ranks, nodes, devices and scopes whose parts do the work, and ports.
WITH shares AS (
  SELECT l.run, l.location, coalesce(busy(t.start, t.finish), 0) AS busy_time, r.makespan,
    round(1.0 * coalesce(busy(t.start, t.finish), 0) / nullif(r.makespan, 0), 3) AS share
  FROM working_locations l
  JOIN runs r ON r.run = l.run
  LEFT JOIN working_lanes lane ON lane.run = l.run AND lane.location = l.location
  LEFT JOIN working_spans t ON t.run = l.run AND t.location = l.location
  GROUP BY l.run, l.location, lane.location, r.makespan
  HAVING lane.location IS NOT NULL OR count(t.task) > 0
)
SELECT run, location, busy_time, makespan, share
FROM shares
ORDER BY max(share) OVER (PARTITION BY location) DESC, location, run
