-- title: In a sentence: how long the longest run took, and how busy its locations were
-- topic: facts
-- needs: tasks
--
-- Asynchronous spans and states of threads (locations of kind async and state) run nothing and are left out.
WITH full_runs AS (
  SELECT run, count(*) AS lanes, sum(busy_time) AS busy_time FROM busy_lanes GROUP BY run
)
SELECT CASE
       WHEN slice_from() IS NOT NULL OR slice_to() IS NOT NULL THEN 'The tasks that touch the slice'
         || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ', of ' || r.run || ',' ELSE '' END || ' span '
       WHEN (SELECT count(*) FROM runs) > 1 THEN 'The longest run, ' || r.run || ', took '
       ELSE 'The run took '
     END
  || time_text(r.makespan) || ' from the first start to the last finish'
  || CASE
       WHEN r.makespan = 0 OR f.lanes IS NULL THEN '.'
       WHEN f.lanes = 1 THEN '; its one location was busy for ' || round(100.0 * f.busy_time / r.makespan, 1) || ' % of that.'
       ELSE '; its ' || f.lanes || ' locations were busy for ' || round(100.0 * f.busy_time / f.lanes / r.makespan, 1) || ' % of that.'
     END AS fact
FROM runs r
LEFT JOIN full_runs f ON f.run = r.run
WHERE r.makespan IS NOT NULL
ORDER BY r.makespan DESC, r.run_number
LIMIT 1
