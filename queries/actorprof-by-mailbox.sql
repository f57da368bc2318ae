-- title: How many messages of each mailbox each PE handles
-- topic: communication
-- needs: messages.kind=handled
-- chart: stacked x=pe y=handled color=mailbox panel=run
--
SELECT m.run, m.target AS pe, 'mailbox ' || (m.args->>'mailbox') AS mailbox, count(*) AS handled,
  sum(CAST(m.args->>'num_sends' AS BIGINT)) AS sends_from_handlers
FROM messages m
JOIN program_locations l ON l.run = m.run AND l.location = m.target
WHERE m.kind = 'handled'
GROUP BY m.run, m.target, l.sort_index, m.args->>'mailbox'
ORDER BY l.sort_index, pe, mailbox, m.run
