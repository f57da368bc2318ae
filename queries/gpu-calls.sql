-- title: What the host spends in calls of the CUDA or HIP runtime
-- topic: gpu
-- needs: tasks.kind=cuda_runtime
-- chart: bar x=total_time y=name color=run
--
WITH names AS (
  SELECT run, name, count(*) AS calls, sum(duration) AS total_time,
    round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run), 0), 2) AS percent,
    CAST(round(avg(duration)) AS BIGINT) AS mean_time, CAST(round(median(duration)) AS BIGINT) AS median_time,
    min(duration) AS shortest_time, max(duration) AS longest_time, sum(sum(duration)) OVER (PARTITION BY name) AS of_name
  FROM program_tasks
  WHERE kind IN ('cuda_runtime', 'cuda_driver', 'hip_runtime')
  GROUP BY run, name
)
-- The names that took most of all runs together, so that each stands beside itself in the others.
SELECT run, name, calls, total_time, percent, mean_time, median_time, shortest_time, longest_time
FROM names
QUALIFY dense_rank() OVER (ORDER BY of_name DESC, name) <= 30
ORDER BY of_name DESC, name, run
LIMIT 300
