-- title: How many messages each PE sends to each other: the logical heat map
-- topic: communication
-- needs: messages.kind=logical
-- param self_sends: BOOLEAN = true -- whether messages of a PE to itself count
-- param phase: TEXT = NULL -- one phase; without it, all
-- chart: heatmap x=target y=source value=count totals=true panel=run
--
-- Cast to text: sorting millions of joined rows would copy the dictionary again and again.
WITH matrix AS (
  SELECT CAST(run AS VARCHAR) AS run, source, target, count, bytes, source_total, target_total
  FROM message_matrix(
    (SELECT run, source, target, count, bytes FROM messages
     WHERE kind = 'logical' AND ($self_sends OR source <> target) AND ($phase IS NULL OR coalesce(tag, '(no phase)') = $phase)),
    (SELECT run, location FROM program_locations WHERE kind = 'pe')))
SELECT m.*
FROM matrix m
JOIN program_locations s ON s.run = m.run AND s.location = m.source
JOIN program_locations t ON t.run = m.run AND t.location = m.target
ORDER BY s.sort_index, t.sort_index, m.run
