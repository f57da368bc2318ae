-- title: In a sentence: how much was sent, and between whom most
-- topic: facts
-- needs: messages
--
-- Where a trace distinguishes the program's own messages from the transfers that carry them, only the messages count.
WITH pairs AS (
  SELECT source, target, sum(count) AS messages, sum(sum(count)) OVER () AS all_messages, sum(sum(bytes)) OVER () AS all_bytes
  FROM messages
  WHERE kind = 'logical' OR (SELECT count(*) FROM messages WHERE kind = 'logical') = 0
  GROUP BY source, target
), most AS (
  SELECT * FROM pairs ORDER BY messages DESC, source, target LIMIT 1
)
SELECT CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Over all runs, ' ELSE '' END || all_messages || ' messages were sent' || CASE WHEN all_bytes > 0 THEN ', ' || all_bytes || ' bytes' ELSE '' END
  || '; most of them, ' || messages || ', from ' || source || ' to ' || target || '.' AS fact
FROM most
