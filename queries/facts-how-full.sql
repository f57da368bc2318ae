-- title: In a sentence: how long the longest run took, how busy its locations were, and with what most
-- topic: facts
-- needs: tasks.start, no tasks.kind=kernel, no runs.time_unit=weights, no executions
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH full_runs AS (
  SELECT run, count(*) AS lanes, sum(busy_time) AS busy_time, count(*) FILTER (WHERE busy_time = 0) AS idle_lanes FROM busy_lanes GROUP BY run
), beside AS (
  SELECT run, count(*) AS locations FROM (SELECT run, location FROM program_locations EXCEPT SELECT run, location FROM working_locations) GROUP BY run
), names AS (
  SELECT run, name, tasks, work_time AS total_time, sum(work_time) OVER (PARTITION BY run) AS all_time
  FROM work_by_name
  QUALIFY row_number() OVER (PARTITION BY run ORDER BY work_time DESC NULLS LAST, name) = 1
)
SELECT CASE
       WHEN slice_from() IS NULL AND slice_to() IS NULL THEN CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'The' ELSE 'The run' END
       ELSE CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Within the slice, the' ELSE 'Within the slice, the run' END
     END
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' longest run, ' || r.run || ',' ELSE '' END || ' took '
  || time_text(r.makespan) || ' from the first start to the last finish'
  || CASE
       WHEN r.makespan = 0 OR f.lanes IS NULL THEN ''
       WHEN f.lanes = 1 THEN '; its one location' || CASE WHEN b.locations > 0 THEN ' that executes tasks' ELSE '' END || ' was busy ' || CASE r.format WHEN 'parsec' THEN 'with task bodies or the runtime ' ELSE '' END || 'for ' || round(100.0 * f.busy_time / r.makespan, 1) || ' % of that'
       ELSE '; its ' || f.lanes || ' locations' || CASE WHEN b.locations > 0 THEN ' that execute tasks' ELSE '' END || ' were busy ' || CASE r.format WHEN 'parsec' THEN 'with task bodies or the runtime ' ELSE '' END || 'for ' || round(100.0 * f.busy_time / f.lanes / r.makespan, 1) || ' % of that on average'
         || CASE f.idle_lanes WHEN 0 THEN '' ELSE ' (' || f.idle_lanes || ' of them never)' END
     END
  || CASE
       WHEN n.total_time > 0 THEN '; ' || CASE WHEN n.name = '' THEN 'tasks without a name' ELSE n.name END || ' took most: '
         || time_text(n.total_time) || ' in ' || n.tasks || CASE WHEN n.tasks = 1 THEN ' task, ' ELSE ' tasks, ' END
         || round(100.0 * n.total_time / n.all_time, 1) || ' % of the time of tasks themselves.'
       ELSE '.'
     END AS fact, n.name
FROM runs r
LEFT JOIN full_runs f ON f.run = r.run
LEFT JOIN beside b ON b.run = r.run
LEFT JOIN names n ON n.run = r.run
WHERE r.makespan IS NOT NULL
ORDER BY r.makespan DESC, r.run_number
LIMIT 1
