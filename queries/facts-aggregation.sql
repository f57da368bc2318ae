-- title: In a sentence: how many messages share a buffer on the wire
-- topic: facts
-- needs: messages.kind=logical, messages.kind=local_send
--
WITH totals AS (
  SELECT run, sum(count) FILTER (WHERE kind = 'logical') AS messages,
    sum(count) FILTER (WHERE kind IN ('local_send', 'nonblock_send')) AS buffers
  FROM messages
  GROUP BY run
)
SELECT string_agg(messages || ' messages of ' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN t.run ELSE 'the program' END || ' left in ' || buffers
    || ' buffers: ' || round(1.0 * messages / buffers, 1) || ' messages each', '; ' ORDER BY run_number) || '.' AS fact
FROM totals t
JOIN runs r ON r.run = t.run
WHERE buffers > 0
HAVING count(*) > 0
