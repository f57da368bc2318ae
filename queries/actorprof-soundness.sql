-- title: Do sends, handled messages and counters of each PE agree? Rows are PEs where they do not
-- topic: soundness
-- needs: messages.kind=logical, messages.kind=handled
-- expect no rows
--
WITH pes AS (
  SELECT run, location, sort_index FROM program_locations WHERE kind = 'pe'
), sent AS (
  SELECT run, source AS location, count(*) AS sends FROM messages WHERE kind = 'logical' GROUP BY run, source
), received AS (
  SELECT run, target AS location, count(*) AS receives FROM messages WHERE kind = 'logical' GROUP BY run, target
), handled AS (
  SELECT run, target AS location, count(*) AS handled, sum(CAST(args->>'num_sends' AS BIGINT)) AS from_handlers
  FROM messages WHERE kind = 'handled' GROUP BY run, target
), main AS (
  SELECT run, location, CAST(sum(value) AS BIGINT) AS from_main FROM counters WHERE name = 'NUM_SENDS' GROUP BY run, location
), pe_rows AS (
  SELECT p.run, p.location AS pe, p.sort_index, coalesce(s.sends, 0) AS sends, coalesce(r.receives, 0) AS receives,
    coalesce(h.handled, 0) AS handled, coalesce(m.from_main, 0) + coalesce(h.from_handlers, 0) AS counted_sends
  FROM pes p
  LEFT JOIN sent s ON s.run = p.run AND s.location = p.location
  LEFT JOIN received r ON r.run = p.run AND r.location = p.location
  LEFT JOIN handled h ON h.run = p.run AND h.location = p.location
  LEFT JOIN main m ON m.run = p.run AND m.location = p.location
)
SELECT run, pe, sends, counted_sends, receives, handled
FROM pe_rows
WHERE sends <> counted_sends OR receives <> handled
ORDER BY run, sort_index
