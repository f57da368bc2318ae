-- title: Whether efficiency rises or falls when the problem grows, cores are added, or both (PaScal's colours)
-- topic: scalability
-- needs: executions
-- param region: TEXT = '' -- the region; '' is the whole program
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
-- param reach: DOUBLE = NULL -- what is so far from zero has the strongest colours; without it, the largest value
-- chart: heatmap x=cores y=argument value=value panel=panel palette=pascal to=$reach
--
WITH cells AS MATERIALIZED (
  SELECT * FROM efficiency_diffs((SELECT * FROM executions WHERE region = $region), method => $method)
), diagrams AS (
  SELECT 1 AS place, 'size grows' AS diagram, run, argument, size_order, cores, diff_size AS value FROM cells
  UNION ALL SELECT 2, 'cores grow', run, argument, size_order, cores, diff_cores FROM cells
  UNION ALL SELECT 3, 'both grow', run, argument, size_order, cores, diff_both FROM cells
)
SELECT diagram, run, argument, cores, round(value, 6) AS value,
  CASE WHEN min(run) OVER () < max(run) OVER () THEN run || ': ' ELSE '' END || diagram AS panel
FROM (SELECT *, dense_rank() OVER (ORDER BY run) AS study_place FROM diagrams)
-- A picture has 24 panels at most: of many studies, all of the first ones.
ORDER BY CASE WHEN max(study_place) OVER () > 6 THEN run END, place, run, size_order, cores
