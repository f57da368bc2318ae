-- title: In a sentence: how evenly the work is spread over the locations
-- topic: facts
-- needs: tasks.start
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH spread AS (
  SELECT run, count(*) AS lanes, max(busy_time) AS most_time, imbalance(busy_time) AS imbalance,
    count(*) FILTER (WHERE place = 1) AS most_lanes
  FROM (SELECT *, rank() OVER (PARTITION BY run ORDER BY busy_time DESC) AS place FROM busy_lanes)
  GROUP BY run
)
SELECT 'The work is spread ' || CASE WHEN s.imbalance < 1.1 THEN 'evenly' ELSE 'unevenly' END || ' over '
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'the locations of ' || s.run ELSE 'the locations' END
  || CASE s.most_lanes WHEN s.lanes THEN ': each was busy for ' || time_text(s.most_time)
       WHEN 1 THEN ': the busiest, ' || l.location || ', was busy for ' || time_text(s.most_time) || ', ' || round(s.imbalance, 2) || ' times the mean'
       ELSE ': the busiest, ' || s.most_lanes || ' of them, were busy for ' || time_text(s.most_time) || ' each, ' || round(s.imbalance, 2) || ' times the mean' END
  || '.' AS fact
FROM spread s
JOIN busy_lanes l ON l.run = s.run AND l.busy_time = s.most_time
JOIN runs r ON r.run = s.run
WHERE s.lanes > 1 AND s.imbalance IS NOT NULL
ORDER BY s.imbalance DESC, r.run_number, l.location
LIMIT 1
