-- title: How long each run took in the order of import, beside the median of the runs before it
-- topic: comparison
-- needs: runs.run_number=1, tasks, no runs.time_unit=weights
-- param window: BIGINT = 10 -- so many runs before each are its past
-- chart: line x=run_number y=makespan bound=past_time
--
-- For runs of one kind, as a store has of every night: `--run 'night/*'` chooses them. `commit` is what `--run-arg commit=…` noted.
WITH ordered AS (
  SELECT run, run_number, args->>'commit' AS commit, makespan, row_number() OVER (ORDER BY run_number) - 1 AS place
  FROM runs
  WHERE makespan IS NOT NULL
), past AS (
  -- Each run beside those before it: equal places are found faster than ranges.
  SELECT o.place, median(p.makespan) AS median_time
  FROM (SELECT place, unnest(range(1, $window + 1)) AS distance FROM ordered) o
  JOIN ordered p ON p.place = o.place - o.distance
  GROUP BY o.place
)
SELECT o.run, o.run_number, o.commit, o.makespan, p.median_time AS past_time,
  round(100.0 * (o.makespan - p.median_time) / nullif(p.median_time, 0), 1) AS change_percent
FROM ordered o
LEFT JOIN past p ON p.place = o.place
ORDER BY o.run_number
