-- title: In a sentence: which location idled longest, and what ran there before and after
-- topic: facts
-- needs: tasks, no links.kind=dependency, no tasks.kind=req_in, no runs.time_unit=weights
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH idle AS (
  SELECT g.run, g.location, g.duration, before.name AS name_before, after.name AS name_after
  FROM gaps(working_tasks, from => slice_from(), to => slice_to(), ends => true) g
  JOIN runs r ON r.run = g.run
  LEFT JOIN working_tasks before ON before.task = g.task_before
  LEFT JOIN working_tasks after ON after.task = g.task_after
  WHERE g.duration > 0
  ORDER BY g.duration DESC, r.run_number, g.location, g.start
  LIMIT 1
)
SELECT 'No link says what waits for what; the longest idle stretch is ' || time_text(duration) || ' on ' || location
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END
  || CASE
       WHEN coalesce(name_before, '') <> '' AND coalesce(name_after, '') <> '' THEN ', between ' || name_before || ' and ' || name_after || '.'
       WHEN coalesce(name_after, '') <> '' THEN ', before its first task, ' || name_after || '.'
       WHEN coalesce(name_before, '') <> '' THEN ', after its last task, ' || name_before || '.'
       ELSE '.'
     END AS fact, name_before, name_after
FROM idle
UNION ALL
SELECT 'Nothing waited: no location ever idled, so the run is as long as its work.' AS fact, NULL AS name_before, NULL AS name_after
FROM (SELECT count(*) AS stretches FROM idle) CROSS JOIN (SELECT count(*) AS tasks FROM working_tasks WHERE duration > 0)
WHERE stretches = 0 AND tasks > 0
