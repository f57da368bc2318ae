-- title: How long the critical path of the task graph is, and how much parallelism it leaves
-- topic: parsec
-- needs: tasks, links
-- metric path_time: better=lower, tolerance=5%
--
WITH kernels AS (SELECT * FROM program_tasks WHERE kind = 'task'),
path AS (
  SELECT p.run, max(p.path_time) AS path_time, count(DISTINCT k.id) AS tasks
  FROM critical_path(kernels, (SELECT * FROM links WHERE kind = 'dependency')) p JOIN kernels k ON k.task = p.task
  GROUP BY p.run),
work AS (
  SELECT run, sum(duration) AS work_time, max(finish) - min(start) FILTER (WHERE finish IS NOT NULL) AS makespan
  FROM kernels GROUP BY run)
SELECT path.run, path.path_time, path.tasks, work.makespan, work.work_time,
  CAST(path.path_time AS DOUBLE) / nullif(work.makespan, 0) AS share,
  CAST(work.work_time AS DOUBLE) / nullif(path.path_time, 0) AS average_parallelism
FROM path JOIN work ON work.run = path.run
ORDER BY path.run
