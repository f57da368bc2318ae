-- title: The kernels, copies and memsets that take most of the devices' time
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: bar x=total_time y=name color=run
--
WITH names AS (
  SELECT run, name, kind, role, count(*) AS tasks, sum(duration) AS total_time,
    round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run), 0), 2) AS percent,
    CAST(round(avg(duration)) AS BIGINT) AS mean_time, CAST(round(median(duration)) AS BIGINT) AS median_time,
    min(duration) AS shortest_time, max(duration) AS longest_time, sum(sum(duration)) OVER (PARTITION BY name, kind, role) AS of_name
  FROM program_tasks
  WHERE kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
  GROUP BY run, name, kind, role
)
-- The names that took most of all runs together, so that each stands beside itself in the others.
SELECT run, name, kind, role, tasks, total_time, percent, mean_time, median_time, shortest_time, longest_time
FROM names
QUALIFY dense_rank() OVER (ORDER BY of_name DESC, name, kind, role) <= 30
ORDER BY of_name DESC, name, kind, role, run
LIMIT 300
