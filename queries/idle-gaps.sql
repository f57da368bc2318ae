-- title: The longest stretches between two tasks of a location in which it ran nothing
-- topic: locations
-- needs: tasks
--
-- Asynchronous spans and states of threads (locations of kind async and state) run nothing and are left out.
SELECT g.run, g.location, g.start, g.duration, before.name AS name_before, after.name AS name_after
FROM gaps(working_tasks) g
LEFT JOIN working_tasks before ON before.task = g.task_before
LEFT JOIN working_tasks after ON after.task = g.task_after
ORDER BY g.duration DESC, g.run, g.location, g.start
LIMIT 20
