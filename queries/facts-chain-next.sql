-- title: In a sentence: what to look at next where the longest chain of dependent tasks bounds the longest run
-- topic: facts
-- needs: tasks.start, links.kind=dependency
--
WITH path AS (
  SELECT run, name, location, sum(duration) AS total_time FROM critical_path() GROUP BY run, name, location
), steps AS (
  SELECT run, name, sum(total_time) AS total_time, sum(sum(total_time)) OVER (PARTITION BY run) AS all_time
  FROM path
  GROUP BY run, name
  QUALIFY row_number() OVER (PARTITION BY run ORDER BY sum(total_time) DESC, name) = 1
), places AS (
  -- Where nearly all of the chain ran on one location, and that one works much more than the others, it is slow or has too much to do.
  SELECT p.run, p.location, p.total_time, b.busy_time, b.others_time
  FROM (SELECT run, location, sum(total_time) AS total_time, sum(sum(total_time)) OVER (PARTITION BY run) AS all_time FROM path GROUP BY run, location) p
  JOIN (SELECT run, location, busy_time, (sum(busy_time) OVER (PARTITION BY run) - busy_time) / nullif(count(*) OVER (PARTITION BY run) - 1, 0) AS others_time
    FROM busy_lanes) b ON b.run = p.run AND b.location = p.location
  WHERE p.total_time >= 0.8 * p.all_time AND b.busy_time >= 1.25 * b.others_time
)
SELECT 'Look next at the chain itself (see What bounds the makespan): '
  || CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN 'the dependencies bound ' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN r.run ELSE 'this run' END || ', more locations would hardly make it shorter; '
       ELSE 'within the slice it takes ' || round(100.0 * s.all_time / r.makespan, 1) || ' % of the time'
         || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || r.run ELSE '' END || '; ' END
  || CASE WHEN s.name = '' THEN 'tasks without a name are ' ELSE s.name || ' is ' END || round(100.0 * s.total_time / s.all_time, 1) || ' % of the chain'
  || CASE WHEN l.location IS NULL THEN '.'
       ELSE ', and ' || round(100.0 * l.total_time / s.all_time, 1) || ' % of it ran on ' || l.location || ', which was busy for '
         || round(100.0 * l.busy_time / r.makespan, 1) || ' % of the run, the other locations for ' || round(100.0 * l.others_time / r.makespan, 1)
         || ' % on average.' END AS fact, s.name
FROM runs r
JOIN steps s ON s.run = r.run
LEFT JOIN places l ON l.run = r.run
WHERE s.all_time >= 0.7 * r.makespan AND s.all_time > 0
  AND r.run = (SELECT run FROM runs WHERE makespan IS NOT NULL ORDER BY makespan DESC, run_number LIMIT 1)
