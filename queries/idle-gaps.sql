-- title: The longest stretches between two tasks of a location in which it ran nothing
-- topic: locations
-- needs: tasks
--
SELECT g.run, g.location, g.start, g.duration, before.name AS name_before, after.name AS name_after
FROM gaps(program_tasks) g
LEFT JOIN program_tasks before ON before.task = g.task_before
LEFT JOIN program_tasks after ON after.task = g.task_after
ORDER BY g.duration DESC, g.run, g.location, g.start
LIMIT 20
