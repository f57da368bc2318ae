-- title: How long the longest chain of dependent tasks of each run takes
-- topic: comparison
-- needs: tasks, links.kind=dependency
-- metric path_time: better=lower
--
SELECT run, max(path_time) AS path_time FROM critical_path() GROUP BY run ORDER BY run
