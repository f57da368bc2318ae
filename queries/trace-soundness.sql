-- title: Is the trace itself sound: what was lost, repaired or guessed while recording and reading, worst first
-- topic: trace
-- needs: runs
--
-- The executions of a scalability study stand together.
WITH findings AS (
  SELECT coalesce(r.study, r.run) AS run, coalesce(s.severity, 'nothing to tell') AS severity, s.what, s.stage, sum(s.count) AS count,
    CASE WHEN count(*) > 1 THEN 'e.g. ' ELSE '' END || min(s.example) AS example
  FROM runs r
  LEFT JOIN import_stats s ON s.run = r.run
  GROUP BY coalesce(r.study, r.run), s.severity, s.what, s.stage
)
SELECT run, severity, what, stage, count, example
FROM findings
ORDER BY CASE severity WHEN 'lost' THEN 0 WHEN 'repaired' THEN 1 WHEN 'info' THEN 2 ELSE 3 END, count DESC, run, what
