-- title: In a sentence: how long the longest chain of dependent tasks takes, and what waits longest between being ready and starting
-- topic: facts
-- needs: tasks.start, links.kind=dependency
--
WITH path AS (
  SELECT run, count(*) AS steps, max(path_time) AS path_time FROM critical_path() GROUP BY run
), waits AS (
  SELECT r.run, r.name, before.name AS released_by_name, count(*) AS tasks, sum(r.delay) AS waited_time
  FROM ready() r
  JOIN program_tasks before ON before.task = r.released_by
  WHERE r.delay > 0
  GROUP BY r.run, r.name, before.name
  QUALIFY row_number() OVER (PARTITION BY r.run ORDER BY sum(r.delay) DESC, r.name, before.name) = 1
)
SELECT CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN 'The' ELSE 'Within the slice, the' END || ' longest chain of dependent tasks'
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || p.run ELSE '' END || ' (' || p.steps || CASE WHEN p.steps = 1 THEN ' step) takes ' ELSE ' steps) takes ' END
  || time_text(p.path_time) || ', ' || round(100.0 * p.path_time / r.makespan, 1) || CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN ' % of the makespan' ELSE ' % of its time' END
  || CASE
       WHEN w.waited_time IS NULL THEN ', and every task began as soon as those before it were done.'
       ELSE '; tasks that could have started waited most between ' || w.released_by_name || ' and ' || w.name || ': '
         || time_text(w.waited_time) || CASE WHEN w.tasks = 1 THEN ' in one task.' ELSE ', added up over ' || w.tasks || ' tasks.' END
     END
  || CASE WHEN l.dependencies > 0 THEN ' The recording names ' || l.dependencies || CASE l.dependencies WHEN 1 THEN ' dependency' ELSE ' dependencies' END
         || ' more that could not be joined to tasks (see Is the trace sound): the real chain may be longer.' ELSE '' END AS fact, w.name, w.released_by_name
FROM path p
JOIN runs r ON r.run = p.run
LEFT JOIN waits w ON w.run = p.run
LEFT JOIN lost_dependencies l ON l.run = p.run
WHERE r.makespan > 0
ORDER BY r.makespan DESC, r.run_number
LIMIT 1
