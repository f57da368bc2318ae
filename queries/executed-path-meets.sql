-- title: Does each step of the executed path begin where the wait after the step before ends?
-- topic: soundness
-- needs: tasks
-- expect no rows
--
-- One row per step that does not.
WITH steps AS (
  SELECT *, lag(finish) OVER (PARTITION BY run ORDER BY step) AS before FROM executed_path()
)
SELECT run, step, task, cause, before, wait, start, finish FROM steps
WHERE wait < 0 OR running < 0 OR running <> finish - start OR start - wait <> before OR (before IS NULL) <> (step = 0)
ORDER BY run, step
