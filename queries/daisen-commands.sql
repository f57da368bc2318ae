-- title: What the machine was asked to do: the commands below the outermost tasks, how many, and how long some were under way
-- topic: daisen
-- needs: tasks.kind=req_in
--
SELECT t.run, t.name, count(*) AS calls, busy(t.start, t.finish) AS busy_time, r.makespan,
  round(100.0 * busy(t.start, t.finish) / nullif(r.makespan, 0), 1) AS percent_of_run
FROM program_tasks t JOIN program_tasks whole ON whole.task = t.parent AND whole.parent IS NULL
JOIN runs r ON r.run = t.run
WHERE t.name <> ''
GROUP BY t.run, t.name, r.makespan
ORDER BY t.run, busy_time DESC, t.name
LIMIT 20
