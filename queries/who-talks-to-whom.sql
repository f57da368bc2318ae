-- title: Who talks to whom: messages and bytes between each pair of locations
-- topic: communication
-- needs: messages, locations
-- chart: heatmap x=target y=source value=count totals=true
--
SELECT run, source, target, count, bytes, source_total, target_total
FROM message_matrix(messages, locations)
ORDER BY run, source, target
