-- title: The longest tasks
-- topic: tasks
-- needs: tasks
--
SELECT run, task, name, location, start, duration
FROM tasks
WHERE duration IS NOT NULL
ORDER BY duration DESC, task
LIMIT 20
