-- title: In a sentence: how much the devices compute, and which kernel takes most
-- topic: facts
-- needs: tasks.kind=kernel
--
WITH sums AS (
  SELECT count(*) AS devices, sum(total_time) AS total, sum(computing_time) AS computing,
    sum(computing_or_communicating_time) - sum(computing_time) AS communicating, sum(total_time) - sum(busy_time) AS idle,
    first_value(device ORDER BY 1.0 * (total_time - busy_time) / total_time DESC, run, device) AS idlest,
    max(1.0 * (total_time - busy_time) / total_time) AS most_idle
  FROM gpu.devices
  WHERE total_time > 0
), kernels AS (
  SELECT name, count(*) AS tasks, sum(duration) AS total_time, sum(sum(duration)) OVER () AS all_time
  FROM program_tasks
  WHERE kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
  GROUP BY name
  QUALIFY row_number() OVER (ORDER BY sum(duration) DESC, name) = 1
)
SELECT CASE (SELECT count(*) FROM runs) WHEN 1 THEN 'In the ' || (SELECT time_text(makespan) FROM runs) || ' of the run, ' ELSE 'In all runs, ' END
  || CASE devices WHEN 1 THEN 'the device computed ' ELSE 'the ' || devices || ' devices computed ' END
  || round(100.0 * computing / total, 1) || CASE devices WHEN 1 THEN ' % of its time' ELSE ' % of their time' END
  || CASE WHEN communicating > 0 THEN ', communicated without computing ' || round(100.0 * communicating / total, 1) || ' %' ELSE '' END
  || ' and idled ' || round(100.0 * idle / total, 1) || ' %'
  || CASE WHEN devices > 1 THEN ' (' || idlest || ' most, ' || round(100 * most_idle, 1) || ' %)' ELSE '' END
  || '; of what ran on ' || CASE devices WHEN 1 THEN 'it' ELSE 'them' END || ', ' || k.name || ' took most: ' || time_text(k.total_time) || ' in '
  || k.tasks || CASE WHEN k.tasks = 1 THEN ' task, ' ELSE ' tasks, ' END || round(100.0 * k.total_time / k.all_time, 1) || ' %.' AS fact, k.name
FROM sums
CROSS JOIN kernels k
WHERE devices > 0
