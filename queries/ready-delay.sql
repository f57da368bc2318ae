-- title: Tasks that waited longest after all that they depend on had finished
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
SELECT r.run, r.task, r.name, r.location, r.ready_time, r.start, r.delay AS delay_time, before.name AS released_by_name
FROM ready() r
LEFT JOIN program_tasks before ON before.task = r.released_by
WHERE r.delay > 0
ORDER BY r.delay DESC, r.task
LIMIT 20
