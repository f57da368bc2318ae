-- title: What was opened, and how much of it
-- topic: trace
-- needs: runs
--
SELECT run, format, source, time_unit, tasks, locations, coalesce(lanes, locations) AS lanes, makespan
FROM runs
LEFT JOIN (SELECT run, count(*) AS lanes FROM working_lanes GROUP BY run) USING (run)
ORDER BY run_number
