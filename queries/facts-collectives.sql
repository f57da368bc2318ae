-- title: In a sentence: which rank waits longest in collectives for a late one
-- topic: facts
-- needs: tasks.start, locations.kind=rank
--
-- As in gpu-collective-skew. Kernels of a device hold the wait; what gloo records is on threads of its own, and those that wait for these idle.
WITH collectives AS (
  SELECT t.run, coalesce(d.process, l.process) AS rank, t.start, t.finish, t.name, coalesce(t.args->>'Process Group Name', '') AS process_group,
    t.kind = 'kernel' AS on_device,
    row_number() OVER (PARTITION BY t.run, coalesce(d.process, l.process), t.name, coalesce(t.args->>'Process Group Name', '')
      ORDER BY t.start, t.task) AS number
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock
  WHERE t.finish IS NOT NULL AND ((t.kind = 'kernel' AND t.role = 'communication') OR t.name LIKE 'gloo:%')
), matched AS (
  SELECT *, max(start) OVER same AS last_start, count(*) OVER same AS ranks FROM collectives
  WINDOW same AS (PARTITION BY run, name, process_group, number)
), totals AS (
  SELECT run, rank, count(*) AS collectives, bool_or(on_device) AS on_device, sum(least(last_start, finish) - start) AS skew_time,
    sum(greatest(finish - last_start, 0)) AS transfer_time
  FROM matched
  WHERE ranks > 1
  GROUP BY run, rank
), late AS (
  SELECT run, rank, count(*) AS collectives
  FROM matched
  WHERE ranks > 1 AND start = last_start
  GROUP BY run, rank
  QUALIFY row_number() OVER (PARTITION BY run ORDER BY count(*) DESC, rank) = 1
)
SELECT 'Ranks waited for each other in collectives'
  || CASE WHEN t.on_device THEN ', whose kernels run meanwhile' ELSE ', which are recorded as tasks (the threads that wait for those idle)' END
  || ': rank ' || t.rank || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || t.run ELSE '' END
  || ' longest, ' || time_text(t.skew_time) || ' in ' || t.collectives || CASE t.collectives WHEN 1 THEN ' collective' ELSE ' collectives' END
  || CASE WHEN l.rank <> t.rank THEN ', most often for rank ' || l.rank || ', the last one in ' || l.collectives ELSE '' END
  || '; the transfers then took ' || time_text(t.transfer_time) || ' (see Who waits for whom in collectives).' AS fact
FROM totals t
JOIN runs r ON r.run = t.run
JOIN late l ON l.run = t.run
-- Beside what devices compute, a little does not matter.
WHERE t.skew_time > CASE WHEN t.on_device THEN 0.02 * r.makespan ELSE 0 END
ORDER BY t.skew_time DESC, r.run_number, t.rank
LIMIT 1
