-- title: In a sentence: how much the devices compute, and which kernel takes most
-- topic: facts
-- needs: tasks.kind=kernel
--
WITH longest AS (
  SELECT run, makespan FROM runs WHERE makespan > 0 ORDER BY makespan DESC, run_number LIMIT 1
), sums AS (
  SELECT count(*) AS devices, sum(d.total_time) AS total, sum(r.makespan) AS makespan, sum(d.computing_time) AS computing,
    sum(d.computing_or_communicating_time) - sum(d.computing_time) AS communicating,
    sum(d.busy_time) - sum(d.computing_or_communicating_time) AS copying, sum(d.total_time) - sum(d.busy_time) AS idle,
    first_value(d.device ORDER BY 1.0 * (d.total_time - d.busy_time) / d.total_time DESC, d.run, d.device) AS idlest,
    max(1.0 * (d.total_time - d.busy_time) / d.total_time) AS most_idle,
    nth_value(1.0 * (d.total_time - d.busy_time) / d.total_time, 2 ORDER BY 1.0 * (d.total_time - d.busy_time) / d.total_time DESC) AS next_idle
  FROM gpu.devices d
  JOIN longest r ON r.run = d.run
  WHERE d.total_time > 0
), kernels AS (
  SELECT name, min(role) AS role, count(*) AS tasks, sum(duration) AS total_time, sum(sum(duration)) OVER () AS all_time
  FROM program_tasks
  WHERE kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph') AND run = (SELECT run FROM longest)
  GROUP BY name
  QUALIFY row_number() OVER (ORDER BY sum(duration) DESC, name) = 1
)
SELECT CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN 'The ' ELSE 'Within the slice, the ' END
  || CASE (SELECT count(*) FROM runs) WHEN 1 THEN 'run took ' ELSE 'longest run, ' || (SELECT run FROM longest) || ', took ' END
  || (SELECT time_text(makespan) FROM longest) || '; its '
  || CASE devices WHEN 1 THEN 'device' ELSE devices || ' devices' END || ' had tasks in '
  || round(100.0 * total / makespan, 1) || ' % of that' || CASE devices WHEN 1 THEN '' ELSE ' on average' END || ', from the first to the last one, and in this time computed '
  || round(100.0 * computing / total, 1) || ' %'
  || CASE WHEN communicating > 0 THEN ', communicated without computing ' || round(100.0 * communicating / total, 1) || ' %' ELSE '' END
  || CASE WHEN copying > 0 THEN ', copied without ' || CASE WHEN communicating > 0 THEN 'either ' ELSE 'computing ' END || round(100.0 * copying / total, 1) || ' %' ELSE '' END
  || ' and idled ' || round(100.0 * idle / total, 1) || ' %'
  -- One of several that idle alike did not idle most.
  || CASE WHEN round(100 * most_idle, 1) > round(100 * next_idle, 1) THEN ' (' || idlest || ' most, ' || round(100 * most_idle, 1) || ' %)' ELSE '' END
  || '; of the tasks there, ' || k.name || ' took most: ' || time_text(k.total_time) || ' in '
  || k.tasks || CASE WHEN k.tasks = 1 THEN ' task, ' ELSE ' tasks, ' END || round(100.0 * k.total_time / k.all_time, 1) || ' % of the time of all, added up'
  || CASE WHEN k.role = 'work' THEN '' WHEN computing = 0 THEN '' ELSE ' and hidden by computing or not' END || '.' AS fact, k.name
FROM sums
CROSS JOIN kernels k
WHERE devices > 0
