-- title: How well messages are aggregated: how many share a buffer on the wire
-- topic: communication
-- needs: messages.kind=logical, locations.kind=pe
-- chart: bar x=messages_per_buffer y=pe color=run
--
-- Between nodes a message takes two hops: it travels in a local_send buffer and in a nonblock_send buffer, one of which may be sent by another PE.
-- So each kind of buffer that a run has is taken to carry every message once; a PE's buffers carry as many of them as their share of the bytes.
WITH kinds AS (
  SELECT run, kind, source, sum(count) AS buffers, sum(bytes) AS bytes, sum(sum(bytes)) OVER (PARTITION BY run, kind) AS kind_bytes
  FROM messages
  WHERE kind IN ('local_send', 'nonblock_send')
  GROUP BY run, kind, source
), logical AS (
  SELECT run, source, sum(count) AS messages, sum(bytes) AS message_bytes, sum(sum(count)) OVER (PARTITION BY run) AS all_messages
  FROM messages
  WHERE kind = 'logical'
  GROUP BY run, source
), carried AS (
  SELECT k.run, k.source, sum(k.buffers) AS buffers, sum(k.bytes) AS buffer_bytes, sum(1.0 * a.all_messages * k.bytes / nullif(k.kind_bytes, 0)) AS carried
  FROM kinds k LEFT JOIN (SELECT run, max(all_messages) AS all_messages FROM logical GROUP BY run) a ON a.run = k.run
  GROUP BY k.run, k.source
), pes AS (
  SELECT l.run, l.location AS pe, l.sort_index, coalesce(m.messages, 0) AS messages, coalesce(m.message_bytes, 0) AS message_bytes,
    coalesce(c.buffers, 0) AS buffers, coalesce(c.buffer_bytes, 0) AS buffer_bytes, coalesce(c.carried, 0) AS carried
  FROM program_locations l
  LEFT JOIN logical m ON m.run = l.run AND m.source = l.location
  LEFT JOIN carried c ON c.run = l.run AND c.source = l.location
  WHERE l.kind = 'pe'
), pe_rows AS (
  SELECT * FROM pes
  UNION ALL
  SELECT run, 'all', -1, sum(messages), sum(message_bytes), sum(buffers), sum(buffer_bytes), sum(carried) FROM pes GROUP BY run
)
SELECT run, pe, messages, buffers, round(carried / nullif(buffers, 0), 3) AS messages_per_buffer,
  round(1.0 * buffer_bytes / nullif(buffers, 0), 1) AS bytes_per_buffer,
  round(1.0 * buffer_bytes / nullif(message_bytes, 0), 3) AS bytes_on_the_wire_per_byte
FROM pe_rows
-- Of a run without a recording of buffers nothing is known about them.
WHERE run IN (SELECT run FROM kinds)
ORDER BY sort_index, pe, run
