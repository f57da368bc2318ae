-- title: In a sentence: that nothing ran anywhere for a large part of a run
-- topic: facts
-- needs: tasks.start, links.kind=dependency, no runs.time_unit=weights, no executions
--
-- Without dependencies, facts-idle names the longest idle stretch. Pictures over time are empty for as long.
WITH stretches AS MATERIALIZED (
  SELECT g.run, g.start, g.finish, g.duration, before.name AS name_before, after.name AS name_after
  FROM gaps((SELECT run, start, finish, task FROM working_spans)) g
  LEFT JOIN working_tasks before ON before.task = g.task_before
  LEFT JOIN working_tasks after ON after.task = g.task_after
  QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.duration DESC, g.start) = 1
), waits AS (
  SELECT run, first_value(name ORDER BY wait_time DESC, name) AS wait, max(wait_time) AS wait_time
  FROM (
    SELECT s.run, o.name, sum(least(coalesce(o.finish, s.finish), s.finish) - greatest(o.start, s.start)) AS wait_time
    FROM stretches s JOIN program_tasks o ON o.run = s.run AND o.start < s.finish AND coalesce(o.finish, s.finish) > s.start
    WHERE o.role IN ('wait', 'communication') AND o.name <> ''
    GROUP BY s.run, o.name
  )
  GROUP BY run
)
SELECT CASE WHEN (SELECT count(*) FROM program_tasks WHERE role = 'communication') > 0 THEN 'Nothing but communication ran on any location' ELSE 'Nothing ran on any location' END
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || s.run ELSE '' END || ' for ' || time_text(s.duration)
  || ' in one stretch, ' || round(100.0 * s.duration / r.makespan, 1) || ' % of the run'
  || CASE WHEN coalesce(name_before, '') <> '' AND coalesce(name_after, '') <> '' THEN ', between ' || name_before || ' and ' || name_after ELSE '' END
  || CASE WHEN 2 * w.wait_time >= s.duration THEN '. ' || w.wait || ' filled most of it' ELSE '' END
  || '.' AS fact, name_before, name_after, w.wait
FROM stretches s
LEFT JOIN waits w ON w.run = s.run
JOIN runs r ON r.run = s.run
WHERE s.duration >= 0.25 * r.makespan
ORDER BY r.run_number
LIMIT 2
