-- title: In sentences: what was measured, how efficient the program is on the most cores, and where it is least efficient
-- topic: facts
-- needs: executions
--
WITH cells AS (
  SELECT *, row_number() OVER (PARTITION BY run ORDER BY size_order DESC, cores DESC) AS largest,
    row_number() OVER (PARTITION BY run ORDER BY efficiency, size_order, cores DESC) AS least,
    count(*) OVER (PARTITION BY run) AS cell_count
  FROM pascal.program_efficiency
  WHERE efficiency IS NOT NULL
), studies AS (
  SELECT run, max(region) AS region, max(cell_count) AS cell_count, count(DISTINCT argument) AS size_count, min(cores) AS from_cores, max(cores) AS to_cores,
    first_value(argument ORDER BY size_order) AS from_size, last_value(argument ORDER BY size_order) AS to_size,
    max(argument) FILTER (WHERE largest = 1) AS size, max(cores) FILTER (WHERE largest = 1) AS cores,
    max(efficiency) FILTER (WHERE largest = 1) AS efficiency,
    max(argument) FILTER (WHERE least = 1) AS least_size, max(cores) FILTER (WHERE least = 1) AS least_cores,
    max(efficiency) FILTER (WHERE least = 1) AS least_efficiency,
    count(*) FILTER (WHERE efficiency > 1.005) AS above_count, max(efficiency) AS most_efficiency
  FROM cells
  GROUP BY run
)
SELECT run || CASE region WHEN '' THEN '' ELSE ' (its region ' || region || ')' END || ', measured ' || CASE WHEN size_count > 1 THEN 'at ' || size_count || ' sizes from ' || from_size || ' to ' || to_size || ' '
      WHEN size_count = 1 THEN 'at size ' || from_size || ' ' ELSE '' END
  || 'on ' || CASE WHEN from_cores < to_cores THEN from_cores || ' to ' ELSE '' END || to_cores || CASE to_cores WHEN 1 THEN ' core' ELSE ' cores' END
  || CASE WHEN efficiency > 1.005 THEN ', has an efficiency of ' || round(100 * efficiency, 1) || ' % on ' ELSE ', uses ' || round(100 * efficiency, 1) || ' % of ' END
  || cores || CASE cores WHEN 1 THEN ' core' ELSE ' cores' END || CASE WHEN size_count > 1 THEN ' at its largest size' ELSE '' END || CASE WHEN cell_count = 1 OR least_efficiency = efficiency THEN '.'
    ELSE '; least, ' || round(100 * least_efficiency, 1) || ' % of ' || least_cores || CASE WHEN size_count > 1 THEN ', at size ' || least_size ELSE '' END || '.' END
  -- Nothing is more than perfect.
  || CASE above_count WHEN 0 THEN '' ELSE ' Beware: ' || above_count || ' of its ' || cell_count || ' efficiencies '
    || CASE above_count WHEN 1 THEN 'is' ELSE 'are' END || ' above 100 % (up to ' || round(100 * most_efficiency, 1)
    || ' %), so the runs on the fewest cores, which they are measured against, were slow for another reason, or more cores brought more than themselves.' END AS fact
FROM studies
ORDER BY run
