-- title: How each device spends its time: computing, exposed communication, exposed copies, idle
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: stacked x=device y=time color=part relative=true
--
WITH device AS (
  -- Work on streams by its role; waits are no work. Nothing is trimmed or rounded.
  SELECT t.run, coalesce(l.parent, l.location) AS device, t.role, t.start, t.finish
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE l.kind = 'stream' AND t.kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
), unions AS (
  SELECT run, device, max(finish) - min(start) AS total, busy(start, finish) AS busy,
    coalesce(busy(start, finish) FILTER (WHERE role = 'work'), 0) AS computing,
    coalesce(busy(start, finish) FILTER (WHERE role <> 'copy'), 0) AS computing_or_communicating
  FROM device
  GROUP BY run, device
), parts AS (
  SELECT run, device, total, unnest(make_array(
      named_struct('place', 1, 'part', 'computing', 'time', computing),
      named_struct('place', 2, 'part', 'exposed communication', 'time', computing_or_communicating - computing),
      named_struct('place', 3, 'part', 'exposed copies', 'time', busy - computing_or_communicating),
      named_struct('place', 4, 'part', 'idle', 'time', total - busy))) AS entry
  FROM unions
)
SELECT run, device, entry['part'] AS part, entry['time'] AS time, round(100.0 * entry['time'] / nullif(total, 0), 2) AS percent
FROM parts
ORDER BY run, device, entry['place']
