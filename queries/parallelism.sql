-- title: How long each number of tasks ran at once
-- topic: time
-- needs: tasks
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH steps AS (
  SELECT run, running, lead(time) OVER (PARTITION BY run ORDER BY time) - time AS step_time
  FROM concurrency((SELECT * FROM spans_and_ends WHERE is_outermost))
)
SELECT run, running, sum(step_time) AS total_time,
  round(100.0 * sum(step_time) / nullif(sum(sum(step_time)) OVER (PARTITION BY run), 0), 2) AS share_percent
FROM steps
WHERE step_time IS NOT NULL
GROUP BY run, running
ORDER BY running, run
