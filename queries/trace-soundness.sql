-- title: Is the trace itself sound: what was lost, repaired or guessed while recording and reading, worst first
-- topic: trace
-- needs: runs
--
SELECT r.run, coalesce(s.severity, 'none') AS severity, s.what, s.stage, s.count, s.example
FROM runs r
LEFT JOIN import_stats s ON s.run = r.run
ORDER BY CASE s.severity WHEN 'lost' THEN 0 WHEN 'repaired' THEN 1 WHEN 'info' THEN 2 ELSE 3 END, s.count DESC, r.run, s.what
