-- title: HTA's queue length: how many launched kernels wait on each stream, at the times at which the number changes
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=mean_length y=lane color=run
--
WITH first_kernels AS (
  -- HTA takes the call of a kernel that is the file's first event for one without a kernel.
  SELECT d.run, d.rank, d.correlation FROM hta.device_spans d JOIN hta.first_spans f ON f.run = d.run AND f.rank = d.rank AND f.task = d.task
), calls AS (
  SELECT t.run, t.rank, t.correlation, task, start
  FROM hta.events t
  LEFT ANTI JOIN first_kernels f ON f.run = t.run AND f.rank = t.rank AND f.correlation = t.correlation
  WHERE (is_whole OR is_early) AND stream = -1 AND correlation >= 0 AND is_launch_call
), changes AS (
  -- One more when a call begins, one less when its kernel does.
  SELECT d.run, d.rank, d.stream, c.start AS time, 1 AS change, c.task
  FROM calls c JOIN hta.device_spans d ON d.run = c.run AND d.rank = c.rank AND d.correlation = c.correlation
  UNION ALL
  SELECT d.run, d.rank, d.stream, d.start, -1, d.task
  FROM hta.device_spans d LEFT SEMI JOIN calls c ON c.run = d.run AND c.rank = d.rank AND c.correlation = d.correlation
), lengths AS (
  SELECT run, rank, stream,
    sum(change) OVER (PARTITION BY run, rank, stream ORDER BY time, change DESC, task ROWS UNBOUNDED PRECEDING) AS length
  FROM changes
)
SELECT *, CASE WHEN min(rank) OVER () < max(rank) OVER () THEN 'rank ' || rank || ', ' ELSE '' END || 'stream ' || stream AS lane
FROM (
  SELECT run, rank, stream, count(*) AS changes, avg(length) AS mean_length, stddev(length) AS deviation, min(length) AS least,
    percentile_cont(0.25) WITHIN GROUP (ORDER BY length) AS quartile_1, median(CAST(length AS DOUBLE)) AS median_length,
    percentile_cont(0.75) WITHIN GROUP (ORDER BY length) AS quartile_3, max(length) AS most
  FROM lengths
  GROUP BY run, rank, stream
)
ORDER BY rank, stream, run
