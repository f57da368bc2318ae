-- title: How much of the work each worker thread and device stream has done, idle ones included
-- topic: parsec
-- needs: tasks, locations
-- chart: bar x=work_time y=location color=run
--
WITH kernels AS (SELECT * FROM program_tasks WHERE kind = 'task' AND finish IS NOT NULL)
SELECT l.run, l.location, l.name AS thread, count(t.task) AS tasks, coalesce(sum(t.duration), 0) AS work_time,
  min(t.start) AS first_start, max(t.finish) AS last_finish
FROM program_locations l LEFT JOIN kernels t ON t.run = l.run AND t.location = l.location
WHERE l.kind = 'worker' OR t.task IS NOT NULL
GROUP BY l.run, l.location, l.name, l.sort_index
ORDER BY l.sort_index, l.location, l.run
