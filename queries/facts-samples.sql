-- title: In sentences: what has most of the weight of folded stacks, and what they cannot tell
-- topic: facts
-- needs: tasks, runs.time_unit=weights
--
WITH names AS (
  SELECT name, sum(self_time) AS weight, sum(sum(self_time)) OVER () AS all_weight FROM self_time(working_tasks) GROUP BY name
), most AS (
  SELECT * FROM names WHERE weight > 0 ORDER BY weight DESC, name LIMIT 1
)
SELECT CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Over all runs, most of the weight' ELSE 'Most of the weight' END || ' of the stacks is in '
  || CASE WHEN name = '' THEN 'frames without a name' ELSE name END || ' itself: ' || round(100.0 * weight / all_weight, 1) || ' %.' AS fact, name
FROM most
UNION ALL
SELECT 'Stacks do not say when they were seen or on which thread: sections on timelines, concurrency, idling and the longest tasks are left out.' AS fact, NULL AS name
