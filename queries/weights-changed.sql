-- title: How the weight of folded stacks changed from base to new, by name of frame
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, runs.time_unit=weights
-- chart: bar x=change_points y=name
--
-- Shares, since runs are sampled for different times: a point is a hundredth of the run.
WITH names AS (
  SELECT run, name, sum(self_time) AS self_weight, 100.0 * sum(self_time) / nullif(sum(sum(self_time)) OVER (PARTITION BY run), 0) AS percent
  FROM self_time(working_tasks)
  WHERE run IN ('base', 'new')
  GROUP BY run, name
), changes AS (
  SELECT name, coalesce(sum(self_weight) FILTER (WHERE run = 'base'), 0) AS base_weight,
    coalesce(sum(self_weight) FILTER (WHERE run = 'new'), 0) AS new_weight, coalesce(sum(percent) FILTER (WHERE run = 'base'), 0) AS base_percent,
    coalesce(sum(percent) FILTER (WHERE run = 'new'), 0) AS new_percent
  FROM names
  GROUP BY name
)
SELECT name, base_weight, new_weight, round(base_percent, 2) AS base_percent, round(new_percent, 2) AS new_percent,
  round(new_percent - base_percent, 2) AS change_points
FROM changes
WHERE base_weight <> new_weight
ORDER BY abs(new_percent - base_percent) DESC, name
LIMIT 30
