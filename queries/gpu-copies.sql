-- title: How much copies and memsets move, and how fast
-- topic: gpu
-- needs: tasks.role=copy
-- chart: bar x=bytes y=name color=run
--
-- Only copies for which the trace records the number of bytes. A gigabyte is 10^9 bytes.
SELECT run, name, count(*) AS copies, sum(bytes) AS bytes, sum(duration) AS total_time,
  round(sum(bytes) / nullif(to_s(sum(duration)), 0) / 1e9, 3) AS gigabytes_per_second,
  CAST(round(avg(bytes)) AS BIGINT) AS mean_bytes, CAST(round(median(bytes)) AS BIGINT) AS median_bytes,
  min(bytes) AS smallest_bytes, max(bytes) AS largest_bytes
FROM (
  SELECT run, name, duration, TRY_CAST(args->>'bytes' AS BIGINT) AS bytes
  FROM program_tasks WHERE kind IN ('gpu_memcpy', 'gpu_memset')
)
WHERE bytes IS NOT NULL
GROUP BY run, name
ORDER BY sum(sum(bytes)) OVER (PARTITION BY name) DESC, name, run
