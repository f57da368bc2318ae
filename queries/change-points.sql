-- title: Where runs became slower or faster for good: the first run of each new level
-- topic: comparison
-- needs: runs.run_number=5, tasks, no runs.time_unit=weights
-- param window: BIGINT = 10 -- so many runs before and after are compared
-- param least_percent: DOUBLE = 3 -- a smaller change of the median is left out
-- chart: bar x=change_percent y=run
--
-- For runs of one kind in the order of import: `--run 'night/*'` chooses them. A run begins a new level when the middle half of the runs
-- from it on lies wholly above or below the middle half of those before it; of neighbours, the run that divides them best. Three runs
-- on each side are the least, so the last two runs are never one. `compare_runs` says what changed between the levels.
WITH ordered AS MATERIALIZED (
  SELECT run, run_number, args->>'commit' AS commit, makespan, row_number() OVER (ORDER BY run_number) - 1 AS place
  FROM runs
  WHERE makespan IS NOT NULL
), around AS MATERIALIZED (
  SELECT o.place, o.distance >= 0 AS is_after, n.makespan
  FROM (SELECT place, unnest(range(-$window, $window)) AS distance FROM ordered) o
  JOIN ordered n ON n.place = o.place + o.distance
), levels AS (
  SELECT place, median(makespan) AS both_time,
    median(makespan) FILTER (WHERE NOT is_after) AS before_time,
    median(makespan) FILTER (WHERE is_after) AS after_time,
    percentile_cont(makespan, 0.25) FILTER (WHERE NOT is_after) AS before_low,
    percentile_cont(makespan, 0.75) FILTER (WHERE NOT is_after) AS before_high,
    percentile_cont(makespan, 0.25) FILTER (WHERE is_after) AS after_low,
    percentile_cont(makespan, 0.75) FILTER (WHERE is_after) AS after_high
  FROM around
  GROUP BY place
  HAVING count(*) FILTER (WHERE is_after) >= 3 AND count(*) FILTER (WHERE NOT is_after) >= 3
), apart AS (
  SELECT place, both_time, before_time, after_time
  FROM levels
  WHERE (after_low > before_high OR after_high < before_low)
    AND 100.0 * abs(after_time - before_time) >= $least_percent * before_time
), gains AS (
  -- How much closer the runs lie to the two levels than to one.
  SELECT l.place, l.before_time, l.after_time,
    sum(abs(a.makespan - l.both_time)
      - abs(a.makespan - CASE WHEN a.is_after THEN l.after_time ELSE l.before_time END)) AS gain
  FROM apart l
  JOIN around a ON a.place = l.place
  GROUP BY l.place, l.before_time, l.after_time
), begun AS (
  SELECT *, CASE WHEN place - lag(place) OVER (ORDER BY place) <= $window THEN 0 ELSE 1 END AS is_begin FROM gains
), neighbours AS (
  SELECT *, sum(is_begin) OVER (ORDER BY place) AS group_number FROM begun
), best AS (
  SELECT *, row_number() OVER (PARTITION BY group_number ORDER BY gain DESC, place) AS rank FROM neighbours
)
SELECT o.run, o.run_number, o.commit, p.run AS last_run_before, p.commit AS last_commit_before, b.before_time, b.after_time,
  round(100.0 * (b.after_time - b.before_time) / nullif(b.before_time, 0), 1) AS change_percent
FROM best b
JOIN ordered o ON o.place = b.place
JOIN ordered p ON p.place = b.place - 1
WHERE b.rank = 1
ORDER BY o.run_number
