-- title: How the weight of folded stacks changed from base to new, by name of frame
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, runs.time_unit=weights
-- chart: bar x=change_points y=name
--
-- Shares, since runs are sampled for different times: a point is a hundredth of the run. `mostly_under` is the caller under which
-- more than half of these points are, and where a frame moved, also that of before.
WITH changes AS (
  SELECT name, sum(base_weight) AS base_weight, sum(new_weight) AS new_weight, sum(base_percent) AS base_percent, sum(new_percent) AS new_percent,
    sum(new_percent) - sum(base_percent) AS change, bool_or(base_weight <> new_weight) AS differs,
    max(new_percent - base_percent) AS gain, first_value(caller ORDER BY new_percent - base_percent DESC, caller) AS gained,
    max(base_percent - new_percent) AS loss, first_value(caller ORDER BY new_percent - base_percent, caller) AS lost
  FROM changed.frames
  GROUP BY name
)
SELECT name, CASE WHEN least(gain, loss) > abs(change) THEN gained || ', before ' || lost
    WHEN change > 0 AND gain > 0.5 * change THEN gained WHEN change < 0 AND loss > 0.5 * -change THEN lost END AS mostly_under,
  base_weight, new_weight, round(base_percent, 2) AS base_percent, round(new_percent, 2) AS new_percent, round(change, 2) AS change_points
FROM changes
WHERE differs
ORDER BY greatest(abs(change), least(gain, loss)) DESC, name
LIMIT 30
