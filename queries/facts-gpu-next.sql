-- title: In a sentence: where to look next in a run on devices
-- topic: facts
-- needs: tasks.kind=kernel
--
-- Devices compute most of the time where all is well: it is what they do where nothing else takes a fifth of it.
WITH longest AS (
  SELECT run, makespan FROM runs WHERE makespan > 0 ORDER BY makespan DESC, run_number LIMIT 1
), sums AS (
  SELECT sum(d.total_time) AS total, sum(r.makespan) AS makespan, sum(d.computing_time) AS computing,
    sum(d.computing_or_communicating_time) - sum(d.computing_time) AS communicating,
    sum(d.busy_time) - sum(d.computing_or_communicating_time) AS copying, sum(d.total_time) - sum(d.busy_time) AS idle
  FROM gpu.devices d
  JOIN longest r ON r.run = d.run
  WHERE d.total_time > 0
), skew AS (
  SELECT coalesce(sum(wait_time), 0) AS skew_time, coalesce(sum(transfer_time), 0) AS transfer_time
  FROM collectives
  WHERE on_device AND run = (SELECT run FROM longest)
), kernels AS (
  SELECT role, name, sum(duration) AS total_time
  FROM program_tasks
  WHERE kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph') AND run = (SELECT run FROM longest)
  GROUP BY role, name
  QUALIFY row_number() OVER (PARTITION BY role ORDER BY sum(duration) DESC, name) = 1
), calls AS (
  -- A call that waits for a device does not make it idle.
  SELECT name, count(*) AS calls, sum(duration) AS total_time
  FROM program_tasks
  WHERE kind IN ('cuda_runtime', 'cuda_driver') AND role <> 'wait' AND run = (SELECT run FROM longest)
  GROUP BY name
  QUALIFY row_number() OVER (ORDER BY sum(duration) DESC, name) = 1
), host AS (
  SELECT t.name, sum(s.self_time) AS total_time
  FROM self_time(working_spans) s
  JOIN working_tasks t ON t.task = s.task
  JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE l.kind <> 'stream' AND t.role <> 'wait' AND t.kind NOT IN ('cuda_runtime', 'cuda_driver') AND t.run = (SELECT run FROM longest)
  GROUP BY t.name
  QUALIFY row_number() OVER (ORDER BY sum(s.self_time) DESC, t.name) = 1
), h AS (
  SELECT max(name) AS name, max(total_time) AS total_time FROM host
), c AS (
  -- One row, whether there are calls or not.
  SELECT max(name) AS name, max(calls) AS calls, max(total_time) AS total_time FROM calls
), k AS (
  SELECT max(name) FILTER (WHERE role = 'work') AS work_name, max(total_time) FILTER (WHERE role = 'work') AS work_time,
    max(name) FILTER (WHERE role = 'communication') AS communication_name,
    max(total_time) FILTER (WHERE role = 'communication') AS communication_time,
    max(name) FILTER (WHERE role = 'copy') AS copy_name, max(total_time) FILTER (WHERE role = 'copy') AS copy_time
  FROM kernels
)
SELECT 'Look next at '
  || CASE
       -- Computing is what devices are for.
       WHEN makespan - total > greatest(idle, 0.5 * computing, communicating, copying)
         THEN 'what the host does before and after the devices work (see Where the time went): they had no task yet, or no more, for '
           || round(100.0 * (makespan - total) / makespan, 1) || ' % of the run'
           || CASE WHEN h.total_time > coalesce(c.total_time, 0) AND h.name <> '' THEN '; the host spent most on ' || h.name || ', ' || time_text(h.total_time) || '.'
             WHEN c.total_time > 0 THEN '; the host spent most in ' || c.name || ', ' || time_text(c.total_time) || '.'
             ELSE '.' END
       WHEN idle >= greatest(0.2 * total, communicating, copying) THEN 'why the devices idle (see What streams wait for)'
         || CASE WHEN h.total_time > coalesce(c.total_time, 0) AND h.name <> '' THEN '; the host spent most on ' || h.name || ', ' || time_text(h.total_time) ELSE '' END
         || CASE WHEN c.total_time > 0 THEN '; of the calls of the host, ' || c.name || ' took most: ' || time_text(c.total_time) || ' in '
           || c.calls || CASE WHEN c.calls = 1 THEN ' call (see Launches)' ELSE ' calls (see Launches)' END ELSE '' END
         || CASE WHEN h.total_time > 0 AND h.total_time <= c.total_time AND h.name <> '' THEN '; of what else it did, ' || h.name || ', ' || time_text(h.total_time) || '.'
           ELSE '.' END
       WHEN communicating >= greatest(0.2 * total, copying) AND skew_time > transfer_time
         THEN 'why ranks come late to collectives (see Who waits for whom in collectives): of ' || time_text(skew_time + transfer_time) || ' that devices spend in them, '
           || time_text(skew_time) || ' are waiting for the last rank.'
       WHEN communicating >= greatest(0.2 * total, copying) THEN 'communication that no computing hides (see How much communication is hidden)'
         || coalesce('; ' || communication_name || ' takes most, ' || time_text(communication_time) || ' in all, hidden or not.', '.')
       WHEN copying >= 0.2 * total THEN 'copies that no computing hides (see How the devices spend their time)'
         || coalesce('; ' || copy_name || ' takes most, ' || time_text(copy_time) || ' in all, hidden or not.', '.')
       ELSE 'the kernels that compute (see Kernels), the largest part of the devices'' time' || coalesce('; ' || work_name || ' takes most, '
         || time_text(work_time) || '.', '.')
     END AS fact, c.name, h.name AS host_name, work_name, communication_name, copy_name
FROM sums
CROSS JOIN skew
CROSS JOIN c
CROSS JOIN h
CROSS JOIN k
WHERE total > 0
