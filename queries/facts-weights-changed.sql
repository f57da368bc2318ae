-- title: In a sentence: which frame of folded stacks changed most from base to new
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, runs.time_unit=weights
--
-- As in weights-changed: shares of the weight of frames themselves, since runs are sampled for different times.
WITH shares AS (
  SELECT name, coalesce(sum(percent) FILTER (WHERE run = 'base'), 0) AS base_percent, coalesce(sum(percent) FILTER (WHERE run = 'new'), 0) AS new_percent
  FROM (SELECT run, name, 100.0 * sum(self_time) / nullif(sum(sum(self_time)) OVER (PARTITION BY run), 0) AS percent
    FROM self_time(working_tasks) WHERE run IN ('base', 'new') GROUP BY run, name)
  GROUP BY name
)
SELECT 'From base to new, ' || CASE WHEN coalesce(name, '') = '' THEN 'frames without a name' ELSE name END || ' changed most (see What changed): '
  || round(new_percent, 1) || ' % of the weight itself instead of ' || round(base_percent, 1) || ' %.' AS fact, name
FROM shares
WHERE abs(new_percent - base_percent) >= 1
ORDER BY abs(new_percent - base_percent) DESC, name
LIMIT 1
