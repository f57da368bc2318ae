-- title: In a sentence: which component of a simulated machine keeps requests longest before it sends its own
-- topic: facts
-- needs: tasks.kind=req_in
--
-- As in daisen-queue-waiting: from the start of a req_in to the start of the first req_out below it. Components that differ in their indices
-- alone are one kind (`GPU[*].L2[*]`); where their averages differ by a tenth at most, the sentence is about all of them.
WITH waits AS (
  SELECT i.run, i.location, min(o.start) - i.start AS wait
  FROM program_tasks i LEFT JOIN (SELECT parent, start FROM program_tasks WHERE kind = 'req_out') o ON o.parent = i.task
  WHERE i.kind = 'req_in'
  GROUP BY i.run, i.task, i.location, i.start
), components AS (
  SELECT run, location, regexp_replace(location, '\[[0-9]+\]', '[*]', 'g') AS component_kind, count(*) AS requests, count(wait) AS sent, sum(wait) AS wait_time,
    min(wait) AS least, max(wait) AS most, avg(wait) AS mean
  FROM waits
  GROUP BY run, location
  HAVING avg(wait) > 0
), kinds AS (
  SELECT run, component_kind, count(*) AS components, min(mean) >= 0.9 * max(mean) AS are_alike, sum(requests) AS all_requests, sum(sent) AS all_sent,
    CAST(1.0 * sum(wait_time) / sum(sent) AS BIGINT) AS mean_of_all, min(least) AS least_of_all, max(most) AS most_of_all
  FROM components
  GROUP BY run, component_kind
), worst AS (
  SELECT *, are_alike AND components > 1 AS is_kind, CAST(mean AS BIGINT) AS mean_wait
  FROM components JOIN kinds USING (run, component_kind)
  ORDER BY mean_wait DESC, run, location
  LIMIT 1
), figures AS (
  -- Of a kind that is alike those of all, which of a single component are its own.
  SELECT run, location, component_kind, components, is_kind, CASE WHEN are_alike THEN all_requests ELSE requests END AS requests,
    CASE WHEN are_alike THEN all_sent ELSE sent END AS sent, CASE WHEN are_alike THEN components ELSE 1 END AS sharers, CASE WHEN are_alike THEN mean_of_all ELSE mean_wait END AS mean,
    CASE WHEN are_alike THEN least_of_all ELSE least END AS least, CASE WHEN are_alike THEN most_of_all ELSE most END AS most
  FROM worst
)
SELECT CASE WHEN is_kind THEN 'All ' || components || ' ' || component_kind ELSE location END || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END
  || CASE WHEN is_kind THEN ' alike keep their' ELSE ' keeps its' END || ' requests longest before ' || CASE WHEN is_kind THEN 'they go' ELSE 'it goes' END || ' on with them: '
  || CASE WHEN sent = requests THEN CASE sent WHEN 1 THEN 'for its only one' ELSE 'for each of ' || CASE WHEN is_kind THEN 'their ' ELSE 'its ' END || sent END
       ELSE 'for ' || sent || ' of ' || CASE WHEN is_kind THEN 'their ' ELSE 'its ' END || requests END
  || CASE WHEN is_kind THEN ' they sent requests of their own, ' ELSE ' it sent a request of its own, ' END
  || CASE WHEN least = most THEN time_text(most) ELSE 'on average ' || time_text(mean) || ', at most ' || time_text(most) || ',' END
  || ' after ' || CASE WHEN is_kind THEN 'they' ELSE 'it' END || ' had taken ' || CASE sent WHEN 1 THEN 'it' ELSE 'them' END || ' in (see How long components keep requests).' AS fact
FROM figures JOIN runs USING (run)
-- What is a hundredth of the run does not explain it.
WHERE 100.0 * mean * sent >= sharers * makespan
