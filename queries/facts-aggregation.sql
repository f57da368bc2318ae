-- title: In a sentence: how many messages share a buffer on the wire
-- topic: facts
-- needs: messages.kind=logical, messages.kind=local_send
--
-- As in actorprof-aggregation, each kind of buffer that a run has carries every message once.
WITH totals AS (
  SELECT run, sum(count) FILTER (WHERE kind = 'logical') AS messages,
    sum(count) FILTER (WHERE kind IN ('local_send', 'nonblock_send')) AS buffers,
    count(DISTINCT kind) FILTER (WHERE kind IN ('local_send', 'nonblock_send') AND bytes > 0) AS hops
  FROM messages
  GROUP BY run
)
SELECT string_agg(messages || ' messages of ' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN t.run ELSE 'the program' END || ' left in ' || buffers
    || CASE hops WHEN 2 THEN ' buffers, each message in two of them: ' ELSE ' buffers: ' END || round(1.0 * hops * messages / buffers, 1)
    || ' messages in each on average', '; ' ORDER BY run_number) || '.' AS fact
FROM totals t
JOIN runs r ON r.run = t.run
WHERE buffers > 0 AND hops > 0
HAVING count(*) > 0
