-- title: In a sentence: how much was sent, and between whom most
-- topic: facts
-- needs: messages
--
-- Where a program's own messages are told from what carries them, only they count.
WITH pairs AS (
  SELECT source, target, sum(count) AS messages, sum(bytes) AS bytes
  FROM messages
  WHERE kind = 'logical' OR (SELECT count(*) FROM messages WHERE kind = 'logical') = 0
  GROUP BY source, target
), totals AS (
  SELECT sum(messages) AS messages, sum(bytes) AS bytes FROM pairs
)
SELECT CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Over all runs, ' ELSE '' END || t.messages || ' messages were sent' || CASE WHEN t.bytes > 0 THEN ', ' || t.bytes || ' bytes' ELSE '' END
  || '; most of them, ' || p.messages || ', from ' || p.source || ' to ' || p.target || '.' AS fact
FROM totals t
CROSS JOIN pairs p
ORDER BY p.messages DESC, p.source, p.target
LIMIT 1
