-- title: Who talks to whom: messages and bytes between each pair of locations
-- topic: communication
-- needs: messages, locations
-- chart: heatmap x=target y=source value=count totals=true panel=run
--
SELECT run, source, target, count, bytes, source_total, target_total
FROM message_matrix(messages, (
  -- Those that never sent or received are there when others of their kind did.
  SELECT * FROM program_locations WHERE kind IN (
    SELECT l.kind FROM program_locations l JOIN messages m ON m.run = l.run AND l.location IN (m.source, m.target))))
ORDER BY run, source, target
