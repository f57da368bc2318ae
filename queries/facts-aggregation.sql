-- title: In a sentence: how many messages share a buffer on the wire
-- topic: facts
-- needs: messages.kind=logical, messages.kind=local_send
--
WITH totals AS (
  SELECT sum(count) FILTER (WHERE kind = 'logical') AS messages,
    sum(count) FILTER (WHERE kind IN ('local_send', 'nonblock_send')) AS buffers
  FROM messages
)
SELECT CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Over all runs, ' ELSE '' END || messages || ' messages of the program left in ' || buffers || ' buffers: ' || round(1.0 * messages / buffers, 1)
  || ' messages each.' AS fact
FROM totals
WHERE buffers > 0
