-- title: How efficiently the program and its regions use cores, by problem size
-- topic: scalability
-- needs: executions
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
-- chart: heatmap x=cores y=argument value=efficiency panel=panel
--
SELECT run, region, argument, cores, time, round(efficiency, 6) AS efficiency,
  run || ': ' || CASE region WHEN '' THEN 'whole program' ELSE region END AS panel
FROM efficiency_diffs(executions, method => $method)
ORDER BY run, region, size_order, cores
