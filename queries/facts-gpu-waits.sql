-- title: In a sentence: what the streams of the devices waited for
-- topic: facts
-- needs: tasks.kind=kernel
--
-- As in gpu-idle-gaps: a gap is the time between two kernels or copies of a stream in which it runs nothing, and waits for the host until the next
-- one was launched. Streams that only communicate wait for
-- what computes, and where devices hardly idle it does not matter what single streams wait for.
WITH longest AS (
  SELECT run FROM runs WHERE makespan > 0 ORDER BY makespan DESC, run_number LIMIT 1
), work AS (
  SELECT t.* FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE t.run = (SELECT run FROM longest) AND l.kind = 'stream' AND t.kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
), streams AS (
  SELECT * FROM work WHERE location IN (SELECT location FROM work WHERE role <> 'communication')
), devices AS (
  SELECT sum(total_time) AS total_time, sum(busy_time) AS busy_time FROM gpu.devices WHERE run = (SELECT run FROM longest)
), launches AS (
  SELECT k.target AS task, max(c.start) AS launch_time
  FROM links k JOIN program_tasks c ON c.task = k.source
  WHERE k.kind = 'launch'
  GROUP BY k.target
), idle AS (
  SELECT g.location, g.duration, least(greatest(l.launch_time - g.start, 0), g.duration) AS host_time
  FROM gaps(streams) g LEFT JOIN launches l ON l.task = g.task_after
), named AS (
  SELECT location, 'the host, which launched their next kernel only then' AS waits_for, host_time AS duration FROM idle WHERE host_time > 0
  UNION ALL
  SELECT location, CASE WHEN duration - coalesce(host_time, 0) < us(30) THEN 'the start of a kernel that was launched already'
    ELSE 'other streams or what is not recorded, not for a launch' END, duration - coalesce(host_time, 0)
  FROM idle
  WHERE duration > coalesce(host_time, 0)
)
SELECT CASE WHEN (SELECT count(*) FROM program_locations WHERE kind = 'stream' AND role = 'communication') > 0 THEN 'Idle streams that compute ' ELSE 'Idle streams ' END || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'of ' || (SELECT run FROM longest) || ' ' ELSE '' END || 'waited mostly for ' || waits_for || ': ' || time_text(sum(duration)) || CASE WHEN count(*) = 1 THEN ' in one gap' ELSE ', added up over ' || count(*) || ' gaps' END
  || CASE WHEN count(DISTINCT location) > 1 THEN ' on ' || count(DISTINCT location) || ' streams, ' ELSE ', ' END || round(100.0 * sum(duration) / sum(sum(duration)) OVER (), 1)
  || ' % of the time between their tasks.' AS fact
FROM named
CROSS JOIN devices
WHERE busy_time < 0.95 * total_time
GROUP BY waits_for
HAVING sum(duration) > 0
ORDER BY sum(duration) DESC, waits_for
LIMIT 1
