-- title: Which instants were recorded, and how often
-- topic: events
-- needs: events
--
WITH names AS (
  SELECT run, name, kind, count(*) AS events, min(time) AS first_time, max(time) AS last_time,
    sum(count(*)) OVER (PARTITION BY name, kind) AS of_name
  FROM events
  GROUP BY run, name, kind
)
-- The names that are most frequent of all runs together, so that each stands beside itself in the others.
SELECT run, name, kind, events, first_time, last_time
FROM names
QUALIFY dense_rank() OVER (ORDER BY of_name DESC, name, kind) <= 30
ORDER BY of_name DESC, name, kind, run
LIMIT 300
