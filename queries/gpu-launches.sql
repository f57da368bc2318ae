-- title: How long kernels wait after their launch, and how long the launches take
-- topic: gpu
-- needs: links.kind=launch
-- chart: bar x=median_delay_time y=name color=run
--
-- One call may launch many kernels (`cudaGraphLaunch`): its own time counts once, and its kernels' times together.
WITH calls AS (
  SELECT l.run, l.source, c.name, c.duration AS call_time, count(*) AS device_tasks, sum(d.duration) AS device_time,
    greatest(min(d.start) - c.finish, 0) AS delay_time
  FROM links l JOIN program_tasks c ON c.task = l.source JOIN program_tasks d ON d.task = l.target
  WHERE l.kind = 'launch'
  GROUP BY l.run, l.source, c.name, c.duration, c.finish
)
SELECT run, name, count(*) AS launches, sum(device_tasks) AS device_tasks, sum(call_time) AS host_time, sum(device_time) AS device_time,
  CAST(round(median(call_time)) AS BIGINT) AS median_call_time,
  CAST(round(median(delay_time)) AS BIGINT) AS median_delay_time,
  CAST(percentile_cont(0.95) WITHIN GROUP (ORDER BY delay_time) AS BIGINT) AS delay_95_time,
  max(delay_time) AS longest_delay_time,
  count(*) FILTER (WHERE device_time < call_time) AS shorter_than_call
FROM calls
GROUP BY run, name
ORDER BY sum(count(*)) OVER (PARTITION BY name) DESC, name, run
