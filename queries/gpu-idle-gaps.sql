-- title: What streams wait for when they idle: the host, the launch of the next kernel, or something else
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: stacked x=location y=idle_time color=waits_for relative=true panel=run
--
WITH launches AS (
  SELECT k.target AS task, max(c.start) AS launch_time
  FROM links k JOIN program_tasks c ON c.task = k.source
  WHERE k.kind = 'launch'
  GROUP BY k.target
), idle AS (
  -- Gaps are where nothing of the stream runs: until the next kernel was launched it waited for the host.
  SELECT g.run, g.location, g.duration, least(greatest(l.launch_time - g.start, 0), g.duration) AS host_time
  FROM gaps(gpu.device_tasks) g LEFT JOIN launches l ON l.task = g.task_after
), named AS (
  SELECT run, location, 'host' AS waits_for, host_time AS duration FROM idle WHERE host_time > 0
  UNION ALL
  -- Under 30 µs the device could hardly have started sooner.
  SELECT run, location, CASE WHEN duration - coalesce(host_time, 0) < us(30) THEN 'kernel start' ELSE 'other' END, duration - coalesce(host_time, 0)
  FROM idle
  WHERE duration > coalesce(host_time, 0)
)
SELECT run, location, waits_for, count(*) AS gaps, sum(duration) AS idle_time, max(duration) AS longest_time,
  round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run, location), 0), 2) AS percent
FROM named
GROUP BY run, location, waits_for
ORDER BY location, waits_for, run
