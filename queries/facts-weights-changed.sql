-- title: In a sentence: which frame of folded stacks changed most from base to new
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, runs.time_unit=weights
--
-- As in weights-changed: shares of the weight of frames themselves, since runs are sampled for different times.
WITH changes AS (
  SELECT name, sum(base_percent) AS base_percent, sum(new_percent) AS new_percent, count(*) AS callers,
    first_value(caller ORDER BY abs(new_percent - base_percent) DESC, caller) AS caller,
    first_value(new_percent - base_percent ORDER BY abs(new_percent - base_percent) DESC, caller) AS caller_change
  FROM changed.frames
  GROUP BY name
  -- What weighs the same has another share where others changed.
  HAVING sum(new_weight) <> sum(base_weight)
)
SELECT 'From base to new, ' || CASE WHEN coalesce(name, '') = '' THEN 'frames without a name' ELSE name END || ' changed most (see What changed): '
  || round(new_percent, 1) || ' % of the weight itself instead of ' || round(base_percent, 1) || ' %'
  || CASE WHEN callers > 1 AND caller_change / (new_percent - base_percent) > 0.5 AND caller <> '' THEN ', most of it under ' || caller ELSE '' END || '.' AS fact,
  name
FROM changes
WHERE abs(new_percent - base_percent) >= 1
ORDER BY abs(new_percent - base_percent) DESC, name
LIMIT 1
