-- title: How time and efficiency changed from the study base to the study new, at each size and number of cores that both have
-- topic: scalability
-- needs: executions, runs.study=base, runs.study=new
-- param region: TEXT = '' -- the region; '' is the whole program
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
-- chart: heatmap x=cores y=argument value=change_percent palette=diverging
--
-- Times are medians of repetitions.
WITH cells AS (
  SELECT * FROM efficiency_diffs((SELECT * FROM executions WHERE region = $region), method => $method) WHERE run IN ('base', 'new')
)
SELECT b.argument, b.cores, CAST(b.time AS BIGINT) AS base_time, CAST(n.time AS BIGINT) AS new_time,
  round(100.0 * (n.time - b.time) / nullif(b.time, 0), 1) AS change_percent,
  round(b.efficiency, 4) AS base_efficiency, round(n.efficiency, 4) AS new_efficiency, round(n.efficiency - b.efficiency, 4) AS efficiency_change
FROM cells b
JOIN cells n ON (n.argument IS NOT DISTINCT FROM b.argument) AND n.cores = b.cores
WHERE b.run = 'base' AND n.run = 'new'
ORDER BY b.size_order DESC, b.cores DESC
