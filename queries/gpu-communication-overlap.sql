-- title: How much of each device's communication is hidden behind computing
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: bar x=hidden_percent y=device color=run
--
WITH unions AS (
  -- What two unions share is what their lengths exceed that of the union of both by.
  SELECT run, device, busy(start, finish) FILTER (WHERE role = 'communication') AS communication_time,
    busy(start, finish) FILTER (WHERE role = 'communication') + busy(start, finish) FILTER (WHERE role = 'work')
      - busy(start, finish) AS hidden_time
  FROM gpu.device_tasks
  WHERE kind = 'kernel'
  GROUP BY run, device
)
SELECT run, device, communication_time, hidden_time, communication_time - hidden_time AS exposed_time,
  round(100.0 * hidden_time / nullif(communication_time, 0), 2) AS hidden_percent
FROM unions
WHERE communication_time > 0
ORDER BY device, run
