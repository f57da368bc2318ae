-- title: Which PE sends how many messages to which: the logical heat map
-- topic: communication
-- needs: messages.kind=logical
-- param self_sends: BOOLEAN = true -- whether messages of a PE to itself count
-- param phase: TEXT = NULL -- one phase; without it, all
-- chart: heatmap x=target y=source value=count totals=true
--
SELECT m.run, m.source, m.target, m.count, m.bytes, m.source_total, m.target_total
FROM message_matrix(
  (SELECT run, source, target, count, bytes FROM messages
   WHERE kind = 'logical' AND ($self_sends OR source <> target) AND ($phase IS NULL OR tag = $phase)),
  (SELECT run, location FROM locations WHERE kind = 'pe')) m
JOIN locations s ON s.run = m.run AND s.location = m.source
JOIN locations t ON t.run = m.run AND t.location = m.target
ORDER BY m.run, s.sort_index, t.sort_index
