-- title: In sentences: what has most of the weight of folded stacks, and what they cannot tell
-- topic: facts
-- needs: tasks, runs.time_unit=weights
--
WITH names AS (
  SELECT run, name, sum(self_time) AS weight, sum(sum(self_time)) OVER (PARTITION BY run) AS all_weight FROM self_time(working_tasks) GROUP BY run, name
), shares AS (
  -- Runs of different length count alike.
  SELECT run, name, 100.0 * weight / all_weight AS percent, sum(1.0 * weight / all_weight) OVER (PARTITION BY name) AS of_name FROM names WHERE all_weight > 0
), most AS (
  SELECT name FROM shares WHERE of_name > 0 ORDER BY of_name DESC, name LIMIT 1
), parts AS (
  SELECT r.run, r.run_number, m.name, round(coalesce(s.percent, 0), 1) AS percent
  FROM runs r CROSS JOIN most m
  LEFT JOIN shares s ON s.run = r.run AND s.name = m.name
)
SELECT 'Most of the weight of the stacks is in ' || CASE WHEN name = '' THEN 'frames without a name' ELSE name END || ' itself: '
  || string_agg(percent || ' %' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' in ' || run ELSE '' END, ', ' ORDER BY run_number) || '.' AS fact, name
FROM parts
GROUP BY name
UNION ALL
SELECT 'Stacks do not say when they were seen or on which thread: sections on timelines, concurrency, idling and the longest tasks are left out.' AS fact, NULL AS name
