-- title: What the streams of each run waited for, all together: the host, the launch of the next kernel, or something else
-- topic: gpu
-- needs: tasks.kind=kernel
--
-- The sums of gpu-idle-gaps. Streams that only communicate wait for what computes: `communicates_only` keeps them apart.
WITH streams AS (
  SELECT run, location, bool_and(role = 'communication') AS communicates_only FROM gpu.device_tasks GROUP BY run, location
)
SELECT w.run, s.communicates_only, w.waits_for, count(DISTINCT w.location) AS streams, count(*) AS gaps, sum(w.duration) AS idle_time,
  round(100.0 * sum(w.duration) / nullif(sum(sum(w.duration)) OVER (PARTITION BY w.run, s.communicates_only), 0), 1) AS percent
FROM gpu.stream_waits w JOIN streams s ON s.run = w.run AND s.location = w.location
GROUP BY w.run, s.communicates_only, w.waits_for
ORDER BY w.run, s.communicates_only, idle_time DESC, w.waits_for
