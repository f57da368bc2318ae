-- title: No task is longer than the limit, and no type of task takes more time than before
-- topic: checks
-- needs: tasks
-- param most: TIME = 1ms -- the longest that a task may be
-- metric work_time: better=lower, tolerance=10%, by=kind
-- expect every row: longest_time <= $most
--
SELECT run, kind, count(*) AS tasks, sum(duration) AS work_time, max(duration) AS longest_time
FROM tasks
GROUP BY run, kind
ORDER BY run, kind
