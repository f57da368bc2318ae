-- title: The program at a glance: messages, self-sends, who sends and receives most, who is silent
-- topic: communication
-- needs: messages.kind=logical, locations.kind=pe
--
WITH matrix AS (
  SELECT m.*, CAST(s.process AS BIGINT) AS source_pe, CAST(t.process AS BIGINT) AS target_pe
  FROM message_matrix(
    (SELECT run, source, target, count, bytes FROM messages WHERE kind = 'logical'),
    (SELECT run, location FROM program_locations WHERE kind = 'pe')) m
  JOIN program_locations s ON s.run = m.run AND s.location = m.source
  JOIN program_locations t ON t.run = m.run AND t.location = m.target
)
SELECT run, count(DISTINCT source_pe) AS pes, sum(count) AS messages, sum(bytes) AS bytes,
  sum(count) FILTER (WHERE source_pe = target_pe) AS self_sends,
  first_value(source_pe ORDER BY source_total DESC, source_pe) AS max_send_pe, max(source_total) AS max_send,
  first_value(target_pe ORDER BY target_total DESC, target_pe) AS max_recv_pe, max(target_total) AS max_recv,
  coalesce(sum(count) FILTER (WHERE target_pe > source_pe), 0) AS messages_above_diagonal,
  count(DISTINCT source_pe) FILTER (WHERE source_total = 0) AS pes_without_sends
FROM matrix
GROUP BY run
ORDER BY run
