-- title: In a sentence: where to look next in a run on devices
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
  SELECT sum(total) AS total, sum(computing) AS computing, sum(computing_or_communicating) - sum(computing) AS communicating,
    sum(busy) - sum(computing_or_communicating) AS copying, sum(total) - sum(busy) AS idle
  FROM unions
  WHERE total > 0
), kernels AS (
  SELECT role, name, sum(duration) AS total_time
  FROM program_tasks
  WHERE kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
  GROUP BY role, name
  QUALIFY row_number() OVER (PARTITION BY role ORDER BY sum(duration) DESC, name) = 1
), calls AS (
  SELECT name, count(*) AS calls, sum(duration) AS total_time
  FROM program_tasks
  WHERE kind IN ('cuda_runtime', 'cuda_driver')
  GROUP BY name
  QUALIFY row_number() OVER (ORDER BY sum(duration) DESC, name) = 1
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
       WHEN idle >= greatest(computing, communicating, copying) THEN 'why the devices idle (see What streams wait for)'
         || CASE WHEN c.total_time > 0 THEN '; of the calls of the host, ' || c.name || ' took most: ' || time_text(c.total_time) || ' in '
           || c.calls || CASE WHEN c.calls = 1 THEN ' call (see Launches).' ELSE ' calls (see Launches).' END ELSE '.' END
       WHEN communicating >= greatest(computing, copying) THEN 'communication that no computing hides (see How much communication is hidden)'
         || coalesce('; ' || communication_name || ' takes most, ' || time_text(communication_time) || '.', '.')
       WHEN copying > computing THEN 'copies that no computing hides (see How the devices spend their time)'
         || coalesce('; ' || copy_name || ' takes most, ' || time_text(copy_time) || '.', '.')
       ELSE 'the kernels that compute (see Kernels), the largest part of the devices'' time' || coalesce('; ' || work_name || ' takes most, '
         || time_text(work_time) || '.', '.')
     END AS fact, c.name, work_name, communication_name, copy_name
FROM sums
CROSS JOIN c
CROSS JOIN k
WHERE total > 0
