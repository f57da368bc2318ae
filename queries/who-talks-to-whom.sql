-- title: Who talks to whom: messages and bytes between each pair of locations
-- topic: communication
-- needs: messages, locations
-- param most: BIGINT = 40 -- of how many locations of a kind each has a row and a column
-- chart: heatmap x=target y=source value=count totals=true panel=run
--
-- Those that never sent or received are there when others of their kind did and the kind has no more than $most. Where more than that
-- talk, those whose names differ in [numbers] only stand together: CU[*]. Where a trace has messages as they are sent, as they are handled and the
-- buffers that carry them, only the first of these count: each message once.
WITH ends AS (
  SELECT run, source AS location FROM messages_by_pair UNION SELECT run, target FROM messages_by_pair
), members AS (
  SELECT l.run, l.location, l.kind, l.sort_index, e.location IS NOT NULL AS talks
  FROM program_locations l LEFT JOIN ends e ON e.run = l.run AND e.location = l.location
), kinds AS (
  SELECT kind, count(DISTINCT location) AS locations, count(DISTINCT location) FILTER (WHERE talks) AS talking FROM members GROUP BY kind
), shown AS (
  SELECT m.run, m.location, m.sort_index, CASE WHEN k.talking > $most THEN regexp_replace(m.location, '\[[0-9]+\]', '[*]', 'g') ELSE m.location END AS label
  FROM members m JOIN kinds k ON k.kind = m.kind
  WHERE m.talks OR (k.talking > 0 AND k.locations <= $most)
), labels AS (
  SELECT run, label, min(sort_index) AS place FROM shown GROUP BY run, label
)
SELECT m.run, m.source, m.target, m.count, m.bytes, m.source_total, m.target_total
FROM message_matrix((
    SELECT p.run, coalesce(s.label, p.source) AS source, coalesce(t.label, p.target) AS target, p.messages AS count, p.bytes
    FROM messages_by_pair p
    LEFT JOIN shown s ON s.run = p.run AND s.location = p.source
    LEFT JOIN shown t ON t.run = p.run AND t.location = p.target
  ), (SELECT run, label AS location FROM labels)) m
LEFT JOIN labels s ON s.run = m.run AND s.label = m.source
LEFT JOIN labels t ON t.run = m.run AND t.label = m.target
ORDER BY s.place, m.source, t.place, m.target, m.run
