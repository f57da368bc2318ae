-- title: How unevenly messages are spread over PEs: quartiles of what each sends and receives
-- topic: communication
-- needs: messages, locations.kind=pe
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
SELECT run, kind, direction, min(messages) AS least, percentile_cont(messages, 0.25) AS q1, percentile_cont(messages, 0.5) AS median,
  percentile_cont(messages, 0.75) AS q3, max(messages) AS most, round(avg(messages), 6) AS mean, sum(messages) AS total,
  round(imbalance(messages), 6) AS max_over_mean
FROM totals
GROUP BY run, kind, direction
ORDER BY run, kind, direction DESC
