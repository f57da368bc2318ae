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
)
SELECT 'Look next at '
  || CASE
       WHEN idle >= greatest(computing, communicating, copying) THEN 'why the devices idle (see What streams wait for)'
         || CASE WHEN c.total_time > 0 THEN '; of the calls of the host, ' || c.name || ' took most: ' || time_text(c.total_time) || ' in '
           || c.calls || CASE WHEN c.calls = 1 THEN ' call (see Launches).' ELSE ' calls (see Launches).' END ELSE '.' END
       WHEN communicating >= greatest(computing, copying) THEN 'communication that no computing hides (see How much communication is hidden)'
         || coalesce('; ' || m.name || ' takes most, ' || time_text(m.total_time) || '.', '.')
       WHEN copying > computing THEN 'copies that no computing hides (see How the devices spend their time)'
         || coalesce('; ' || y.name || ' takes most, ' || time_text(y.total_time) || '.', '.')
       ELSE 'the kernels that compute (see Kernels), the largest part of the devices'' time' || coalesce('; ' || w.name || ' takes most, '
         || time_text(w.total_time) || '.', '.')
     END AS fact, c.name, w.name AS work_name, m.name AS communication_name, y.name AS copy_name
FROM sums
LEFT JOIN calls c ON true
LEFT JOIN kernels w ON w.role = 'work'
LEFT JOIN kernels m ON m.role = 'communication'
LEFT JOIN kernels y ON y.role = 'copy'
WHERE total > 0
