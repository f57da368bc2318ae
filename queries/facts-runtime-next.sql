-- title: In a sentence: where to look next in a run of a task runtime
-- topic: facts
-- needs: tasks.kind=task, runs.format=parsec
--
-- Task bodies alone are work, as in parsec-workload-threads: what the runtime does between them keeps a thread busy too.
WITH longest AS (
  SELECT run, makespan FROM runs WHERE makespan > 0 ORDER BY makespan DESC, run_number LIMIT 1
), threads AS (
  SELECT l.location, coalesce(sum(t.duration) FILTER (WHERE t.kind = 'task'), 0) AS work_time,
    coalesce(busy(t.start, t.finish) FILTER (WHERE t.role = 'runtime'), 0) AS runtime_time
  FROM program_locations l LEFT JOIN program_tasks t ON t.run = l.run AND t.location = l.location
  WHERE l.run = (SELECT run FROM longest)
  GROUP BY l.location, l.kind
  HAVING l.kind = 'worker' OR count(t.task) FILTER (WHERE t.kind = 'task' AND t.finish IS NOT NULL) > 0
), spread AS (
  SELECT count(*) AS threads, sum(work_time) AS work_time, sum(runtime_time) AS runtime_time, imbalance(work_time) AS imbalance,
    max(work_time) AS most_time, min(work_time) AS least_time, first_value(location ORDER BY work_time DESC, location) AS most,
    first_value(location ORDER BY work_time, location) AS least
  FROM threads
), longest_body AS (
  SELECT max(t.duration) AS duration, first_value(t.name ORDER BY t.duration DESC, t.task) AS name, first_value(t.location) AS location,
    first_value(m.median_time ORDER BY t.duration DESC, t.task) AS median_time
  FROM program_tasks t
  JOIN (SELECT name, CAST(round(median(duration)) AS BIGINT) AS median_time FROM program_tasks
    WHERE kind = 'task' AND run = (SELECT run FROM longest) GROUP BY name) m ON m.name = t.name
  WHERE t.kind = 'task' AND t.run = (SELECT run FROM longest) AND t.location = (SELECT most FROM spread) AND t.duration IS NOT NULL
), names AS (
  SELECT t.role, t.name, count(*) AS tasks, sum(s.self_time) AS total_time
  FROM self_time(working_tasks) s JOIN working_tasks t ON t.task = s.task
  WHERE t.role IN ('work', 'runtime') AND t.run = (SELECT run FROM longest)
  GROUP BY t.role, t.name
  QUALIFY row_number() OVER (PARTITION BY t.role ORDER BY sum(s.self_time) DESC, t.name) = 1
), n AS (
  SELECT max(name) FILTER (WHERE role = 'work') AS work_name, max(total_time) FILTER (WHERE role = 'work') AS work_time,
    max(tasks) FILTER (WHERE role = 'work') AS tasks, max(name) FILTER (WHERE role = 'runtime') AS runtime_name,
    max(total_time) FILTER (WHERE role = 'runtime') AS runtime_time
  FROM names
)
SELECT 'Look next at '
  || CASE
       WHEN 10.0 * (s.work_time + s.runtime_time) < s.threads * g.makespan
         THEN 'what keeps the worker threads from working (see The longest idle stretches): of ' || time_text(g.makespan) || ' they spent '
         || time_text(CAST(1.0 * s.work_time / s.threads AS BIGINT)) || ' each in task bodies and ' || time_text(CAST(1.0 * s.runtime_time / s.threads AS BIGINT))
         || ' in the runtime, on average.'
       -- How unevenly little is spread does not matter.
       WHEN s.runtime_time > 2 * s.work_time OR (s.runtime_time > s.work_time AND (s.threads = 1 OR s.imbalance < 1.25))
         THEN 'the runtime itself (see Where the time went): it kept the worker threads'
         || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || g.run ELSE '' END || ' busy longer than the task bodies, which took '
         || time_text(s.work_time) || '; ' || n.runtime_name || ' took most, ' || time_text(n.runtime_time) || '.'
       -- Without its longest task the location would not stand out.
       WHEN s.threads > 1 AND s.imbalance >= 1.25 AND s.most_time - b.duration < 1.25 * (s.work_time - b.duration) / s.threads
         THEN 'one task: ' || b.name || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || g.run ELSE '' END || ' took ' || time_text(b.duration)
         || ' of the ' || time_text(s.most_time) || ' that ' || b.location || ', which did most, spent in task bodies; the median ' || b.name || ' takes '
         || time_text(b.median_time) || '.'
       WHEN s.threads > 1 AND s.imbalance >= 1.25 THEN 'how the work is spread (see How the work is spread over ranks and threads): in task bodies, '
         || s.most || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || g.run ELSE '' END || ' did most, ' || time_text(s.most_time) || ', '
         || round(s.imbalance, 2) || ' times the mean, and ' || s.least || ' least, ' || time_text(s.least_time) || '.'
       ELSE 'the largest task class (see Where the time went): ' || n.work_name || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || g.run ELSE '' END
         || ' took ' || time_text(n.work_time) || ' in ' || n.tasks || CASE n.tasks WHEN 1 THEN ' task' ELSE ' tasks' END || '; all task bodies took '
         || time_text(s.work_time) || '.'
     END AS fact, n.work_name, n.runtime_name
FROM spread s
CROSS JOIN longest g
CROSS JOIN n
CROSS JOIN longest_body b
WHERE s.work_time > 0
