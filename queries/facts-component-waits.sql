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
SELECT location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ' keeps its requests longest before it goes on with them: '
  || CASE WHEN count(wait) = count(*) THEN CASE count(*) WHEN 1 THEN 'for its only one' ELSE 'for each of its ' || count(*) END
       ELSE 'for ' || count(wait) || ' of its ' || count(*) END || ' it sent a request of its own, '
  || CASE WHEN min(wait) = max(wait) THEN time_text(max(wait)) ELSE 'on average ' || time_text(CAST(avg(wait) AS BIGINT)) || ', at most ' || time_text(max(wait)) || ',' END
  || ' after it had taken ' || CASE count(wait) WHEN 1 THEN 'it' ELSE 'them' END || ' in (see How long components keep requests).' AS fact
FROM waits
GROUP BY run, location
HAVING avg(wait) > 0
ORDER BY CAST(avg(wait) AS BIGINT) DESC, run, location
LIMIT 1
