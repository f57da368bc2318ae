-- title: The runs that took longest compared with the median of all
-- topic: comparison
-- needs: runs.run_number=1, tasks, no runs.time_unit=weights
-- param limit: BIGINT = 20 -- how many to show
-- chart: bar x=makespan y=run
--
-- For runs of one kind: `--run 'night/*'` chooses them. `deviations` is how far a run lies above the median, in median distances from
-- it: more than 5 is rarely chance. NULL where half of the runs took exactly the median.
WITH timed AS (
  SELECT run, run_number, args->>'commit' AS commit, makespan FROM runs WHERE makespan IS NOT NULL
), middle AS (
  SELECT median(makespan) AS median_time FROM timed
), spread AS (
  SELECT median(abs(t.makespan - m.median_time)) AS distance FROM timed t CROSS JOIN middle m
)
SELECT t.run, t.run_number, t.commit, t.makespan, m.median_time,
  round(100.0 * (t.makespan - m.median_time) / nullif(m.median_time, 0), 1) AS over_percent,
  round(1.0 * (t.makespan - m.median_time) / nullif(s.distance, 0), 1) AS deviations
FROM timed t
CROSS JOIN middle m
CROSS JOIN spread s
ORDER BY t.makespan DESC, t.run_number
LIMIT $limit
