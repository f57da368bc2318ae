-- title: The critical path of the task graph, task by task
-- topic: parsec
-- needs: tasks, links
-- chart: gantt
--
SELECT p.run, p.step, t.id, p.name, p.location, p.start, p.finish, p.duration, p.path_time
FROM critical_path((SELECT * FROM tasks WHERE kind = 'task'), (SELECT * FROM links WHERE kind = 'dependency')) p
JOIN tasks t ON t.task = p.task
ORDER BY p.run, p.step
