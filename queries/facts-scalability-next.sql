-- title: In a sentence: where efficiency falls most when cores are added to the same problem
-- topic: facts
-- needs: executions
--
-- As in pascal-verdict, a step from the fewest cores, where efficiency is 1 by definition, counts only where there is no other.
WITH cells AS (
  SELECT *, min(cores) OVER (PARTITION BY run) AS fewest_cores, lag(cores) OVER (PARTITION BY run, argument ORDER BY cores) AS cores_before,
    lag(efficiency) OVER (PARTITION BY run, argument ORDER BY cores) AS efficiency_before
  FROM pascal.program_efficiency
  WHERE efficiency IS NOT NULL
)
SELECT 'Look next at ' || CASE WHEN argument IS NULL THEN 'the step to ' || cores || ' cores' ELSE 'size ' || argument END
  || ' (see Does the program scale), where the efficiency of ' || run || ' falls most when cores are added'
  || CASE cores_before WHEN fewest_cores THEN '' ELSE ' to more than the fewest' END || ': from ' || round(100 * efficiency_before, 1)
  || ' % of ' || cores_before || CASE cores_before WHEN 1 THEN ' core' ELSE ' cores' END || CASE cores_before WHEN fewest_cores THEN ' (by definition)' ELSE '' END
  || ' to ' || round(100 * efficiency, 1) || ' % of ' || cores || '.' AS fact
FROM cells
WHERE efficiency < efficiency_before
ORDER BY cores_before = fewest_cores, efficiency_before - efficiency DESC, run, argument, cores
LIMIT 1
