-- title: In a sentence: which PE to look at next, the one whose messages are furthest above the mean
-- topic: facts
-- needs: messages.kind=logical, locations.kind=pe
--
WITH spread AS (
  SELECT run, pe, sort_index, direction, messages, avg(messages) OVER (PARTITION BY run, direction) AS mean FROM actorprof.totals WHERE kind = 'logical'
)
SELECT 'Look next at ' || pe || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || s.run ELSE '' END || ' (see How evenly the messages are spread): it '
  || CASE direction WHEN 'send' THEN 'sent ' ELSE 'received ' END || messages || CASE messages WHEN 1 THEN ' message, ' ELSE ' messages, ' END
  || round(messages / mean, 2) || ' times the mean.' AS fact
FROM spread s
JOIN runs r ON r.run = s.run
WHERE mean > 0 AND messages > 1.1 * mean
ORDER BY messages / mean DESC, run_number, direction DESC, sort_index
LIMIT 1
