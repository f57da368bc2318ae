-- title: How each device spends the time from its first task to its last: computing, exposed communication, exposed copies, idle
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: stacked x=device y=total_time color=part panel=run
--
WITH parts AS (
  SELECT run, device, total_time, unnest(make_array(
      named_struct('place', 1, 'part', 'computing', 'time', computing_time),
      named_struct('place', 2, 'part', 'exposed communication', 'time', computing_or_communicating_time - computing_time),
      named_struct('place', 3, 'part', 'exposed copies', 'time', busy_time - computing_or_communicating_time),
      named_struct('place', 4, 'part', 'idle', 'time', total_time - busy_time))) AS entry
  FROM gpu.devices
)
SELECT run, device, entry['part'] AS part, entry['time'] AS total_time, round(100.0 * entry['time'] / nullif(total_time, 0), 2) AS percent
FROM parts
ORDER BY device, entry['place'], run
