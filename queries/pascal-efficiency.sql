-- title: How efficiently the program and its regions use cores, by problem size
-- topic: scalability
-- needs: executions
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
-- param from: DOUBLE = NULL -- the efficiency at the pale end of the colours; without one, the least
-- param to: DOUBLE = NULL -- that at the dark end; without one, the greatest
-- chart: heatmap x=cores y=argument value=efficiency panel=panel from=$from to=$to
--
SELECT run, region, argument, cores, time, round(efficiency, 6) AS efficiency,
  run || ': ' || CASE region WHEN '' THEN 'whole program' ELSE region END AS panel
FROM efficiency_diffs(executions, method => $method)
ORDER BY run, region, size_order, cores
