-- title: Is each step of the executed path justified by a link, a message, a shared lane or work during a wait?
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
  SELECT DISTINCT steps.run, steps.step FROM steps
  JOIN links ON links.source = before AND links.target = task AND coalesce(links.kind, 'link') = cause
),
by_message AS (
  SELECT DISTINCT steps.run, steps.step FROM steps
  JOIN messages ON messages.target_task = task
    AND (messages.source_task = before OR (messages.source_task IS NULL AND messages.source = location_before))
  WHERE cause = 'message'
)
SELECT s.run, s.step, s.task, s.cause, s.before FROM steps s
LEFT JOIN by_link l ON l.run = s.run AND l.step = s.step
LEFT JOIN by_message m ON m.run = s.run AND m.step = s.step
WHERE CASE s.cause
  WHEN 'begin' THEN s.step <> 0
  WHEN 'lane' THEN s.location IS DISTINCT FROM s.location_before
  WHEN 'work' THEN s.location IS NOT DISTINCT FROM s.location_before
  WHEN 'message' THEN m.step IS NULL
  ELSE l.step IS NULL
END
ORDER BY s.run, s.step
