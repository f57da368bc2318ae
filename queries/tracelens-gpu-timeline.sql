-- title: TraceLens' GPU timeline: how each rank's device spends its time, and what communication and copies add to computing
-- topic: gpu
-- needs: tasks.kind=kernel
-- chart: bar x=time y=type_of_rank color=run
--
WITH device AS (
  -- Every kernel, copy and memset, nothing trimmed or rounded. ROCm 7.1 labels copies as kernels; a memset counts as computing.
  SELECT r.run, r.rank, t.task, t.start, t.finish, CASE
      WHEN t.kind = 'gpu_memcpy' OR (t.kind = 'kernel' AND t.name ~
        '^(MEMORY_COPY_(HOST_TO_DEVICE|DEVICE_TO_HOST|DEVICE_TO_DEVICE)|__amd_rocclr_copyBuffer(Rect)?(Aligned)?)(\.kd)?$') THEN 'memcpy'
      WHEN t.name ~* 'nccl|rccl|cross_device_reduce' THEN 'comm' ELSE 'computation' END AS class
  FROM program_tasks t JOIN hta.ranks r ON r.run = t.run AND r.location = t.location
  WHERE t.kind IN ('kernel', 'gpu_memcpy', 'gpu_memset')
), ordered AS (
  -- The idle gap before a span: from the latest finish so far.
  SELECT run, rank, class, start, finish, start - max(finish)
    OVER (PARTITION BY run, rank ORDER BY start, task ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS gap
  FROM device
), unions AS (
  SELECT run, rank, max(finish) - min(start) AS total, busy(start, finish) AS busy,
    busy(start, finish) FILTER (WHERE class = 'computation') AS computation,
    busy(start, finish) FILTER (WHERE class = 'comm') AS comm, busy(start, finish) FILTER (WHERE class = 'memcpy') AS memcpy,
    busy(start, finish) FILTER (WHERE class <> 'memcpy') AS computation_or_comm,
    coalesce(sum(gap) FILTER (WHERE gap > 0 AND gap < us(10)), 0) AS micro_idle,
    coalesce(sum(gap) FILTER (WHERE gap >= us(10)), 0) AS macro_idle
  FROM ordered
  GROUP BY run, rank
), parts AS (
  -- Exposed is what a class adds to the union of those before it. Computing + exposed + idle = total.
  SELECT run, rank, total, unnest(make_array(
      named_struct('place', 1, 'type', 'computation_time', 'time', computation),
      named_struct('place', 2, 'type', 'exposed_comm_time', 'time', computation_or_comm - computation),
      named_struct('place', 3, 'type', 'exposed_memcpy_time', 'time', busy - computation_or_comm),
      named_struct('place', 4, 'type', 'busy_time', 'time', busy),
      named_struct('place', 5, 'type', 'idle_time', 'time', total - busy),
      named_struct('place', 6, 'type', 'total_time', 'time', total),
      named_struct('place', 7, 'type', 'total_comm_time', 'time', comm),
      named_struct('place', 8, 'type', 'total_memcpy_time', 'time', memcpy),
      named_struct('place', 9, 'type', 'micro_idle_time', 'time', micro_idle),
      named_struct('place', 10, 'type', 'macro_idle_time', 'time', macro_idle))) AS part
  FROM unions
)
SELECT run, rank, part['type'] AS type, part['time'] AS time, round(100.0 * part['time'] / nullif(total, 0), 6) AS percent,
  CASE WHEN min(rank) OVER () < max(rank) OVER () THEN 'rank ' || rank || ': ' ELSE '' END || part['type'] AS type_of_rank
FROM parts
ORDER BY rank, part['place'], run
