-- title: Who talks to whom: messages and bytes between each pair of locations
-- topic: communication
-- needs: messages, locations
-- param most: BIGINT = 40 -- of how many locations of a kind each has a row and a column
-- chart: heatmap x=target y=source value=count totals=true panel=run
--
-- Those that never sent or received are there when others of their kind did and the kind has no more than $most. Where more than that
-- talk, those whose names differ in [numbers] only stand together: CU[*]; where more than that are left, neighbours do: rank 0 … rank 24.
-- Where a trace has messages as they are sent, as they are handled and the buffers that carry them, only the first of these count: each
-- message once.
WITH pairs AS MATERIALIZED (
  SELECT run, source, target, messages, bytes FROM messages_by_pair
), members AS (
  SELECT l.run, l.location, l.kind, l.sort_index, e.location IS NOT NULL AS talks
  FROM program_locations l
  LEFT JOIN (SELECT run, source AS location FROM pairs UNION SELECT run, target FROM pairs) e ON e.run = l.run AND e.location = l.location
), kinds AS (
  SELECT kind, count(DISTINCT location) AS locations, count(DISTINCT location) FILTER (WHERE talks) AS talking FROM members GROUP BY kind
), shown AS MATERIALIZED (
  SELECT m.run, m.kind, m.location, m.sort_index,
    CASE WHEN k.talking > $most THEN regexp_replace(m.location, '\[[0-9]+\]', '[*]', 'g') ELSE m.location END AS label
  FROM members m JOIN kinds k ON k.kind = m.kind
  WHERE m.talks OR (k.talking > 0 AND k.locations <= $most)
), ordered AS (
  -- Shorter names first: rank 2 comes before rank 10.
  SELECT kind, label, min(sort_index) AS place, count(*) OVER (PARTITION BY kind) AS labels,
    row_number() OVER (PARTITION BY kind ORDER BY character_length(label), label) - 1 AS number
  FROM shown
  GROUP BY kind, label
), blocks AS (
  SELECT kind, label, min(place) OVER block AS place,
    CASE WHEN count(*) OVER block > 1 THEN first_value(label) OVER block || ' … ' || last_value(label) OVER block ELSE label END AS block
  FROM ordered
  WINDOW block AS (PARTITION BY kind, number * least(labels, $most) / labels ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
), placed AS MATERIALIZED (
  SELECT s.run, s.location, b.block AS label, b.place FROM shown s JOIN blocks b ON b.kind = s.kind AND b.label = s.label
), labels AS MATERIALIZED (
  SELECT run, label, min(place) AS place FROM placed GROUP BY run, label
)
SELECT m.run, m.source, m.target, m.count, m.bytes, m.source_total, m.target_total
FROM message_matrix((
    SELECT p.run, coalesce(s.label, p.source) AS source, coalesce(t.label, p.target) AS target, p.messages AS count, p.bytes
    FROM pairs p
    LEFT JOIN placed s ON s.run = p.run AND s.location = p.source
    LEFT JOIN placed t ON t.run = p.run AND t.location = p.target
  ), (SELECT run, label AS location FROM labels)) m
LEFT JOIN labels s ON s.run = m.run AND s.label = m.source
LEFT JOIN labels t ON t.run = m.run AND t.label = m.target
ORDER BY s.place, character_length(m.source), m.source, t.place, character_length(m.target), m.target, m.run
