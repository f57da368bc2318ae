-- title: In a sentence: that nothing ran anywhere for a large part of a run
-- topic: facts
-- needs: tasks.start, links.kind=dependency, no runs.time_unit=weights, no executions
--
-- Without dependencies, facts-idle names the longest idle stretch. Pictures over time are empty for as long.
WITH stretches AS (
  SELECT g.run, g.start, g.duration, before.name AS name_before, after.name AS name_after
  FROM gaps((SELECT run, start, finish, task FROM working_spans)) g
  LEFT JOIN working_tasks before ON before.task = g.task_before
  LEFT JOIN working_tasks after ON after.task = g.task_after
  QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.duration DESC, g.start) = 1
)
SELECT CASE WHEN (SELECT count(*) FROM program_tasks WHERE role = 'communication') > 0 THEN 'Nothing but communication ran on any location' ELSE 'Nothing ran on any location' END
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || s.run ELSE '' END || ' for ' || time_text(s.duration)
  || ' in one stretch, ' || round(100.0 * s.duration / r.makespan, 1) || ' % of the run'
  || CASE WHEN coalesce(name_before, '') <> '' AND coalesce(name_after, '') <> '' THEN ', between ' || name_before || ' and ' || name_after ELSE '' END
  || '.' AS fact, name_before, name_after
FROM stretches s
JOIN runs r ON r.run = s.run
WHERE s.duration >= 0.25 * r.makespan
ORDER BY r.run_number
LIMIT 2
