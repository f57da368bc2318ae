-- title: How many messages each phase sends, and how many of them a PE sends to itself
-- topic: communication
-- needs: messages.kind=logical
-- chart: bar x=messages y=phase color=run
--
SELECT run, coalesce(tag, '(no phase)') AS phase, sum(count) AS messages, coalesce(sum(count) FILTER (WHERE source = target), 0) AS self_sends,
  sum(bytes) AS bytes, count(DISTINCT source) AS senders, count(DISTINCT target) AS receivers
FROM messages
WHERE kind = 'logical'
GROUP BY run, coalesce(tag, '(no phase)')
ORDER BY phase, run
