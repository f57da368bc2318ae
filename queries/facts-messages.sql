-- title: In a sentence: how much was sent, and between whom most
-- topic: facts
-- needs: messages
--
-- Each message once: `messages_by_pair` says how.
WITH pairs AS (
  SELECT run, source, target, messages, sum(messages) OVER (PARTITION BY run) AS all_messages, sum(bytes) OVER (PARTITION BY run) AS all_bytes
  FROM messages_by_pair
), most AS (
  SELECT *, count(*) OVER (PARTITION BY run, messages) AS alike FROM pairs
  QUALIFY row_number() OVER (PARTITION BY run ORDER BY messages DESC, source, target) = 1
)
SELECT string_agg(CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'In ' || m.run || ', ' ELSE '' END
  || all_messages || CASE all_messages WHEN 1 THEN ' message was sent' ELSE ' messages were sent' END
  || CASE WHEN all_bytes > 0 THEN ', ' || all_bytes || ' bytes' ELSE '' END
  || CASE WHEN messages = all_messages THEN ', all from ' || m.source || ' to ' || m.target
       WHEN alike = 1 THEN '; most, ' || messages || ', from ' || m.source || ' to ' || m.target
       ELSE '; none sent another one more than ' || messages || ', as ' || m.source || ' did ' || m.target || ' and ' || (alike - 1)
         || CASE alike WHEN 2 THEN ' other pair' ELSE ' other pairs' END END, '. ' ORDER BY run_number) || '.' AS fact
FROM most m
JOIN runs r ON r.run = m.run
WHERE run_number < 3
HAVING count(*) > 0
