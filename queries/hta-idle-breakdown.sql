-- title: HTA's idle time breakdown: what each stream waits for between its kernels
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: stacked x=lane y=idle_time color=idle_category relative=true panel=run
--
WITH calls AS (
  -- The last host span of a correlation is the kernel's launch.
  SELECT run, rank, correlation, last_value(start ORDER BY task) AS launch_time
  FROM hta.events
  WHERE NOT is_device AND correlation >= 0 AND (is_whole OR is_early)
  GROUP BY run, rank, correlation
), first_events AS (
  -- Where no call has the correlation, HTA takes the first event of the file for the launch, if that is a row that it keeps.
  SELECT e.run, e.rank, e.start FROM hta.events e JOIN hta.first_spans f ON f.run = e.run AND f.rank = e.rank AND f.task = e.task
  WHERE is_whole OR is_early
), ordered AS (
  -- The gap is to the span that started before, not to the latest finish: it can be negative. The first span has none.
  SELECT d.run, d.rank, d.stream, d.start,
    CASE WHEN c.correlation IS NOT NULL THEN c.launch_time WHEN d.correlation >= 0 THEN f.start END AS launch_time,
    lag(d.finish) OVER (PARTITION BY d.run, d.rank, d.stream ORDER BY d.start, d.task) AS previous_finish
  FROM hta.device_spans d
  LEFT JOIN calls c ON c.run = d.run AND c.rank = d.rank AND c.correlation = d.correlation
  LEFT JOIN first_events f ON f.run = d.run AND f.rank = d.rank
  WHERE d.kind IN ('kernel', 'Kernel', 'gpu_memset', 'Memset', 'gpu_memcpy', 'Memcpy', 'mtia_ccp_events')
), gaps AS (
  -- HTA documents its threshold of 30 as nanoseconds and compares it with microseconds.
  SELECT run, rank, stream, start - previous_finish AS gap, CASE
      WHEN launch_time > previous_finish THEN 'host_wait' WHEN start - previous_finish < us(30) THEN 'kernel_wait'
      ELSE 'other' END AS idle_category
  FROM ordered
), totals AS (
  SELECT run, rank, stream, idle_category, coalesce(sum(gap), 0) AS idle_time FROM gaps GROUP BY run, rank, stream, idle_category
)
SELECT run, rank, stream, idle_category, idle_time,
  round(1.0 * idle_time / nullif(sum(idle_time) OVER (PARTITION BY run, rank, stream), 0), 2) AS idle_share,
  CASE WHEN min(rank) OVER () < max(rank) OVER () THEN 'rank ' || rank || ', ' ELSE '' END || 'stream ' || stream AS lane
FROM totals
ORDER BY rank, stream, idle_category, run
