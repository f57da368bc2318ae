-- title: Which inner region drags the program down: the efficiency that the program loses to it (1 = all of it)
-- topic: scalability
-- needs: executions
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
-- chart: bar x=lost_efficiency y=region color=run
--
-- Sizes at which a region took longer than the program that it is part of are left out, on all cores: pascal-impossible-regions has them.
WITH cells AS (
  SELECT * FROM efficiency_diffs(executions, method => $method) WHERE efficiency IS NOT NULL
), inner_cells AS (
  SELECT w.run, r.region, w.argument, w.size_order, w.cores, w.efficiency AS program_efficiency, r.efficiency AS region_efficiency,
    w.efficiency * w.time / nullif(greatest(w.time - r.time * (1 - least(r.efficiency, 1)), 0), 0) - w.efficiency AS lost
  FROM cells w
  JOIN cells r ON (r.run IS NOT DISTINCT FROM w.run) AND (r.argument IS NOT DISTINCT FROM w.argument) AND r.cores = w.cores
  WHERE w.region = '' AND r.region <> ''
  QUALIFY NOT bool_or(r.time > 1.01 * w.time) OVER (PARTITION BY w.run, r.region, w.argument)
), largest AS (
  SELECT *, row_number() OVER (PARTITION BY run, region ORDER BY size_order DESC, cores DESC) AS place,
    avg(lost) OVER (PARTITION BY run, region) AS mean_lost
  FROM inner_cells
), parents AS (
  SELECT study, region, min(parent_region) AS parent_region FROM executions GROUP BY study, region
)
SELECT l.run, l.region, p.parent_region, l.argument, l.cores, round(l.program_efficiency, 6) AS program_efficiency,
  round(l.region_efficiency, 6) AS region_efficiency, round(l.lost, 6) AS lost_efficiency,
  round(l.program_efficiency + l.lost, 6) AS efficiency_without_loss,
  round(l.mean_lost, 6) AS mean_lost_efficiency
FROM largest l
LEFT JOIN parents p ON (p.study IS NOT DISTINCT FROM l.run) AND p.region = l.region
WHERE l.place = 1
ORDER BY max(l.lost) OVER (PARTITION BY l.region) DESC, l.region, l.run
