-- title: Is the trace itself sound: what was lost, repaired or guessed while recording and reading, worst first
-- topic: trace
-- needs: runs
--
WITH findings AS (
  SELECT r.run, coalesce(s.severity, 'nothing to tell') AS severity, s.what, s.stage, s.count, s.example
  FROM runs r
  LEFT JOIN import_stats s ON s.run = r.run
)
SELECT run, severity, what, stage, count, example
FROM findings
ORDER BY CASE severity WHEN 'lost' THEN 0 WHEN 'repaired' THEN 1 WHEN 'info' THEN 2 ELSE 3 END, count DESC, run, what
