-- title: The kernels, copies and memsets that take most of the devices' time
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: bar x=total_time y=name
--
SELECT run, name, kind, role, count(*) AS tasks, sum(duration) AS total_time,
  round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (PARTITION BY run), 0), 2) AS percent,
  CAST(avg(duration) AS BIGINT) AS mean_time, CAST(median(duration) AS BIGINT) AS median_time,
  min(duration) AS shortest_time, max(duration) AS longest_time
FROM program_tasks
WHERE kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
GROUP BY run, name, kind, role
QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(duration) DESC, name, kind, role) <= 30
ORDER BY run, total_time DESC, name
LIMIT 300
