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
  SELECT *, count(*) OVER (PARTITION BY messages) AS alike FROM pairs ORDER BY messages DESC, source, target LIMIT 1
)
SELECT CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Over all runs, ' ELSE '' END || all_messages || ' messages were sent' || CASE WHEN all_bytes > 0 THEN ', ' || all_bytes || ' bytes' ELSE '' END
  || CASE WHEN messages = all_messages THEN ', all from ' || source || ' to ' || target
       WHEN alike = 1 THEN '; most, ' || messages || ', from ' || source || ' to ' || target
       ELSE '; none sent another one more than ' || messages || ', as ' || source || ' did ' || target || ' and ' || (alike - 1)
         || CASE alike WHEN 2 THEN ' other pair' ELSE ' other pairs' END END
  || '.' AS fact
FROM most
