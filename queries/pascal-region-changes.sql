-- title: How the time of each region changed from the study base to the study new, at the largest size on the most cores of both
-- topic: scalability
-- needs: executions, runs.study=base, runs.study=new
-- chart: bar x=change_time y=region
--
-- Times are medians of repetitions; a region includes those within it.
WITH cells AS (
  SELECT * FROM efficiency_diffs(executions, method => 'median_of_ratios') WHERE run IN ('base', 'new')
), pairs AS (
  SELECT b.region, b.argument, b.cores, b.size_order, CAST(b.time AS BIGINT) AS base_time, CAST(n.time AS BIGINT) AS new_time,
    rank() OVER (ORDER BY b.size_order DESC, b.cores DESC) AS place
  FROM cells b
  JOIN cells n ON n.region = b.region AND (n.argument IS NOT DISTINCT FROM b.argument) AND n.cores = b.cores
  WHERE b.run = 'base' AND n.run = 'new' AND b.region <> ''
)
SELECT region, argument, cores, base_time, new_time, new_time - base_time AS change_time,
  round(100.0 * (new_time - base_time) / nullif(base_time, 0), 1) AS change_percent
FROM pairs
WHERE place = 1
ORDER BY abs(new_time - base_time) DESC, region
