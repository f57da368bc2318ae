-- title: A task between its parent and its subtasks
-- topic: tasks
-- needs: tasks.kind=req_in
-- param id: TEXT = NULL -- the trace's own id of the task; without one, the task with the most subtasks
-- param run: TEXT = NULL -- of which run; without one, the first that has the id
-- param rules: TEXT = v3 -- how rows are assigned: v3 for Akita v3 and v4, plain for the task chart of v5
-- chart: tasks
--
WITH chosen AS (
  SELECT task FROM program_tasks
  WHERE id = $id AND run = (SELECT run FROM program_tasks WHERE id = $id AND ($run IS NULL OR run = $run) ORDER BY task LIMIT 1)
  UNION ALL
  SELECT * FROM (
    SELECT parent AS task FROM program_tasks
    WHERE $id IS NULL AND ($run IS NULL OR run = $run) AND parent IN (SELECT task FROM program_tasks WHERE parent IS NOT NULL)
    GROUP BY parent ORDER BY count(*) DESC, parent LIMIT 1
  )
)
SELECT 'parent' AS role, p.run, p.task, p.id, 0 AS row, p.start, p.finish, p.name, p.kind, p.location
FROM program_tasks p WHERE p.task IN (SELECT t.parent FROM program_tasks t JOIN chosen USING (task))
UNION ALL
SELECT 'task', t.run, t.task, t.id, 0, t.start, t.finish, t.name, t.kind, t.location
FROM program_tasks t JOIN chosen USING (task)
UNION ALL
SELECT 'subtask', s.run, s.task, s.id, r.row, s.start, s.finish, s.name, s.kind, s.location
FROM component_rows((SELECT * FROM program_tasks WHERE parent IN (SELECT task FROM chosen)), rules => $rules) r
JOIN program_tasks s ON s.task = r.task
ORDER BY run, role, row, start, task
