-- title: All tasks in so many pieces: neighbours on a row are joined, those that lie closest together first (TFProf's cluster view)
-- topic: locations
-- needs: tasks.start
-- param limit: BIGINT = 256 -- how many pieces, over all rows of a run
-- param from: TIME = NULL -- where the window begins
-- param to: TIME = NULL -- its last tick
-- chart: gantt
--
SELECT run, location, start, finish, finish - start AS duration, name, kind, count, depth
FROM cluster_view(program_tasks, limit => $limit, from => $from, to => $to)
ORDER BY run, location, depth, start
