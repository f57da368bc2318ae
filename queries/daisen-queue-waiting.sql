-- title: How long components hold a request before they send their own
-- topic: waiting
-- needs: tasks.kind=req_in
-- param limit: BIGINT = 20 -- how many components
-- chart: bar x=mean_wait_time y=location color=run
-- metric mean_wait_time: better=lower, tolerance=5%, by=location
--
WITH components AS (
  SELECT run, location, count(*) AS requests, count(wait) AS sent_on, CAST(round(avg(wait)) AS BIGINT) AS mean_wait_time, CAST(round(median(wait)) AS BIGINT) AS median_wait_time,
    -- From the start of a req_in to the start of the first req_out below it; some are answered without one.
    max(wait) AS longest_wait_time
  FROM (
    SELECT i.run, i.task, i.location, min(o.start) - i.start AS wait
    FROM program_tasks i LEFT JOIN (SELECT parent, start FROM program_tasks WHERE kind = 'req_out') o ON o.parent = i.task
    WHERE i.kind = 'req_in'
    GROUP BY i.run, i.task, i.location, i.start
  )
  GROUP BY run, location
  HAVING count(wait) > 0
), ranked AS (
  SELECT *, max(mean_wait_time) OVER (PARTITION BY location) AS of_location FROM components
)
SELECT run, location, requests, sent_on, mean_wait_time, median_wait_time, longest_wait_time
FROM ranked
QUALIFY dense_rank() OVER (ORDER BY of_location DESC, location) <= $limit
ORDER BY of_location DESC, location, run
