-- title: In a sentence: where to look next, by what keeps the longest run from being shorter
-- topic: facts
-- needs: tasks.start, no tasks.kind=req_in, no runs.time_unit=weights, no executions
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH spread AS (
  SELECT run, count(*) AS lanes, sum(busy_time) AS busy_time, max(busy_time) AS most_time, imbalance(busy_time) AS imbalance,
    first_value(location ORDER BY busy_time DESC, location) AS busiest, count(*) FILTER (WHERE place = 1) AS most_lanes
  FROM (SELECT *, rank() OVER (PARTITION BY run ORDER BY busy_time DESC) AS place FROM busy_lanes)
  GROUP BY run
), idle AS (
  SELECT g.run, g.location, g.start, g.duration, after.name
  FROM idle_stretches g
  LEFT JOIN working_tasks after ON after.task = g.task_after
  QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.duration DESC, g.location, g.start) = 1
), collective AS (
  -- What threads of its rank were in for most of that time.
  SELECT i.run, c.name
  FROM idle i
  JOIN program_locations l ON l.run = i.run AND l.location = i.location
  LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock
  JOIN collectives c ON c.run = i.run AND c.rank = coalesce(d.process, l.process, l.location)
  WHERE NOT c.on_device AND c.start < i.start + i.duration AND c.finish > i.start
  GROUP BY i.run, c.name, i.duration
  HAVING sum(least(c.finish, i.start + i.duration) - greatest(c.start, i.start)) >= 0.5 * i.duration
  QUALIFY row_number() OVER (PARTITION BY i.run ORDER BY sum(least(c.finish, i.start + i.duration) - greatest(c.start, i.start)) DESC, c.name) = 1
), spans AS (
  -- A rank that waits in a collective for the last one does not work.
  SELECT name, self_time, row_number() OVER (ORDER BY self_time DESC NULLS LAST, task) AS place, run, location
  FROM (SELECT s.run, s.task, s.name, s.location, s.self_time - coalesce(c.wait_time, 0) AS self_time
    FROM self_time(working_spans) s LEFT JOIN collectives c ON c.task = s.task)
  WHERE run = (SELECT run FROM runs WHERE makespan IS NOT NULL ORDER BY makespan DESC, run_number LIMIT 1)
)
SELECT 'Look next at '
  || CASE
       WHEN s.lanes > 1 AND s.imbalance >= 1.25 AND s.busy_time > 0 THEN 'how the work is spread (see Who works and who idles): the '
         || CASE s.most_lanes WHEN 1 THEN 'busiest location' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || r.run ELSE '' END || ', ' || s.busiest || ',' ELSE s.most_lanes || ' busiest locations' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || r.run ELSE '' END END
         || CASE s.most_lanes WHEN 1 THEN ' was busy for ' ELSE ' were busy for ' END || time_text(s.most_time) || CASE s.most_lanes WHEN 1 THEN ', ' ELSE ' each, ' END || round(s.imbalance, 2) || ' times the mean.'
       WHEN s.busy_time < 0.8 * s.lanes * r.makespan AND i.duration IS NOT NULL THEN 'why locations idle (see Who works and who idles): the longest time, '
         || time_text(i.duration) || ', ' || i.location || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || r.run ELSE '' END || ' had no task '
         || CASE WHEN coalesce(i.name, '') = '' THEN 'until the end' ELSE 'before ' || i.name END
         || CASE WHEN c.name IS NULL THEN '.' ELSE '; its rank was in ' || c.name || ' meanwhile.' END
       ELSE 'the longest single piece of work (see Where the time went): ' || CASE WHEN t.name = '' THEN 'a task without a name' ELSE t.name END
         || CASE WHEN coalesce(t.location, '') = '' THEN '' ELSE ' on ' || t.location END || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || r.run ELSE '' END || ' took ' || time_text(t.self_time) || ' itself.'
     END AS fact, i.name AS name_after, t.name AS task_name
FROM runs r
JOIN spread s ON s.run = r.run
JOIN spans t ON t.run = r.run AND t.place = 1
LEFT JOIN idle i ON i.run = r.run
LEFT JOIN collective c ON c.run = r.run
WHERE r.makespan > 0
  -- Tasks of a task runtime have facts-runtime-next.
  AND (r.format <> 'parsec' OR (SELECT count(*) FROM program_tasks WHERE kind = 'task') = 0)
ORDER BY r.makespan DESC, r.run_number
LIMIT 1
