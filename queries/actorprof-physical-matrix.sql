-- title: How many buffers each PE sends to each hop: the physical heat map
-- topic: communication
-- needs: messages.kind=local_send|nonblock_send
-- param type: TEXT = '' -- 'local_send' or 'nonblock_send'; '' is both
-- param self_sends: BOOLEAN = true -- whether buffers of a PE to itself count
-- chart: heatmap x=target y=source value=count totals=true panel=run
--
-- Cast to text: sorting millions of joined rows would copy the dictionary again and again.
WITH matrix AS (
  SELECT CAST(run AS VARCHAR) AS run, source, target, count, bytes, source_total, target_total
  FROM message_matrix(
    (SELECT run, source, target, count, bytes FROM messages
     WHERE kind IN ('local_send', 'nonblock_send') AND ($type = '' OR kind = $type) AND ($self_sends OR source <> target)),
    (SELECT run, location FROM program_locations WHERE kind = 'pe')))
SELECT m.*
FROM matrix m
JOIN program_locations s ON s.run = m.run AND s.location = m.source
JOIN program_locations t ON t.run = m.run AND t.location = m.target
ORDER BY s.sort_index, t.sort_index, m.run
