-- title: How well messages are aggregated: sends per buffer on the wire
-- topic: communication
-- needs: messages.kind=logical, locations.kind=pe
-- chart: bar x=messages_per_buffer y=pe color=run
--
WITH sums AS (
  SELECT run, source, coalesce(sum(count) FILTER (WHERE kind = 'logical'), 0) AS messages,
    coalesce(sum(bytes) FILTER (WHERE kind = 'logical'), 0) AS message_bytes,
    coalesce(sum(count) FILTER (WHERE kind IN ('local_send', 'nonblock_send')), 0) AS buffers,
    coalesce(sum(bytes) FILTER (WHERE kind IN ('local_send', 'nonblock_send')), 0) AS buffer_bytes
  FROM messages
  GROUP BY run, source
), pes AS (
  SELECT l.run, l.location AS pe, l.sort_index, coalesce(s.messages, 0) AS messages, coalesce(s.buffers, 0) AS buffers,
    coalesce(s.message_bytes, 0) AS message_bytes, coalesce(s.buffer_bytes, 0) AS buffer_bytes
  FROM program_locations l
  LEFT JOIN sums s ON s.run = l.run AND s.source = l.location
  WHERE l.kind = 'pe'
), pe_rows AS (
  SELECT * FROM pes
  UNION ALL
  SELECT run, 'all', -1, sum(messages), sum(buffers), sum(message_bytes), sum(buffer_bytes) FROM pes GROUP BY run
)
SELECT run, pe, messages, buffers, round(1.0 * messages / nullif(buffers, 0), 3) AS messages_per_buffer,
  round(1.0 * buffer_bytes / nullif(buffers, 0), 1) AS bytes_per_buffer,
  round(1.0 * buffer_bytes / nullif(message_bytes, 0), 3) AS bytes_on_the_wire_per_byte
FROM pe_rows
ORDER BY sort_index, pe, run
