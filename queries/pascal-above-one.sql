-- title: Which efficiencies are above 1: more than perfect, so the runs that they are measured against are slow
-- topic: scalability
-- needs: executions
-- param epsilon: DOUBLE = 0.005 -- how far above 1 is noise
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
--
SELECT run, region, argument, cores, time, round(efficiency, 6) AS efficiency
FROM efficiency_diffs(executions, method => $method)
WHERE efficiency > 1 + $epsilon
ORDER BY efficiency DESC, run, region, size_order, cores
