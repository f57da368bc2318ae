-- title: How much of each device's communication is hidden behind computing
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: bar x=hidden_percent y=device
--
WITH device AS (
  SELECT t.run, coalesce(l.parent, l.location) AS device, t.role, t.start, t.finish
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE l.kind = 'stream' AND t.kind = 'kernel'
), unions AS (
  -- What two unions share is what their lengths exceed that of the union of both by.
  SELECT run, device, busy(start, finish) FILTER (WHERE role = 'communication') AS communication_time,
    busy(start, finish) FILTER (WHERE role = 'communication') + busy(start, finish) FILTER (WHERE role = 'work')
      - busy(start, finish) AS hidden_time
  FROM device
  GROUP BY run, device
)
SELECT run, device, communication_time, hidden_time, communication_time - hidden_time AS exposed_time,
  round(100.0 * hidden_time / nullif(communication_time, 0), 2) AS hidden_percent
FROM unions
ORDER BY run, device
