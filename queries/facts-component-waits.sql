-- title: In a sentence: which component of a simulated machine holds requests longest before it sends its own
-- topic: facts
-- needs: tasks.kind=req_in
--
-- As in daisen-queue-waiting: from the start of a req_in to the start of the first req_out below it.
WITH waits AS (
  SELECT i.run, i.location, min(o.start) - i.start AS wait
  FROM program_tasks i JOIN program_tasks o ON o.parent = i.task
  WHERE i.kind = 'req_in' AND o.kind = 'req_out'
  GROUP BY i.run, i.task, i.location, i.start
)
SELECT 'Requests waited longest in ' || location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ': each of its '
  || count(*) || ' requests stood there ' || time_text(CAST(avg(wait) AS BIGINT)) || ' on average, ' || time_text(max(wait))
  || ' at most, before it was sent on.' AS fact
FROM waits
GROUP BY run, location
HAVING avg(wait) > 0
ORDER BY CAST(avg(wait) AS BIGINT) DESC, run, location
LIMIT 1
