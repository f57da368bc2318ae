-- title: The longest intervals in which at most one task ran although there were more locations
-- topic: time
-- needs: tasks
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH steps AS (
  SELECT run, time AS start, lead(time) OVER (PARTITION BY run ORDER BY time) AS finish, running
  FROM concurrency((SELECT * FROM spans_and_ends WHERE is_outermost))
), marked AS (
  SELECT run, start, finish, running,
    sum(CASE WHEN running > 1 THEN 1 ELSE 0 END) OVER (PARTITION BY run ORDER BY start) AS stretch
  FROM steps
  WHERE finish IS NOT NULL
)
SELECT m.run, min(m.start) AS start, max(m.finish) AS finish, max(m.finish) - min(m.start) AS duration,
  round(100.0 * (max(m.finish) - min(m.start)) / nullif(max(r.makespan), 0), 2) AS share_percent
FROM marked m
JOIN runs r ON r.run = m.run
WHERE m.running <= 1 AND r.locations > 1
GROUP BY m.run, m.stretch
ORDER BY duration DESC, m.run, start
LIMIT 20
