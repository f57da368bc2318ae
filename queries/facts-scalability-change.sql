-- title: In a sentence: how time and efficiency changed from the study base to the study new, at the largest problem that both solved
-- topic: facts
-- needs: executions, runs.study=base, runs.study=new
--
WITH cells AS (
  SELECT * FROM efficiency_diffs(executions, method => 'median_of_ratios') WHERE region = '' AND run IN ('base', 'new')
), both_cells AS (
  SELECT b.argument, b.cores, b.time AS base_time, n.time AS new_time, b.efficiency AS base_efficiency, n.efficiency AS new_efficiency
  FROM cells b
  JOIN cells n ON (n.argument IS NOT DISTINCT FROM b.argument) AND n.cores = b.cores
  WHERE b.run = 'base' AND n.run = 'new' AND b.time > 0 AND n.time > 0
  ORDER BY b.size_order DESC, b.cores DESC
  LIMIT 1
)
SELECT 'At the largest size and on the most cores that base and new have in common (' || CASE WHEN argument IS NULL THEN '' ELSE 'size ' || argument || ', ' END
  || cores || CASE cores WHEN 1 THEN ' core' ELSE ' cores' END || '), new took ' || time_text(CAST(new_time AS BIGINT))
  || CASE WHEN new_time = base_time THEN ' as before' ELSE ' instead of ' || time_text(CAST(base_time AS BIGINT)) || ', '
       || CASE WHEN new_time > base_time THEN round(100.0 * (new_time - base_time) / base_time, 1) || ' % longer'
            ELSE round(100.0 * (base_time - new_time) / base_time, 1) || ' % shorter' END END
  || CASE WHEN base_efficiency IS NULL OR new_efficiency IS NULL THEN '.'
       ELSE '; its efficiency is ' || round(100 * new_efficiency, 1) || ' % instead of ' || round(100 * base_efficiency, 1) || ' %.' END AS fact
FROM both_cells
UNION ALL
SELECT 'base and new have no size and number of cores in common: their times and efficiencies are those of different problems.' AS fact
FROM (SELECT count(*) AS cells FROM both_cells)
WHERE cells = 0
