-- title: What the host spends in calls of the CUDA or HIP runtime
-- topic: gpu
-- needs: tasks.kind=cuda_runtime
-- chart: bar x=total_time y=name
--
SELECT run, name, count(*) AS calls, sum(duration) AS total_time,
  round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run), 0), 2) AS percent,
  CAST(avg(duration) AS BIGINT) AS mean_time, CAST(median(duration) AS BIGINT) AS median_time,
  min(duration) AS shortest_time, max(duration) AS longest_time
FROM program_tasks
WHERE kind IN ('cuda_runtime', 'cuda_driver', 'hip_runtime')
GROUP BY run, name
QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(duration) DESC, name) <= 30
ORDER BY run, total_time DESC, name
LIMIT 300
