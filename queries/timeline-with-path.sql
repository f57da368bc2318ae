-- title: What ran where and when, the longest chain of dependent tasks outlined
-- topic: time
-- needs: tasks, links.kind=dependency
-- chart: gantt
--
SELECT t.run, t.task, t.location, t.name, t.kind, t.role, t.start, t.finish, p.task IS NOT NULL AS on_path
FROM program_tasks t
LEFT JOIN critical_path() p ON p.task = t.task
