-- title: In a sentence: which rank waits longest in collectives for a late one
-- topic: facts
-- needs: tasks.start, collectives
--
-- As in gpu-collective-skew. Kernels of a device hold the wait; what gloo records is on threads of its own, and those that wait for these idle.
WITH named AS (
  SELECT *, CASE WHEN rank LIKE '%rank%' THEN rank ELSE 'rank ' || rank END AS called FROM collectives
), totals AS (
  SELECT run, rank, called, count(*) AS collectives, bool_or(on_device) AS on_device,
    bool_or(name LIKE 'gloo:%') AS on_threads, sum(wait_time) AS skew_time,
    sum(transfer_time) AS transfer_time
  FROM named
  GROUP BY run, rank, called
), late AS (
  -- For which rank each waited longest.
  SELECT n.run, n.rank, l.rank AS late, l.called, sum(n.wait_time) AS skew_time, count(*) AS collectives
  FROM named n JOIN named l ON l.task = n.last_task
  WHERE l.rank <> n.rank
  GROUP BY n.run, n.rank, l.rank, l.called
  QUALIFY row_number() OVER (PARTITION BY n.run, n.rank ORDER BY sum(n.wait_time) DESC, l.rank) = 1
)
SELECT 'Ranks waited for each other in collectives'
  || CASE WHEN t.on_device THEN ', whose kernels run meanwhile' WHEN t.on_threads THEN ', which are recorded as tasks (the threads that wait for those idle)'
    ELSE '' END
  || ': ' || t.called || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || t.run ELSE '' END
  || ' longest, ' || time_text(t.skew_time) || ' in ' || t.collectives || CASE t.collectives WHEN 1 THEN ' collective' ELSE ' collectives' END
  || CASE WHEN l.late IS NOT NULL THEN ', of which ' || time_text(l.skew_time) || ' for ' || l.called || ', the last one in ' || l.collectives ELSE '' END
  || '; the transfers then took ' || time_text(t.transfer_time) || ' (see Who waits for whom in collectives).' AS fact
FROM totals t
JOIN runs r ON r.run = t.run
LEFT JOIN late l ON l.run = t.run AND l.rank = t.rank
-- Beside what is computed, a little does not matter.
WHERE t.skew_time > CASE WHEN t.on_threads THEN 0 ELSE 0.02 * r.makespan END
ORDER BY t.skew_time DESC, r.run_number, t.rank
LIMIT 1
