-- title: In sentences: what has most of the weight of folded stacks, which stack is heaviest, and what they cannot tell
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
), leaders AS (
  -- Of each run; those of which another one leads are named.
  SELECT s.run, s.name, s.percent, r.run_number FROM shares s JOIN runs r ON r.run = s.run
  QUALIFY row_number() OVER (PARTITION BY s.run ORDER BY s.percent DESC, s.name) = 1
), named AS (
  SELECT 0 AS place, name FROM most
  UNION ALL
  SELECT min(l.run_number) + 1, l.name FROM leaders l CROSS JOIN most m WHERE l.name <> m.name GROUP BY l.name
), parts AS (
  SELECT r.run, r.run_number, n.place, n.name, round(coalesce(s.percent, 0), 1) AS percent
  FROM runs r CROSS JOIN named n
  LEFT JOIN shares s ON s.run = r.run AND s.name = n.name
), stacks AS (
  SELECT run, stack, sum(self_time) AS weight, sum(sum(self_time)) OVER (PARTITION BY run) AS all_weight FROM call_tree(program_tasks) GROUP BY run, stack
), heaviest AS (
  SELECT s.*, r.run_number FROM stacks s JOIN runs r ON r.run = s.run
  WHERE weight > 0
  QUALIFY row_number() OVER (ORDER BY 1.0 * weight / all_weight DESC, r.run_number, stack) = 1
), sentences AS (
  SELECT place, name, CASE place WHEN 0 THEN 'Most of the weight of the stacks is in ' ELSE (SELECT run FROM runs WHERE run_number = place - 1) || ' has most in ' END
    || CASE WHEN name = '' THEN 'frames without a name' ELSE name END || ' itself: '
    || string_agg(percent || ' %' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' in ' || run ELSE '' END, ', ' ORDER BY run_number) || '.' AS fact
  FROM parts
  GROUP BY place, name
  UNION ALL
  SELECT 1000000, NULL, 'Look next at the heaviest stack' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ', ' || replace(stack, ';', ' > ')
    || ' (see Where the weight is): it ends there for ' || round(100.0 * weight / all_weight, 1) || ' % of the weight.' FROM heaviest
  UNION ALL
  SELECT 1000001, NULL, 'Stacks do not say when they were seen or on which thread: sections on timelines, concurrency, idling and the longest tasks are left out.'
)
SELECT fact, name FROM sentences ORDER BY place
