-- title: In a sentence: where efficiency falls most when cores are added to the same problem
-- topic: facts
-- needs: executions
--
WITH cells AS (
  SELECT *, lag(cores) OVER (PARTITION BY run, argument ORDER BY cores) AS cores_before,
    lag(efficiency) OVER (PARTITION BY run, argument ORDER BY cores) AS efficiency_before
  FROM efficiency_diffs()
  WHERE region = '' AND efficiency IS NOT NULL
)
SELECT 'Look next at ' || run || CASE WHEN argument IS NULL THEN '' ELSE ' at size ' || argument END || ' (see Does the program scale): from '
  || cores_before || ' to ' || cores || ' cores its efficiency falls most, from ' || round(100 * efficiency_before, 1) || ' % to '
  || round(100 * efficiency, 1) || ' %.' AS fact
FROM cells
WHERE efficiency < efficiency_before
ORDER BY efficiency_before - efficiency DESC, run, argument, cores
LIMIT 1
