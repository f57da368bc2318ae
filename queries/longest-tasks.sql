-- title: The longest tasks
-- topic: tasks
-- needs: tasks
-- param limit: BIGINT = 20 -- how many to show
--
SELECT run, task, name, location, start, duration
FROM program_tasks
WHERE duration IS NOT NULL
ORDER BY duration DESC, task
LIMIT $limit
