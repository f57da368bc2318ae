-- title: Which instants were recorded, and how often
-- topic: events
-- needs: events
--
SELECT run, name, kind, count(*) AS events, min(time) AS first_time, max(time) AS last_time
FROM events
GROUP BY run, name, kind
QUALIFY row_number() OVER (PARTITION BY run ORDER BY count(*) DESC, name, kind) <= 30
ORDER BY run, events DESC, name, kind
LIMIT 300
