-- title: In a sentence: which step of the training took much longer than the others
-- topic: facts
-- needs: tasks.kind=user_annotation
--
-- Steps as PyTorch's profiler marks them; of several ranks, the one that took longest counts.
WITH steps AS (
  SELECT run, name, max(duration) AS step_time FROM program_tasks WHERE kind = 'user_annotation' AND name LIKE 'ProfilerStep#%' GROUP BY run, name
), compared AS (
  SELECT run, name, step_time, median(step_time) OVER same AS usual_time, count(*) OVER same AS steps
  FROM steps
  WHERE step_time > 0
  WINDOW same AS (PARTITION BY run)
)
SELECT c.name || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || c.run ELSE '' END || ' took ' || time_text(c.step_time) || ' on the host, '
  || round(1.0 * c.step_time / c.usual_time, 1) || ' times the median of the ' || c.steps || ' steps, ' || time_text(CAST(c.usual_time AS BIGINT)) || '.' AS fact, c.name
FROM compared c
JOIN runs r ON r.run = c.run
-- Two steps have no usual length.
WHERE c.steps > 2 AND c.step_time > 1.5 * c.usual_time
ORDER BY 1.0 * c.step_time / c.usual_time DESC, r.run_number, c.name
LIMIT 1
