-- title: What ran where and when
-- topic: time
-- needs: tasks, no links.kind=dependency
-- chart: gantt
--
SELECT run, task, location, name, kind, start, finish FROM tasks
