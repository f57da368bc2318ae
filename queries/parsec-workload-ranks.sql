-- title: How much of the work each rank has done
-- topic: parsec
-- needs: tasks, locations
-- chart: bar x=work_time y=rank color=run
--
SELECT t.run, 'rank ' || l.process AS rank, count(*) AS tasks, sum(t.duration) AS work_time, min(t.start) AS first_start, max(t.finish) AS last_finish
FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
WHERE t.kind = 'task' AND t.finish IS NOT NULL
GROUP BY t.run, l.process
ORDER BY rank, t.run
