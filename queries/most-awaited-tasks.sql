-- title: The tasks that most other tasks directly depend on
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
SELECT l.run, t.task, t.name, t.location, t.start, t.duration, count(*) AS dependents
FROM links l
JOIN program_tasks t ON t.task = l.source
WHERE l.kind = 'dependency'
GROUP BY l.run, t.task, t.name, t.location, t.start, t.duration
ORDER BY dependents DESC, t.duration DESC, t.task
LIMIT 20
