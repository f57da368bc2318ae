-- title: POP efficiencies of processes or ranks: load balance × communication efficiency = parallel efficiency
-- topic: parallel
-- needs: tasks
-- chart: bar x=efficiency y=metric color=run
--
WITH processes AS (
  -- Useful is what works (or has no role), not what communicates, copies, waits or calls the runtime. A process without useful time counts too.
  SELECT t.run, coalesce(l.clock, l.process, l.location) AS process, coalesce(busy(t.start, t.finish)
    FILTER (WHERE coalesce(t.role, 'work') = 'work' AND (coalesce(t.kind, '') NOT IN ('cpu_op', 'user_annotation', 'python_function', 'gpu_user_annotation', 'nvtx')
      OR (d.devices IS NULL AND t.kind = 'cpu_op'))), 0) AS useful_time
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  -- Where there are kernels they are the work, else the operators of the host.
  LEFT JOIN (SELECT run, count(*) AS devices FROM program_tasks WHERE kind = 'kernel' GROUP BY run) d ON d.run = t.run
  GROUP BY t.run, coalesce(l.clock, l.process, l.location)
), working AS (
  SELECT p.run, count(*) AS processes, avg(p.useful_time) AS mean_time, max(p.useful_time) AS most_time, r.makespan
  FROM processes p JOIN runs r ON r.run = p.run
  WHERE p.useful_time > 0
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
