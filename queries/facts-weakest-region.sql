-- title: In a sentence: which innermost region costs most efficiency
-- topic: facts
-- needs: executions
--
-- As in pascal-weakest-region.
WITH cells AS (
  SELECT * FROM efficiency_diffs(executions, method => 'median_of_ratios') WHERE efficiency IS NOT NULL
), parents AS (
  SELECT DISTINCT study, parent_region FROM executions WHERE parent_region IS NOT NULL
), innermost AS (
  SELECT w.run, r.region, w.argument, w.size_order, w.cores, w.efficiency AS program_efficiency,
    w.efficiency * w.time / nullif(greatest(w.time - r.time * (1 - least(r.efficiency, 1)), 0), 0) - w.efficiency AS lost,
    bool_or(r.time > 1.01 * w.time) OVER (PARTITION BY w.run, r.region, w.argument) AS impossible
  FROM cells w
  JOIN cells r ON (r.run IS NOT DISTINCT FROM w.run) AND (r.argument IS NOT DISTINCT FROM w.argument) AND r.cores = w.cores
  LEFT ANTI JOIN parents p ON (p.study IS NOT DISTINCT FROM r.run) AND p.parent_region = r.region
  WHERE w.region = '' AND r.region <> ''
), places AS (
  SELECT *, row_number() OVER (PARTITION BY run, region ORDER BY size_order DESC, cores DESC) AS place FROM innermost WHERE NOT impossible
), left_out AS (
  SELECT count(DISTINCT run || region) AS regions FROM innermost WHERE impossible
)
SELECT 'Of the innermost regions, ' || region || CASE WHEN (SELECT count(DISTINCT study) FROM executions) > 1 THEN ' of ' || run ELSE '' END || ' costs most: if it scaled perfectly, the program would use '
  || round(100 * (program_efficiency + lost), 1) || ' % of ' || cores || ' cores instead of ' || round(100 * program_efficiency, 1)
  || ' % at size ' || coalesce(argument, 'of the only one') || '.'
  || CASE regions WHEN 0 THEN '' ELSE ' Beware: the times of ' || regions || ' of these regions cannot be right (see Regions whose times cannot be right).' END AS fact
FROM places CROSS JOIN left_out
WHERE place = 1 AND lost > 0
ORDER BY lost DESC, run, region
LIMIT 1
