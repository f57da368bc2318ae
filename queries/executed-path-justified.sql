-- title: Is each step of the executed path justified by a link, a message or a shared lane?
-- topic: soundness
-- needs: tasks
-- expect no rows
--
-- One row per step that is not. The first step of a run has nothing before it.
WITH steps AS (
  SELECT *, lag(task) OVER (PARTITION BY run ORDER BY step) AS before,
    lag(location) OVER (PARTITION BY run ORDER BY step) AS location_before
  FROM executed_path()
),
by_link AS (
  SELECT DISTINCT steps.run, step FROM steps
  JOIN links ON links.source = before AND links.target = task AND coalesce(links.kind, 'link') = cause
),
by_message AS (
  SELECT DISTINCT steps.run, step FROM steps
  JOIN messages ON messages.target_task = task
    AND (messages.source_task = before OR (messages.source_task IS NULL AND messages.source = location_before))
  WHERE cause = 'message'
)
SELECT run, step, task, cause, before FROM steps
LEFT JOIN (SELECT run, step, true AS linked FROM by_link) USING (run, step)
LEFT JOIN (SELECT run, step, true AS sent FROM by_message) USING (run, step)
WHERE CASE cause
  WHEN 'begin' THEN step <> 0
  WHEN 'lane' THEN location IS DISTINCT FROM location_before
  WHEN 'message' THEN sent IS NULL
  ELSE linked IS NULL
END
ORDER BY run, step
