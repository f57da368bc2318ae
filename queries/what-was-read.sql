-- title: What was opened, and how much of it
-- topic: trace
-- needs: runs
--
-- The executions of a scalability study have one row together, with the longest makespan; everything else is one execution.
SELECT coalesce(r.study, r.run) AS run, min(format) AS format, min(source) AS source, min(time_unit) AS time_unit, sum(tasks) AS tasks,
  sum(locations) AS locations, sum(coalesce(lanes, locations)) AS lanes, max(makespan) AS makespan, count(*) AS executions
FROM runs r
LEFT JOIN (SELECT run, count(*) AS lanes FROM working_lanes GROUP BY run) l ON l.run = r.run
GROUP BY coalesce(r.study, r.run)
ORDER BY min(run_number)
