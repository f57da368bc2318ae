-- title: The program at a glance: messages, self-sends, who sends and receives most, who is silent
-- topic: communication
-- needs: messages.kind=logical, locations.kind=pe
--
-- Sums of messages and no matrix: thousands of PEs have millions of pairs.
WITH pes AS (
  SELECT run, location, CAST(process AS BIGINT) AS pe FROM program_locations WHERE kind = 'pe'
), pairs AS (
  SELECT run, source, target, sum(coalesce(count, 1)) AS count, sum(coalesce(bytes, 0)) AS bytes
  FROM messages
  WHERE kind = 'logical'
  GROUP BY run, source, target
), flows AS (
  SELECT p.run, s.pe AS source_pe, t.pe AS target_pe, p.count, p.bytes
  FROM pairs p
  JOIN pes s ON s.run = p.run AND s.location = p.source
  JOIN pes t ON t.run = p.run AND t.location = p.target
), ends AS (
  SELECT p.run, p.pe, coalesce(s.count, 0) AS sent, coalesce(r.count, 0) AS received
  FROM pes p
  LEFT JOIN (SELECT run, source_pe, sum(count) AS count FROM flows GROUP BY run, source_pe) s ON s.run = p.run AND s.source_pe = p.pe
  LEFT JOIN (SELECT run, target_pe, sum(count) AS count FROM flows GROUP BY run, target_pe) r ON r.run = p.run AND r.target_pe = p.pe
), by_pe AS (
  SELECT run, count(DISTINCT pe) AS pes, first_value(pe ORDER BY sent DESC, pe) AS max_send_pe, max(sent) AS max_send,
    first_value(pe ORDER BY received DESC, pe) AS max_recv_pe, max(received) AS max_recv, count(DISTINCT pe) FILTER (WHERE sent = 0) AS pes_without_sends
  FROM ends
  GROUP BY run
), whole AS (
  SELECT run, sum(count) AS messages, sum(bytes) AS bytes, coalesce(sum(count) FILTER (WHERE source_pe = target_pe), 0) AS self_sends,
    coalesce(sum(count) FILTER (WHERE target_pe > source_pe), 0) AS messages_above_diagonal
  FROM flows
  GROUP BY run
)
SELECT w.run, p.pes, w.messages, w.bytes, w.self_sends, p.max_send_pe, p.max_send, p.max_recv_pe, p.max_recv, w.messages_above_diagonal, p.pes_without_sends
FROM whole w
JOIN by_pe p ON p.run = w.run
ORDER BY w.run
