-- title: In a sentence: which component of a simulated machine keeps requests longest before it sends its own
-- topic: facts
-- needs: tasks.kind=req_in
--
-- As in daisen-queue-waiting: from the start of a req_in to the start of the first req_out below it.
WITH waits AS (
  SELECT i.run, i.location, min(o.start) - i.start AS wait
  FROM program_tasks i LEFT JOIN (SELECT parent, start FROM program_tasks WHERE kind = 'req_out') o ON o.parent = i.task
  WHERE i.kind = 'req_in'
  GROUP BY i.run, i.task, i.location, i.start
)
SELECT 'Of the requests inside components, those in ' || location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ' waited longest: it sent a request of its own for '
  || CASE WHEN count(wait) = count(*) THEN CASE count(*) WHEN 1 THEN 'the one that it took in' ELSE 'all ' || count(*) || ' that it took in' END
       ELSE count(wait) || ' of the ' || count(*) || ' that it took in' END
  || ', ' || CASE WHEN min(wait) = max(wait) THEN time_text(max(wait)) ELSE time_text(CAST(avg(wait) AS BIGINT)) || ' on average and ' || time_text(max(wait)) || ' at most' END
  || ' after that (see How long components keep requests).' AS fact
FROM waits
GROUP BY run, location
HAVING avg(wait) > 0
ORDER BY CAST(avg(wait) AS BIGINT) DESC, run, location
LIMIT 1
