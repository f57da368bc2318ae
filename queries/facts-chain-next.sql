-- title: In a sentence: what to look at next where the longest chain of dependent tasks bounds the longest run
-- topic: facts
-- needs: tasks.start, links.kind=dependency
--
WITH steps AS (
  SELECT run, name, sum(duration) AS total_time, sum(sum(duration)) OVER (PARTITION BY run) AS all_time
  FROM critical_path()
  GROUP BY run, name
  QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(duration) DESC, name) = 1
)
SELECT 'Look next at the chain itself (see What bounds the makespan): '
  || CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN 'the dependencies bound ' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN r.run ELSE 'this run' END || ', more locations would hardly make it shorter; '
       ELSE 'within the slice it takes ' || round(100.0 * s.all_time / r.makespan, 1) || ' % of the time'
         || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || r.run ELSE '' END || '; ' END
  || CASE WHEN s.name = '' THEN 'tasks without a name are ' ELSE s.name || ' is ' END || round(100.0 * s.total_time / s.all_time, 1) || ' % of the chain.' AS fact, s.name
FROM runs r
JOIN steps s ON s.run = r.run
WHERE s.all_time >= 0.7 * r.makespan AND s.all_time > 0
  AND r.run = (SELECT run FROM runs WHERE makespan IS NOT NULL ORDER BY makespan DESC, run_number LIMIT 1)
