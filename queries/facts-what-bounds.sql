-- title: In a sentence: how much of the makespan the longest chain of dependent tasks takes
-- topic: facts
-- needs: tasks, links.kind=dependency
--
WITH path AS (
  SELECT run, count(*) AS steps, max(path_time) AS path_time FROM critical_path() GROUP BY run
)
SELECT 'The longest chain of dependent tasks'
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || p.run ELSE '' END || ' (' || p.steps || CASE WHEN p.steps = 1 THEN ' step) takes ' ELSE ' steps) takes ' END
  || time_text(p.path_time) || ', ' || round(100.0 * p.path_time / r.makespan, 1) || ' % of the makespan'
  || CASE
       WHEN p.path_time >= 0.9 * r.makespan THEN ': the dependencies bound this run, more workers would hardly make it shorter.'
       WHEN p.path_time > 0 THEN ': the dependencies alone would allow a run ' || round(1.0 * r.makespan / p.path_time, 1)
         || ' times as fast; the rest is waiting, imbalance or overhead.'
       ELSE '.'
     END AS fact
FROM path p
JOIN runs r ON r.run = p.run
WHERE r.makespan > 0
ORDER BY r.makespan DESC, r.run_number
LIMIT 1
