-- title: What a worker thread did on average: task bodies, the runtime, and neither
-- topic: parsec
-- needs: tasks, locations
--
-- Threads are those of parsec-workload-threads. Where the runtime calls a body, both times contain it.
WITH threads AS (
  SELECT l.run, l.location, coalesce(sum(t.duration) FILTER (WHERE t.kind = 'task'), 0) AS work_time,
    coalesce(busy(t.start, t.finish) FILTER (WHERE t.role = 'runtime'), 0) AS runtime_time
  FROM program_locations l LEFT JOIN program_tasks t ON t.run = l.run AND t.location = l.location
  GROUP BY l.run, l.location, l.kind
  HAVING l.kind = 'worker' OR count(t.task) FILTER (WHERE t.kind = 'task' AND t.finish IS NOT NULL) > 0
)
SELECT t.run, count(*) AS threads, r.makespan, CAST(round(1.0 * sum(work_time) / count(*)) AS BIGINT) AS mean_work_time,
  CAST(1.0 * sum(runtime_time) / count(*) AS BIGINT) AS mean_runtime_time, round(imbalance(work_time), 2) AS work_imbalance,
  min(work_time) AS least_work_time, max(work_time) AS most_work_time
FROM threads t JOIN runs r ON r.run = t.run
GROUP BY t.run, r.makespan, r.run_number
ORDER BY r.run_number
