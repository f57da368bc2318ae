-- title: How many launched kernels wait on each stream: between call and start, weighted by time
-- topic: gpu
-- needs: links.kind=launch
-- chart: bar x=mean_length y=location color=run
--
SELECT l.run, d.location, count(*) AS launches, max_concurrency(c.start, d.start) AS most,
  round(mean_concurrency(c.start, d.start), 3) AS mean_length, CAST(median(d.start - c.start) AS BIGINT) AS median_wait_time,
  max(d.start - c.start) AS longest_wait_time
FROM links l JOIN program_tasks c ON c.task = l.source JOIN program_tasks d ON d.task = l.target
WHERE l.kind = 'launch' AND c.start <= d.start
GROUP BY l.run, d.location
ORDER BY d.location, l.run
