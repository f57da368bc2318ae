-- title: How much repetitions of one configuration differ: whether differences of efficiency can be trusted
-- topic: scalability
-- needs: executions
--
SELECT study, region, argument, cores, count(*) AS repetitions, min(time) AS least_time, median(time) AS median_time,
  max(time) AS most_time, round(cv(time), 4) AS cv
FROM executions
WHERE time IS NOT NULL
GROUP BY study, region, argument, size_order, cores
HAVING count(*) > 1
ORDER BY cv DESC, study, region, size_order, cores
