-- title: What was opened, and how much of it
-- topic: trace
-- needs: runs
--
SELECT run, format, source, time_unit, tasks, locations, makespan
FROM runs
ORDER BY run_number
