-- title: What the critical path is made of, by name of task
-- topic: checks
-- needs: tasks, links.kind=dependency
-- metric path_time: better=lower, tolerance=5%, by=name
-- expect every row: share_percent <= 90
--
SELECT run, name, sum(duration) AS path_time,
  round(100.0 * sum(duration) / sum(sum(duration)) OVER (PARTITION BY run), 1) AS share_percent
FROM critical_path()
GROUP BY run, name
ORDER BY run, path_time DESC, name
