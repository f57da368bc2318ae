-- title: In a sentence: which location idled longest, and what came then
-- topic: facts
-- needs: tasks, no links.kind=dependency, no tasks.kind=req_in
--
-- Asynchronous spans and states of threads (locations of kind async and state) run nothing and are left out.
WITH idle AS (
  SELECT g.run, g.location, g.start, g.duration, before.name AS name_before, after.name AS name_after
  FROM gaps(working_tasks, from => slice_from(), to => slice_to(), ends => true) g
  LEFT JOIN working_tasks before ON before.task = g.task_before
  LEFT JOIN working_tasks after ON after.task = g.task_after
)
SELECT 'Nothing says what waits for what; the longest idle stretch is ' || time_text(i.duration) || ' on ' || i.location
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || i.run ELSE '' END
  || CASE
       WHEN coalesce(i.name_before, '') <> '' AND coalesce(i.name_after, '') <> '' THEN ', between ' || i.name_before || ' and ' || i.name_after || '.'
       WHEN coalesce(i.name_after, '') <> '' THEN ', before its first task, ' || i.name_after || '.'
       WHEN coalesce(i.name_before, '') <> '' THEN ', after its last task, ' || i.name_before || '.'
       ELSE '.'
     END AS fact, i.name_before, i.name_after
FROM idle i
JOIN runs r ON r.run = i.run
WHERE i.duration > 0
ORDER BY i.duration DESC, r.run_number, i.location, i.start
LIMIT 1
