-- title: How long launches take, and how long kernels wait after them
-- topic: gpu
-- needs: links.kind=launch
-- chart: bar x=median_delay_time y=name color=run
--
SELECT l.run, c.name, count(*) AS launches, sum(c.duration) AS host_time, sum(d.duration) AS device_time,
  CAST(median(c.duration) AS BIGINT) AS median_call_time,
  CAST(median(greatest(d.start - c.finish, 0)) AS BIGINT) AS median_delay_time,
  CAST(percentile_cont(0.95) WITHIN GROUP (ORDER BY greatest(d.start - c.finish, 0)) AS BIGINT) AS delay_95_time,
  max(greatest(d.start - c.finish, 0)) AS longest_delay_time,
  count(*) FILTER (WHERE d.duration < c.duration) AS shorter_than_call
FROM links l JOIN program_tasks c ON c.task = l.source JOIN program_tasks d ON d.task = l.target
WHERE l.kind = 'launch'
GROUP BY l.run, c.name
ORDER BY sum(count(*)) OVER (PARTITION BY c.name) DESC, c.name, l.run
