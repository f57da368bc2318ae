-- title: Every location works for a third of the run
-- topic: checks
-- needs: tasks, locations
-- param least: DOUBLE = 0.33 -- the least share of the makespan
-- metric occupancy: better=higher, tolerance=5%, by=location
-- expect every row: occupancy >= $least
-- expect rows: 1..
--
SELECT l.run, l.location, coalesce(busy(t.start, t.finish), 0) AS busy_time,
  round(1.0 * coalesce(busy(t.start, t.finish), 0) / max(r.makespan), 3) AS occupancy
FROM locations l
JOIN runs r ON r.run = l.run
LEFT JOIN tasks t ON t.run = l.run AND t.location = l.location
WHERE l.kind <> 'executor'
GROUP BY l.run, l.location
ORDER BY l.run, l.location
