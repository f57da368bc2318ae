-- title: How much each rank sends to each other: payloads, and the activations that announce them (small payloads ride inside)
-- topic: parsec
-- needs: messages, locations
-- chart: heatmap x=target y=source value=bytes totals=true panel=run
--
WITH ranks AS (SELECT * FROM program_locations WHERE kind = 'process'),
payloads AS (SELECT * FROM message_matrix((SELECT * FROM messages WHERE kind = 'mpi' AND send_time IS NOT NULL), ranks)),
activations AS (SELECT * FROM message_matrix((SELECT * FROM messages WHERE tag = 'MPI_ACTIVATE'), ranks))
SELECT coalesce(p.run, a.run) AS run, coalesce(p.source, a.source) AS source, coalesce(p.target, a.target) AS target,
  coalesce(p.count, 0) AS messages, CASE WHEN p.count > 0 THEN p.bytes ELSE 0 END AS bytes,
  coalesce(a.count, 0) AS activations, CASE WHEN a.count > 0 THEN a.bytes ELSE 0 END AS activation_bytes
FROM payloads p FULL JOIN activations a ON a.run = p.run AND a.source = p.source AND a.target = p.target
ORDER BY source, target, run
