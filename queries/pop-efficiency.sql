-- title: POP efficiencies of processes or ranks: load balance × communication efficiency = parallel efficiency
-- topic: parallel
-- needs: tasks
-- chart: bar x=efficiency y=metric color=run
--
WITH useful AS (
  -- Useful is what works (or has no role), without what communicates, copies, waits or calls the runtime inside of it. Where there are kernels they are the
  -- work, else the operators of the host.
  SELECT run, location, start, finish
  FROM subtract((
    SELECT t.run, t.task, t.location, t.start, t.finish
    FROM program_tasks t
    LEFT JOIN (SELECT run, count(*) AS devices FROM program_tasks WHERE kind = 'kernel' GROUP BY run) d ON d.run = t.run
    WHERE t.finish IS NOT NULL AND coalesce(t.role, 'work') = 'work'
      AND (coalesce(t.kind, '') NOT IN ('cpu_op', 'user_annotation', 'python_function', 'gpu_user_annotation', 'nvtx') OR (d.devices IS NULL AND t.kind = 'cpu_op'))
  ), (
    SELECT run, location, start, finish FROM program_tasks
    WHERE finish IS NOT NULL AND depth IS NOT NULL AND coalesce(role, 'work') <> 'work' AND kind IS DISTINCT FROM 'cuda_sync'
  ))
), communicating AS (
  SELECT DISTINCT run, location FROM program_tasks WHERE role = 'communication'
), processes AS (
  -- One that only communicates counts too.
  SELECT l.run, coalesce(l.clock, l.process, l.location) AS process, coalesce(busy(u.start, u.finish), 0) AS useful_time, count(c.location) > 0 AS communicates
  FROM program_locations l
  LEFT JOIN useful u ON u.run = l.run AND u.location = l.location
  LEFT JOIN communicating c ON c.run = l.run AND c.location = l.location
  GROUP BY l.run, coalesce(l.clock, l.process, l.location)
), working AS (
  SELECT p.run, count(*) AS processes, avg(p.useful_time) AS mean_time, max(p.useful_time) AS most_time, r.makespan
  FROM processes p JOIN runs r ON r.run = p.run
  WHERE p.useful_time > 0 OR p.communicates
  GROUP BY p.run, r.makespan
), metrics AS (
  SELECT run, processes, unnest(make_array(
      named_struct('place', 1, 'metric', 'parallel efficiency', 'efficiency', mean_time / nullif(makespan, 0)),
      named_struct('place', 2, 'metric', 'load balance', 'efficiency', mean_time / nullif(most_time, 0)),
      named_struct('place', 3, 'metric', 'communication efficiency', 'efficiency', 1.0 * most_time / nullif(makespan, 0)))) AS entry
  FROM working
)
SELECT run, entry['metric'] AS metric, round(entry['efficiency'], 4) AS efficiency, processes
FROM metrics
ORDER BY entry['place'], run
