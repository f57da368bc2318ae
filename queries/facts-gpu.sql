-- title: In a sentence: how much the devices compute, and which kernel takes most
-- topic: facts
-- needs: tasks.kind=kernel
--
WITH device AS (
  SELECT t.run, coalesce(l.parent, l.location) AS device, t.role, t.start, t.finish
  FROM program_tasks t
  JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE l.kind = 'stream' AND t.kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
), unions AS (
  SELECT run, device, max(finish) - min(start) AS total, busy(start, finish) AS busy,
    coalesce(busy(start, finish) FILTER (WHERE role = 'work'), 0) AS computing,
    coalesce(busy(start, finish) FILTER (WHERE role <> 'copy'), 0) AS computing_or_communicating
  FROM device
  GROUP BY run, device
), sums AS (
  SELECT count(*) AS devices, sum(total) AS total, sum(computing) AS computing,
    sum(computing_or_communicating) - sum(computing) AS communicating, sum(total) - sum(busy) AS idle,
    first_value(device ORDER BY 1.0 * (total - busy) / total DESC, run, device) AS idlest,
    max(1.0 * (total - busy) / total) AS most_idle
  FROM unions
  WHERE total > 0
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
