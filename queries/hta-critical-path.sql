-- title: HTA's critical path: how long it is, and whether the host, kernels or their delays bound it
-- topic: gpu
-- needs: tasks.kind=kernel
-- param annotation: TEXT = '' -- only within spans whose name contains this; '' is the whole trace
-- param instance: BIGINT = 0 -- which of those spans, counted from 0
-- chart: bar x=critical_path_time y=rank color=run
--
-- HTA has a graph of starts and ends whose edges have weights. Here each weighted edge is a task of that length, and each start or end
-- a task of no length. Where several paths are equally long, HTA may choose another one; then the parts differ, but not the sum.
WITH events AS (
  SELECT *,
    -- A wait for an event names the call that recorded it, and the stream on which.
    CASE WHEN kind = 'cuda_sync' THEN json_get_int(args, 'wait_on_stream') END AS awaited_stream,
    CASE WHEN kind = 'cuda_sync' THEN json_get_int(args, 'wait_on_cuda_event_record_corr_id')
      WHEN name = 'cudaEventRecord' THEN json_get_int(args, 'correlation') END AS event
  FROM hta.spans
), paired AS (
  -- A call and what it launched have one correlation; of several, the last one counts.
  SELECT *, min(name) FILTER (WHERE is_step) OVER (PARTITION BY run) < max(name) FILTER (WHERE is_step) OVER (PARTITION BY run) AS is_cut,
    NOT is_device AND start < max(start) FILTER (WHERE is_step AND NOT is_device) OVER (PARTITION BY run, rank) AS is_early,
    CASE WHEN correlation <> -1 THEN max(task) FILTER (WHERE is_device) OVER same END AS work_task,
    CASE WHEN correlation <> -1 THEN max(task) FILTER (WHERE NOT is_device) OVER same END AS call_task
  FROM events
  WINDOW same AS (PARTITION BY run, rank, correlation)
), trimmed AS (
  -- Trimming: with two or more profiler steps, the host's spans that start before the last one, and what those launched.
  SELECT *, is_device AND correlation >= 0 AND bool_or(is_early) OVER (PARTITION BY run, rank, correlation) AS is_of_early
  FROM paired
), kept AS (
  SELECT *, $annotation <> '' AND strpos(name, $annotation) > 0 AS is_annotation
  FROM trimmed
  WHERE is_cut IS NOT TRUE OR is_early OR is_of_early
), numbered AS (
  SELECT *, is_annotation AND $instance + 1 = row_number() OVER (PARTITION BY run, rank, is_annotation
    ORDER BY is_cut AND is_device DESC, task) AS is_window
  FROM kept
), bounded AS (
  -- Of the host: what starts in the window, and lasts.
  SELECT *, stream = -1 AND start < finish AND ($annotation = '' OR (start >= max(start) FILTER (WHERE is_window) OVER of_rank
    AND start <= max(finish) FILTER (WHERE is_window) OVER of_rank)) AS is_inside
  FROM numbered
  WINDOW of_rank AS (PARTITION BY run, rank)
), spans AS (
  -- Of a device: what calls in the window launched; and all waits for events.
  SELECT *, is_inside OR (stream <> -1 AND ((task = work_task AND bool_or(is_inside AND NOT is_device) OVER same) OR name = 'Stream Wait Event')) AS is_in,
    is_inside AND kind IN ('cpu_op', 'cuda_runtime', 'cuda_driver') AS is_call,
    NOT is_device AND work_task IS NOT NULL AND is_launch_call AS is_launch
  FROM bounded
  WINDOW same AS (PARTITION BY run, rank, correlation)
), threads AS (
  SELECT *, max(stream) OVER (PARTITION BY run, rank, location) < 0 AS is_host FROM spans WHERE is_in
), marks AS (
  SELECT run, rank, location, task, kind IN ('cpu_op', 'cuda_runtime', 'cuda_driver') AS is_call, start, finish, name IN (
      'cudaDeviceSynchronize', 'cudaStreamSynchronize', 'cudaEventQuery', 'cudaEventSynchronize', 'cudaMemcpy', 'cudaMemcpyAsync') AS is_blocking,
    unnest(make_array(1, -1)) AS change
  FROM threads
  WHERE is_host
), ordered AS (
  SELECT *, row_number() OVER nesting AS place,
    sum(change) OVER nesting + CASE WHEN change < 0 THEN 1 ELSE 0 END AS level
  FROM marks
  -- Ends before starts, and the outer one starts first and ends last.
  WINDOW nesting AS (PARTITION BY run, rank, location ORDER BY CASE WHEN change > 0 THEN start ELSE finish END, change,
    change * (start - finish), change * task ROWS UNBOUNDED PRECEDING)
), closed AS (
  -- An end closes what was opened last, also where spans cross.
  SELECT run, rank, location, place, change,
    CASE WHEN change > 0 THEN is_call ELSE lag(is_call) OVER pair END AS is_call,
    CASE WHEN change > 0 THEN 2 * task ELSE 2 * lag(task) OVER pair + 1 END AS node,
    CASE WHEN change > 0 THEN start ELSE lag(finish) OVER pair END AS time,
    change < 0 AND lag(is_blocking) OVER pair AS is_blocking
  FROM ordered
  WINDOW pair AS (PARTITION BY run, rank, location, level ORDER BY place)
), stacked AS (
  -- Spans that are no operators or calls (annotations, Python) are no part of the graph.
  SELECT *, sum(change) OVER (PARTITION BY run, rank, location ORDER BY place ROWS UNBOUNDED PRECEDING) AS level FROM closed WHERE is_call
), walked AS (
  SELECT *, lag(node) OVER walk AS source, lag(time) OVER walk AS source_time, lag(level) OVER walk AS level_before FROM stacked
  WINDOW walk AS (PARTITION BY run, rank, location ORDER BY place)
), host_edges AS (
  -- Within an outermost operator time passes, but not in a call that waits; between them it does not count.
  SELECT run, rank, source, source_time, node AS target, time AS target_time,
    CASE WHEN level_before = 0 OR is_blocking THEN 0 ELSE time - source_time END AS weight,
    CASE WHEN level_before > 0 THEN 'host' END AS part
  FROM walked
  WHERE source IS NOT NULL
), joined AS (
  -- What is launched on a stream, what waits there, and the calls for it, with what their partner says.
  SELECT run, rank, device, location, task, name, kind, stream, correlation, start, finish, is_in, is_launch, call_task, work_task,
    CASE WHEN awaited_stream IS NULL OR awaited_stream > -1 THEN event END AS event, max(awaited_stream) OVER recorded_event AS event_stream,
    max(CASE WHEN awaited_stream > -1 THEN device END) OVER recorded_event AS event_device, max(start) FILTER (WHERE task = call_task) OVER same AS call_start,
    max(finish) FILTER (WHERE task = call_task) OVER same AS call_finish,
    bool_or(is_call) FILTER (WHERE task = call_task) OVER same AS has_call, max(stream) FILTER (WHERE task = work_task) OVER same AS work_stream,
    max(device) FILTER (WHERE task = work_task) OVER same AS work_device, max(finish) FILTER (WHERE task = work_task) OVER same AS work_finish,
    bool_or(is_in) FILTER (WHERE task = work_task) OVER same AS work_is_in,
    stream <> -1 AND bool_or(is_launch) OVER same AS is_launched
  FROM spans
  WHERE is_launch OR stream <> -1 OR is_device OR name IN ('cudaEventRecord', 'cudaStreamWaitEvent') OR task = call_task
  WINDOW same AS (PARTITION BY run, rank, correlation), recorded_event AS (PARTITION BY run, rank, event)
), queued AS (
  -- Queue: one more when a call begins, one less when its kernel does. HTA's sort leaves open which of the two comes first at the
  -- same time; here the call does.
  SELECT *, sum(CASE WHEN is_launch THEN 1 ELSE -1 END) OVER (PARTITION BY run, rank,
      CASE WHEN is_launch THEN work_stream WHEN is_launched THEN stream END
      ORDER BY start, CASE WHEN is_launch THEN 0 ELSE 1 END, task ROWS UNBOUNDED PRECEDING) AS queue_length,
    -- How many launches of the same stream of the device come before the record of an event, and how many of the thread after a wait.
    CASE WHEN is_launch THEN work_device ELSE event_device END AS lane_device, CASE WHEN is_launch THEN work_stream ELSE event_stream END AS lane_stream,
    count(*) FILTER (WHERE is_launch) OVER (PARTITION BY run, rank, CASE WHEN is_launch THEN work_device ELSE event_device END,
      CASE WHEN is_launch THEN work_stream ELSE event_stream END ORDER BY start, CASE WHEN is_launch THEN 0 ELSE 1 END, task ROWS UNBOUNDED PRECEDING) AS launches_before,
    count(*) FILTER (WHERE is_launch) OVER (PARTITION BY run, rank, location, work_stream
      ORDER BY start DESC, CASE WHEN is_launch THEN 1 ELSE 0 END, task DESC ROWS UNBOUNDED PRECEDING) AS launches_after
  FROM joined
), related AS (
  SELECT *, CASE WHEN name = 'cudaEventRecord' THEN max(work_task) FILTER (WHERE is_launch) OVER before END AS recorded_task,
    max(work_finish) FILTER (WHERE is_launch) OVER before AS recorded_finish, bool_or(work_is_in) FILTER (WHERE is_launch) OVER before AS recorded_is_in,
    CASE WHEN name = 'cudaStreamWaitEvent' THEN max(work_task) FILTER (WHERE is_launch) OVER after END AS delayed_task
  FROM queued
  WINDOW before AS (PARTITION BY run, rank, lane_device, lane_stream, launches_before), after AS (PARTITION BY run, rank, location, work_stream, launches_after)
), awaited AS (
  SELECT *, max(recorded_task) OVER recorded_event AS source_task, max(recorded_finish) FILTER (WHERE recorded_task IS NOT NULL) OVER recorded_event AS source_finish,
    bool_or(recorded_is_in) FILTER (WHERE recorded_task IS NOT NULL) OVER recorded_event AS source_is_in,
    max(delayed_task) FILTER (WHERE task = call_task) OVER same AS target_task,
    max(queue_length) FILTER (WHERE task = call_task AND is_launch) OVER same AS call_length, kind = 'cuda_sync' AS is_sync
  FROM related
  WINDOW same AS (PARTITION BY run, rank, correlation), recorded_event AS (PARTITION BY run, rank, event)
), device_rows AS (
  SELECT *, CASE WHEN is_sync THEN finish ELSE start END AS turn, row_number() OVER (PARTITION BY run, rank, stream, is_sync ORDER BY task) AS number_of_stream
  FROM awaited
  WHERE is_in AND correlation >= 0 AND (stream <> -1 OR name IN ('Event Sync', 'Context Sync'))
), with_streams AS (
  SELECT *, array_agg(stream) FILTER (WHERE NOT is_sync AND number_of_stream = 1) OVER (PARTITION BY run, rank) AS streams FROM device_rows
), spread AS (
  -- A `Context Sync` waits for every stream.
  SELECT *, unnest(CASE WHEN is_sync AND name = 'Context Sync' THEN streams ELSE make_array(stream) END) AS lane FROM with_streams
), turns AS (
  -- In turn: kernels as they start, waits as they end.
  SELECT *, lag(task) OVER kernels AS task_before, lag(finish) OVER kernels AS finish_before,
    count(*) FILTER (WHERE NOT is_sync) OVER (PARTITION BY run, rank, lane ORDER BY turn, task ROWS UNBOUNDED PRECEDING) AS kernels_before,
    lag(source_task) OVER targets AS sync_task, lag(source_finish) OVER targets AS sync_finish, lag(source_is_in) OVER targets AS sync_is_in
  FROM spread
  WINDOW kernels AS (PARTITION BY run, rank, lane, is_sync ORDER BY turn, task),
    targets AS (PARTITION BY run, rank, CASE WHEN NOT is_sync THEN task WHEN name = 'Stream Wait Event' AND source_task IS NOT NULL THEN target_task END ORDER BY turn, task)
), waiting AS (
  SELECT run, rank, task, name, start, finish, is_sync, call_task, call_start, call_finish, has_call, call_length, queue_length, is_launched, task_before, finish_before,
    CASE WHEN sync_is_in AND NOT is_sync THEN sync_task END AS sync_task, sync_finish,
    CASE WHEN name = 'Event Sync' THEN CASE WHEN source_is_in THEN source_task END
      WHEN name IN ('Stream Sync', 'Context Sync') THEN max(task) FILTER (WHERE NOT is_sync) OVER last_kernel END AS awaited_task,
    CASE WHEN name = 'Event Sync' THEN source_finish ELSE max(finish) FILTER (WHERE NOT is_sync) OVER last_kernel END AS awaited_finish
  FROM turns
  WINDOW last_kernel AS (PARTITION BY run, rank, lane, kernels_before)
), decided AS (
  SELECT *, is_launched AND call_length = 1 AND queue_length = 0 AND (task_before IS NULL OR finish_before < call_start)
    AND (sync_task IS NULL OR sync_finish < call_start) AS is_late
  FROM waiting
), device_edges AS (
  SELECT run, rank, unnest(CASE WHEN is_sync THEN make_array(named_struct('source', 2 * awaited_task + 1, 'source_time', awaited_finish,
        'target', CASE WHEN has_call THEN 2 * call_task + 1 END, 'target_time', call_finish, 'weight', 0, 'part', 'wait'))
      ELSE make_array(
        named_struct('source', 2 * task, 'source_time', start, 'target', 2 * task + 1, 'target_time', finish, 'weight', finish - start,
          'part', CASE WHEN name ~ '^nccl.*Kernel' THEN 'communication' ELSE 'compute' END),
        -- A kernel begins behind what its stream was told to wait for,
        named_struct('source', 2 * sync_task + 1, 'source_time', sync_finish, 'target', 2 * task, 'target_time', start, 'weight', 0, 'part', ''),
        -- and behind its launch where the stream idled then, else behind the kernel before.
        CASE WHEN is_late THEN named_struct('source', CASE WHEN has_call THEN 2 * call_task END, 'source_time', call_start, 'target', 2 * task,
            'target_time', start, 'weight', start - call_start, 'part', 'launch')
          WHEN sync_task IS NULL OR sync_finish < finish_before THEN named_struct('source', 2 * task_before + 1, 'source_time', finish_before,
            'target', 2 * task, 'target_time', start, 'weight', start - finish_before, 'part', 'kernel') END) END) AS edge
  FROM decided
), edges AS (
  SELECT run, rank, source, source_time, target, target_time, weight, part FROM host_edges
  UNION ALL
  SELECT run, rank, edge['source'], edge['source_time'], edge['target'], edge['target_time'], edge['weight'], edge['part']
  FROM device_edges
  WHERE edge['source'] IS NOT NULL AND edge['target'] IS NOT NULL
), graph AS MATERIALIZED (
  -- Starts and ends are even and odd numbers; an edge that weighs has that of its end, far above. What seems to run backwards,
  -- from rounding, weighs nothing. Of ways of the same length HTA takes the host's before one over a wait: those are numbered last.
  SELECT run || '/' || rank AS run, CAST(rank AS VARCHAR) AS location, source, source_time, target, target_time, weight, part,
    CASE WHEN part = 'wait' THEN 6917529027641081856 + target WHEN weight > 0 THEN 4611686018427387904 + target END AS edge
  FROM edges
), steps AS (
  SELECT run, location, step['task'] AS task, min(step['part']) AS name, max(step['duration']) AS duration, max(step['start']) AS start
  FROM (SELECT run, location, unnest(make_array(named_struct('task', edge, 'part', part, 'duration', weight, 'start', NULL),
      named_struct('task', source, 'part', NULL, 'duration', 0, 'start', source_time),
      named_struct('task', target, 'part', NULL, 'duration', 0, 'start', target_time))) AS step FROM graph)
  WHERE step['task'] IS NOT NULL
  GROUP BY run, location, step['task']
), follows AS (
  SELECT run, link['source'] AS source, link['target'] AS target
  FROM (SELECT run, unnest(make_array(named_struct('source', source, 'target', coalesce(edge, target)),
      CASE WHEN edge IS NOT NULL THEN named_struct('source', edge, 'target', target) END)) AS link FROM graph)
  WHERE link['source'] IS NOT NULL
), backwards AS (
  -- What runs backwards weighs nothing on the way, but HTA's parts count it as it is.
  SELECT run, location, source, target, min(weight) AS weight, min(part) AS part FROM graph WHERE weight < 0 GROUP BY run, location, source, target
), path AS (
  SELECT p.run, p.location, p.path_time, p.start, coalesce(p.name, b.part) AS name, CASE WHEN b.weight < 0 THEN b.weight ELSE p.duration END AS duration
  FROM (SELECT *, lag(task) OVER (PARTITION BY run, location ORDER BY step) AS task_before FROM critical_path(steps, follows)) p
  LEFT JOIN backwards b ON b.run = p.run AND b.location = p.location AND b.source = p.task_before AND b.target = p.task
)
SELECT left(run, character_length(run) - character_length(location) - 1) AS run, CAST(location AS BIGINT) AS rank,
  max(path_time) AS critical_path_time, min(start) AS first_time, max(start) AS last_time, count(start) AS nodes,
  coalesce(sum(duration) FILTER (WHERE name = 'host'), 0) AS cpu_bound_time,
  coalesce(sum(duration) FILTER (WHERE name = 'compute'), 0) AS gpu_compute_bound_time,
  coalesce(sum(duration) FILTER (WHERE name = 'communication'), 0) AS gpu_communication_bound_time,
  coalesce(sum(duration) FILTER (WHERE name = 'kernel'), 0) AS kernel_kernel_time,
  coalesce(sum(duration) FILTER (WHERE name = 'launch'), 0) AS kernel_launch_time
FROM path
GROUP BY run, location
ORDER BY rank, run
