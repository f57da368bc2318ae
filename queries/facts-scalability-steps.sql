-- title: In a sentence: in how many steps efficiency falls when the problem grows, cores are added, or both
-- topic: facts
-- needs: executions
--
-- As in pascal-verdict: a fall of up to 0.005 is noise, and the column of the fewest cores is 1 by definition. Programs with regions have
-- facts-weakest-region.
WITH cells AS (
  SELECT *, dense_rank() OVER (PARTITION BY run ORDER BY cores) AS cores_place FROM efficiency_diffs(executions, method => 'median_of_ratios') WHERE region = ''
), steps AS (
  SELECT run, count(diff_size) FILTER (WHERE cores_place > 1) AS size_steps,
    count(*) FILTER (WHERE cores_place > 1 AND diff_size < -0.005) AS size_falls, count(diff_cores) FILTER (WHERE cores_place > 2) AS cores_steps,
    count(*) FILTER (WHERE cores_place > 2 AND diff_cores < -0.005) AS cores_falls, count(diff_both) FILTER (WHERE cores_place > 2) AS both_steps,
    count(*) FILTER (WHERE cores_place > 2 AND diff_both < -0.005) AS both_falls
  FROM cells
  GROUP BY run
)
SELECT 'Efficiency' || CASE WHEN count(*) OVER () > 1 THEN ' of ' || run ELSE '' END || ' falls by more than 0.005 in '
  || array_to_string(array_remove_all(make_array(CASE WHEN cores_steps > 0 THEN cores_falls || ' of ' || cores_steps || ' steps to more cores' ELSE '' END,
    CASE WHEN size_steps > 0 THEN size_falls || ' of ' || size_steps || CASE WHEN cores_steps > 0 THEN '' ELSE ' steps' END || ' to a larger problem' ELSE '' END,
    CASE WHEN both_steps > 0 THEN both_falls || ' of ' || both_steps || CASE WHEN cores_steps + size_steps > 0 THEN ' to both' ELSE ' steps to both' END ELSE '' END), ''), ', ') || ' (see Does the program scale).' AS fact
FROM steps
WHERE size_steps + cores_steps + both_steps > 0 AND (SELECT count(*) FROM executions WHERE region <> '') = 0
ORDER BY run
