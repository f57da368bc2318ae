-- title: What was measured, and how efficient the program is at its largest size and where it is least efficient
-- topic: scalability
-- needs: executions
--
-- `region` is '' where the whole program was measured. Efficiencies in per cent of `cores`, 100 is perfect.
WITH cells AS (
  SELECT *, row_number() OVER (PARTITION BY run ORDER BY size_order DESC, cores DESC) AS largest,
    row_number() OVER (PARTITION BY run ORDER BY efficiency, size_order, cores DESC) AS least
  FROM pascal.program_efficiency
  WHERE efficiency IS NOT NULL
)
SELECT run, max(region) AS region, count(DISTINCT argument) AS sizes, count(*) AS measured, max(argument) FILTER (WHERE largest = 1) AS largest_size,
  max(cores) FILTER (WHERE largest = 1) AS cores, round(100 * max(efficiency) FILTER (WHERE largest = 1), 1) AS efficiency_percent,
  max(argument) FILTER (WHERE least = 1) AS least_at_size, max(cores) FILTER (WHERE least = 1) AS least_on_cores,
  round(100 * max(efficiency) FILTER (WHERE least = 1), 1) AS least_percent, count(*) FILTER (WHERE efficiency > 1.005) AS above_100,
  round(100 * max(efficiency), 1) AS most_percent
FROM cells
GROUP BY run
ORDER BY run
