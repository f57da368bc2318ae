-- title: What ran where and when
-- topic: time
-- needs: tasks
-- chart: gantt
--
SELECT run, task, location, name, kind, role, start, finish FROM program_tasks
