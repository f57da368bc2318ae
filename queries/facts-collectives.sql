-- title: In a sentence: which rank waits longest in collectives for a late one
-- topic: facts
-- needs: tasks.start, locations.kind=rank, no tasks.kind=kernel
--
-- As in gpu-collective-skew.
WITH collectives AS (
  SELECT t.run, coalesce(d.process, l.process) AS rank, t.start, t.finish, t.name, coalesce(t.args->>'Process Group Name', '') AS process_group,
    row_number() OVER (PARTITION BY t.run, coalesce(d.process, l.process), t.name, coalesce(t.args->>'Process Group Name', '')
      ORDER BY t.start, t.task) AS number
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock
  WHERE t.finish IS NOT NULL AND t.name LIKE 'gloo:%'
), matched AS (
  SELECT *, max(start) OVER same AS last_start, count(*) OVER same AS ranks FROM collectives
  WINDOW same AS (PARTITION BY run, name, process_group, number)
), totals AS (
  SELECT run, rank, count(*) AS collectives, sum(least(last_start, finish) - start) AS skew_time, sum(greatest(finish - last_start, 0)) AS transfer_time
  FROM matched
  WHERE ranks > 1
  GROUP BY run, rank
)
SELECT 'Ranks waited for each other in collectives, which are recorded as tasks (the threads that wait for those idle): rank ' || t.rank || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || t.run ELSE '' END
  || ' longest, ' || time_text(t.skew_time) || ' in ' || t.collectives || CASE t.collectives WHEN 1 THEN ' collective' ELSE ' collectives' END
  || ', whose transfers then took ' || time_text(t.transfer_time) || ' (see Who waits for whom in collectives).' AS fact
FROM totals t
JOIN runs r ON r.run = t.run
WHERE t.skew_time > 0
ORDER BY t.skew_time DESC, r.run_number, t.rank
LIMIT 1
