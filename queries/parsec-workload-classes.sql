-- title: How much of the work each task class is
-- topic: parsec
-- needs: tasks
-- chart: bar x=work_time y=name color=run
--
SELECT run, name, count(*) AS tasks, sum(duration) AS work_time, min(duration) AS min_time,
  median(CAST(duration AS DOUBLE)) AS median_time, max(duration) AS max_time
FROM program_tasks
WHERE kind = 'task' AND finish IS NOT NULL
GROUP BY run, name
ORDER BY sum(sum(duration)) OVER (PARTITION BY name) DESC, name, run
