-- title: In sentences: how time and efficiency changed from the study base to the study new, at the largest problem that both solved, and what only one of them measured
-- topic: facts
-- needs: executions, runs.study=base, runs.study=new
--
WITH cells AS MATERIALIZED (
  SELECT * FROM efficiency_diffs(executions, method => 'median_of_ratios') WHERE region = '' AND run IN ('base', 'new')
), sizes AS MATERIALIZED (
  SELECT argument, min(size_order) AS size_order, bool_or(run = 'base') AS in_base, bool_or(run = 'new') AS in_new FROM cells WHERE argument IS NOT NULL GROUP BY argument
), core_counts AS MATERIALIZED (
  SELECT cores, bool_or(run = 'base') AS in_base, bool_or(run = 'new') AS in_new FROM cells GROUP BY cores
), single AS (
  SELECT (SELECT CASE count(*) WHEN 0 THEN NULL WHEN 1 THEN 'size ' || min(argument) ELSE CASE WHEN count(*) <= 4 THEN 'sizes ' || string_agg(argument, ', ' ORDER BY size_order)
      ELSE count(*) || ' sizes from ' || first_value(argument ORDER BY size_order) || ' to ' || last_value(argument ORDER BY size_order) END END FROM sizes WHERE NOT in_new) AS base_sizes,
    (SELECT CASE count(*) WHEN 0 THEN NULL WHEN 1 THEN 'size ' || min(argument) ELSE CASE WHEN count(*) <= 4 THEN 'sizes ' || string_agg(argument, ', ' ORDER BY size_order)
      ELSE count(*) || ' sizes from ' || first_value(argument ORDER BY size_order) || ' to ' || last_value(argument ORDER BY size_order) END END FROM sizes WHERE NOT in_base) AS new_sizes,
    (SELECT string_agg(CAST(cores AS TEXT), ', ' ORDER BY cores) FROM core_counts WHERE NOT in_new) AS base_cores,
    (SELECT string_agg(CAST(cores AS TEXT), ', ' ORDER BY cores) FROM core_counts WHERE NOT in_base) AS new_cores
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
       || CASE WHEN new_time >= 2 * base_time THEN round(1.0 * new_time / base_time, 1) || ' times as long'
            WHEN new_time > base_time THEN round(100.0 * (new_time - base_time) / base_time, 1) || ' % longer'
            ELSE round(100.0 * (base_time - new_time) / base_time, 1) || ' % shorter' END END
  || CASE WHEN base_efficiency IS NULL OR new_efficiency IS NULL THEN '.'
       WHEN round(100 * base_efficiency, 1) = round(100 * new_efficiency, 1) THEN '; its efficiency is ' || round(100 * new_efficiency, 1) || ' % as before.'
       ELSE '; its efficiency is ' || round(100 * new_efficiency, 1) || ' % instead of ' || round(100 * base_efficiency, 1) || ' %.' END AS fact
FROM both_cells
UNION ALL
SELECT 'base and new have no size and number of cores in common: their times and efficiencies are those of different problems.' AS fact
FROM (SELECT count(*) AS cells FROM both_cells)
WHERE cells = 0
UNION ALL
SELECT 'Not compared is what only one of them measured: ' || array_to_string(array_remove_all(make_array(
    CASE WHEN base_sizes IS NULL AND base_cores IS NULL THEN '' ELSE 'base '
      || coalesce(base_sizes, '') || CASE WHEN base_sizes IS NOT NULL AND base_cores IS NOT NULL THEN ' and ' ELSE '' END
      || coalesce(base_cores || CASE base_cores WHEN '1' THEN ' core' ELSE ' cores' END, '') END,
    CASE WHEN new_sizes IS NULL AND new_cores IS NULL THEN '' ELSE 'new '
      || coalesce(new_sizes, '') || CASE WHEN new_sizes IS NOT NULL AND new_cores IS NOT NULL THEN ' and ' ELSE '' END
      || coalesce(new_cores || CASE new_cores WHEN '1' THEN ' core' ELSE ' cores' END, '') END), ''), '; ') || '.' AS fact
FROM single
WHERE base_sizes IS NOT NULL OR base_cores IS NOT NULL OR new_sizes IS NOT NULL OR new_cores IS NOT NULL
