-- title: What streams wait for when they idle: the host, the launch of the next kernel, its start, or something else
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: stacked x=location y=idle_time color=waits_for panel=run
--
-- A gap in which the next task was launched waited for the host until then (gpu.stream_waits).
SELECT run, location, waits_for, count(*) AS gaps, sum(duration) AS idle_time, max(duration) AS longest_time,
  round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run, location), 0), 2) AS percent
FROM gpu.stream_waits
GROUP BY run, location, waits_for
ORDER BY location, waits_for, run
