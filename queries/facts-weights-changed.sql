-- title: In a sentence: which frame of folded stacks changed most from base to new
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, runs.time_unit=weights
--
-- As in weights-changed: shares of the weight of frames themselves, since runs are sampled for different times.
WITH frames AS (
  SELECT s.run, s.name, p.name AS caller, sum(s.self_time) AS self_weight,
    100.0 * sum(s.self_time) / nullif(sum(sum(s.self_time)) OVER (PARTITION BY s.run), 0) AS percent
  FROM self_time(working_tasks) s LEFT JOIN program_tasks p ON p.task = s.parent
  WHERE s.run IN ('base', 'new')
  GROUP BY s.run, s.name, p.name
), callers AS (
  SELECT name, caller, coalesce(sum(self_weight) FILTER (WHERE run = 'new'), 0) - coalesce(sum(self_weight) FILTER (WHERE run = 'base'), 0) AS change,
    coalesce(sum(percent) FILTER (WHERE run = 'base'), 0) AS base_percent, coalesce(sum(percent) FILTER (WHERE run = 'new'), 0) AS new_percent
  FROM frames
  GROUP BY name, caller
), changes AS (
  SELECT name, sum(base_percent) AS base_percent, sum(new_percent) AS new_percent, count(*) AS callers,
    first_value(caller ORDER BY abs(new_percent - base_percent) DESC, caller) AS caller,
    first_value(new_percent - base_percent ORDER BY abs(new_percent - base_percent) DESC, caller) AS caller_change
  FROM callers
  GROUP BY name
  -- What weighs the same has another share where others changed.
  HAVING sum(change) <> 0
)
SELECT 'From base to new, ' || CASE WHEN coalesce(name, '') = '' THEN 'frames without a name' ELSE name END || ' changed most (see What changed): '
  || round(new_percent, 1) || ' % of the weight itself instead of ' || round(base_percent, 1) || ' %'
  || CASE WHEN callers > 1 AND caller_change / (new_percent - base_percent) > 0.5 AND caller <> '' THEN ', most of it under ' || caller ELSE '' END || '.' AS fact,
  name
FROM changes
WHERE abs(new_percent - base_percent) >= 1
ORDER BY abs(new_percent - base_percent) DESC, name
LIMIT 1
