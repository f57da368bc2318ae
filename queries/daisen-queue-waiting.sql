-- title: How long components hold a request before they send their own
-- topic: waiting
-- needs: tasks.kind=req_in
-- param limit: BIGINT = 20 -- how many components
-- chart: bar x=mean_wait_time y=location
-- metric mean_wait_time: better=lower, tolerance=5%, by=location
--
SELECT run, location, count(*) AS requests, CAST(avg(wait) AS BIGINT) AS mean_wait_time, CAST(median(wait) AS BIGINT) AS median_wait_time,
  -- From the start of a req_in to the start of the first req_out below it.
  max(wait) AS longest_wait_time
FROM (
  SELECT i.run, i.task, i.location, min(o.start) - i.start AS wait
  FROM program_tasks i JOIN program_tasks o ON o.parent = i.task
  WHERE i.kind = 'req_in' AND o.kind = 'req_out'
  GROUP BY i.run, i.task, i.location, i.start
)
GROUP BY run, location
ORDER BY mean_wait_time DESC, run, location
LIMIT $limit
