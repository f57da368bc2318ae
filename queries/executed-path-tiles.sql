-- title: Do the steps and waits of the executed path fill the makespan exactly?
-- topic: soundness
-- needs: tasks
-- expect no rows
--
-- One row per run whose executed path is not as long as the run.
WITH makespans AS (
  SELECT run, max(greatest(start, finish)) - min(start) AS makespan
  FROM program_tasks WHERE start IS NOT NULL AND finish IS NOT NULL GROUP BY run
),
paths AS (SELECT run, sum(wait + running) AS path FROM executed_path() GROUP BY run)
SELECT run, makespan, path FROM makespans FULL JOIN paths USING (run)
WHERE makespan IS DISTINCT FROM path
ORDER BY run
