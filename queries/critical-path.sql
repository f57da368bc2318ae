-- title: The chain of dependent tasks that bounds the makespan
-- topic: tasks
-- needs: tasks, links.kind=dependency
--
SELECT run, step, task, name, location, start, duration, path_time
FROM critical_path()
ORDER BY run, step
