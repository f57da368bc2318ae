-- title: How much of the run each location was busy, those that never ran included
-- topic: locations
-- needs: locations, tasks
-- chart: bar x=share y=location color=run
--
-- Locations of kind async and state (asynchronous spans, states of threads) execute nothing and are left out, and so
-- are processes, ranks and nodes whose threads do the work.
SELECT l.run, l.location, coalesce(busy(t.start, t.finish), 0) AS busy_time, r.makespan,
  round(1.0 * coalesce(busy(t.start, t.finish), 0) / nullif(r.makespan, 0), 3) AS share
FROM working_locations l
JOIN runs r ON r.run = l.run
LEFT JOIN working_tasks t ON t.run = l.run AND t.location = l.location
WHERE l.kind <> 'executor'
GROUP BY l.run, l.location, l.kind, r.makespan
HAVING l.kind NOT IN ('process', 'rank', 'node') OR count(t.task) > 0
ORDER BY l.run, share DESC, l.location
