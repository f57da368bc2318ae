-- title: How many messages each PE sends and receives: the numbers behind the violins
-- topic: communication
-- needs: messages, locations.kind=pe
-- chart: box x=violin y=messages
--
WITH pes AS (
  SELECT run, location, sort_index FROM program_locations WHERE kind = 'pe'
), kinds AS (
  SELECT DISTINCT run, kind FROM messages WHERE kind IN ('logical', 'local_send', 'nonblock_send')
), sums AS (
  SELECT run, kind, 'send' AS direction, source AS location, sum(count) AS messages FROM messages GROUP BY run, kind, source
  UNION ALL
  SELECT run, kind, 'recv', target, sum(count) FROM messages GROUP BY run, kind, target
), totals AS (
  SELECT p.run, k.kind, d.direction, p.location AS pe, p.sort_index, coalesce(s.messages, 0) AS messages
  FROM pes p
  JOIN kinds k ON k.run = p.run
  CROSS JOIN (VALUES ('send'), ('recv')) AS d(direction)
  LEFT JOIN sums s ON s.run = p.run AND s.kind = k.kind AND s.direction = d.direction AND s.location = p.location
)
SELECT run, kind, direction, pe, messages, kind || ' ' || direction AS violin
FROM totals
ORDER BY run, kind, direction DESC, sort_index
