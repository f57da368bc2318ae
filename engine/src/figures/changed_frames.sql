-- What the frames of folded stacks weigh themselves in the runs base and new, by the frame that called them.
WITH frames AS (
  SELECT s.run, s.name, p.name AS caller, sum(s.self_time) AS weight,
    100.0 * sum(s.self_time) / nullif(sum(sum(s.self_time)) OVER (PARTITION BY s.run), 0) AS percent
  FROM self_time((SELECT * FROM tq.main.working_tasks WHERE run IN ('base', 'new'))) s LEFT JOIN tq.main.program_tasks p ON p.task = s.parent
  GROUP BY s.run, s.name, p.name
)
SELECT name, caller, coalesce(sum(weight) FILTER (WHERE run = 'base'), 0) AS base_weight,
  coalesce(sum(weight) FILTER (WHERE run = 'new'), 0) AS new_weight, coalesce(sum(percent) FILTER (WHERE run = 'base'), 0) AS base_percent,
  coalesce(sum(percent) FILTER (WHERE run = 'new'), 0) AS new_percent
FROM frames
GROUP BY name, caller
