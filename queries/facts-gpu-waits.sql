-- title: In a sentence: what the streams of the devices waited for
-- topic: facts
-- needs: tasks.kind=kernel
--
-- As in gpu-idle-gaps: a gap is the time between two kernels or copies of a stream in which it runs nothing, and waits for the host until the next
-- one was launched. Streams that only communicate wait for what computes, and where devices hardly idle it does not matter what single streams
-- wait for.
WITH longest AS (
  SELECT run FROM runs WHERE makespan > 0 ORDER BY makespan DESC, run_number LIMIT 1
), streams AS (
  SELECT location FROM gpu.device_tasks WHERE run = (SELECT run FROM longest) AND role <> 'communication' GROUP BY location
), devices AS (
  SELECT sum(d.total_time) AS total_time, sum(d.busy_time) AS busy_time, max(r.makespan) AS makespan, count(*) AS devices
  FROM gpu.devices d
  JOIN runs r ON r.run = d.run
  WHERE d.run = (SELECT run FROM longest)
), named AS (
  SELECT location, duration, CASE waits_for WHEN 'host' THEN 'the host, which launched their next kernel only then'
    WHEN 'kernel start' THEN 'the start of a kernel that was launched already' WHEN 'launch call' THEN 'the calls that launched their next kernel, which themselves went on until it began'
    ELSE 'other streams, or what is not recorded' END AS waits_for
  FROM gpu.stream_waits
  WHERE run = (SELECT run FROM longest) AND location IN (SELECT location FROM streams)
)
SELECT CASE WHEN (SELECT count(*) FROM program_locations WHERE kind = 'stream' AND role = 'communication') > 0 THEN 'Idle streams that compute ' ELSE 'Idle streams ' END || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'of ' || (SELECT run FROM longest) || ' ' ELSE '' END || 'waited mostly for ' || waits_for || ': ' || time_text(sum(duration)) || CASE WHEN count(*) = 1 THEN ' in one gap' ELSE ', added up over ' || count(*) || ' gaps' END
  || CASE WHEN count(DISTINCT location) > 1 THEN ' on ' || count(DISTINCT location) || ' streams, ' ELSE ', ' END || round(100.0 * sum(duration) / sum(sum(duration)) OVER (), 1)
  || ' % of the time between their tasks.' AS fact
FROM named
CROSS JOIN devices
WHERE busy_time < 0.95 * total_time
GROUP BY waits_for
HAVING sum(duration) > 0
QUALIFY row_number() OVER (ORDER BY sum(duration) DESC, waits_for) = 1
UNION ALL
SELECT CASE WHEN (SELECT count(*) FROM gpu.devices WHERE run = (SELECT run FROM longest)) > 1 THEN 'The devices' ELSE 'The device' END
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || (SELECT run FROM longest) ELSE '' END
  || CASE WHEN 10 * total_time < devices * makespan THEN ' had next to nothing to do: from first to last task there are ' || time_text(total_time / devices)
       || CASE devices WHEN 1 THEN '' ELSE ' on average' END || ', of the '
       || time_text(makespan) || ' that the run took.'
     ELSE ' waited for little: something ran for ' || round(100.0 * busy_time / total_time, 1) || ' % of the time between first and last task.' END AS fact
FROM devices
WHERE total_time > 0 AND busy_time >= 0.95 * total_time
