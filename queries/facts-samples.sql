-- title: In sentences: what has most of the weight of folded stacks, which stack is heaviest, and what they cannot tell
-- topic: facts
-- needs: tasks, runs.time_unit=weights
--
WITH names AS (
  SELECT run, name, sum(self_time) AS weight, sum(sum(self_time)) OVER (PARTITION BY run) AS all_weight FROM self_time(working_tasks) GROUP BY run, name
), shares AS (
  -- Runs of different length count alike.
  SELECT r.run, r.run_number, n.name, 100.0 * n.weight / n.all_weight AS percent, sum(1.0 * n.weight / n.all_weight) OVER (PARTITION BY n.name) AS of_name,
    row_number() OVER (PARTITION BY n.run ORDER BY n.weight DESC, n.name) AS place_in_run
  FROM names n JOIN runs r ON r.run = n.run
  WHERE n.all_weight > 0
), ranked AS (
  SELECT *, dense_rank() OVER (ORDER BY of_name DESC, name) AS place, min(place_in_run) OVER (PARTITION BY name) = 1 AS leads FROM shares WHERE of_name > 0
), named AS (
  -- The name with most of all; and what leads a run in which another one does.
  SELECT name, CASE place WHEN 1 THEN 0 ELSE 1 + min(run_number) FILTER (WHERE place_in_run = 1) END AS place,
    CASE place WHEN 1 THEN 'No name of the stacks has more weight of its own than '
      ELSE first_value(run ORDER BY run_number) FILTER (WHERE place_in_run = 1) || ' has most in ' END AS words,
    string_agg(round(percent, 1) || ' %' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' in ' || run ELSE '' END, ', ' ORDER BY run_number)
      || CASE WHEN count(*) < (SELECT count(*) FROM runs) THEN ', none elsewhere' ELSE '' END AS shares
  FROM ranked
  WHERE place = 1 OR leads
  GROUP BY name, place
  ORDER BY place
  LIMIT 4
), stacks AS (
  SELECT run, stack, sum(self_time) AS weight, sum(sum(self_time)) OVER (PARTITION BY run) AS all_weight FROM call_tree(program_tasks) GROUP BY run, stack
), heaviest AS (
  SELECT s.*, r.run_number FROM stacks s JOIN runs r ON r.run = s.run
  WHERE weight > 0
  QUALIFY row_number() OVER (ORDER BY 1.0 * weight / all_weight DESC, r.run_number, stack) = 1
), sentences AS (
  SELECT place, name, words || CASE WHEN name = '' THEN 'frames without a name' ELSE name END || CASE place WHEN 0 THEN ': ' ELSE ' itself: ' END || shares || '.' AS fact FROM named
  UNION ALL
  SELECT 1000000, NULL, 'Look next at the heaviest stack' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END || ', ' || replace(stack, ';', ' > ')
    || ' (see Where the weight is): it ends there for ' || round(100.0 * weight / all_weight, 1) || ' % of the weight.' FROM heaviest
  UNION ALL
  SELECT 1000001, NULL, 'Stacks do not say when they were seen or on which thread: sections on timelines, concurrency, idling and the longest tasks are left out.'
)
SELECT fact, name FROM sentences ORDER BY place
