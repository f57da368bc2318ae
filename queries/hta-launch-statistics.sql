-- title: HTA's launch statistics: how long each launch call takes, how long its kernel runs, and how long the kernel waits after the call
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: box x=rank_of_run y=launch_delay color=run
--
WITH launched AS (
  SELECT DISTINCT run, rank, correlation
  FROM hta.events
  WHERE (is_whole OR is_early) AND correlation >= 0 AND name IN ('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cudaMemcpyAsync',
    'cudaMemsetAsync', 'runFunction - job_prep_and_submit_for_execution')
), calls AS (
  SELECT e.run, e.rank, e.task, e.correlation, e.start, e.finish
  FROM hta.events e JOIN launched l ON l.run = e.run AND l.rank = e.rank AND l.correlation = e.correlation
  WHERE e.stream = -1 AND (is_whole OR is_early)
)
SELECT c.run, c.rank, c.correlation, c.finish - c.start AS host_duration, d.finish - d.start AS device_duration,
  greatest(d.start - c.finish, 0) AS launch_delay,
  CASE WHEN (SELECT count(*) FROM runs) > 1 THEN c.run || ': ' ELSE '' END || 'rank ' || c.rank AS rank_of_run
FROM calls c JOIN hta.device_spans d ON d.run = c.run AND d.rank = c.rank AND d.correlation = c.correlation
ORDER BY c.rank, c.run, c.correlation, d.start, c.task, d.task
