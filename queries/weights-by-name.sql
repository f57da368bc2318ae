-- title: Where the weight of folded stacks is, by name of frame, the frames above it not counted
-- topic: tasks
-- needs: tasks, runs.time_unit=weights
-- chart: bar x=self_weight y=name color=run
--
-- What a weight counts (samples, bytes, microseconds), the file does not say.
WITH names AS (
  SELECT run, name, count(*) AS frames, sum(self_time) AS self_weight, sum(duration) AS weight
  FROM self_time(working_tasks)
  GROUP BY run, name
), shares AS (
  SELECT *, sum(self_weight) OVER (PARTITION BY run) AS of_run, sum(self_weight) OVER (PARTITION BY name) AS of_name FROM names
)
-- The names that have most in all runs together, so that each stands beside itself in the others.
SELECT run, name, frames, self_weight, weight, round(100.0 * self_weight / nullif(of_run, 0), 2) AS share_percent
FROM shares
QUALIFY dense_rank() OVER (ORDER BY of_name DESC NULLS LAST, name) <= 30
ORDER BY of_name DESC NULLS LAST, name, run
LIMIT 300
