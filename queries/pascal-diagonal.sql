-- title: Steps in which problem size and cores grow at the same rate, as weak scaling requires
-- topic: scalability
-- needs: executions
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
--
WITH cells AS (
  SELECT *, dense_rank() OVER (PARTITION BY run ORDER BY size_order) AS size_place,
    dense_rank() OVER (PARTITION BY run ORDER BY cores) AS cores_place
  FROM efficiency_diffs(executions, method => $method)
)
SELECT b.run, b.region, a.argument AS argument_from, b.argument AS argument_to, a.cores AS cores_from, b.cores AS cores_to,
  round(try_cast(b.argument AS DOUBLE) / try_cast(a.argument AS DOUBLE), 6) AS argument_ratio,
  round(1.0 * b.cores / a.cores, 6) AS cores_ratio, round(b.diff_both, 6) AS difference,
  CASE WHEN abs(try_cast(b.argument AS DOUBLE) / try_cast(a.argument AS DOUBLE) / (1.0 * b.cores / a.cores) - 1) < 1e-6 THEN 'yes'
    WHEN try_cast(b.argument AS DOUBLE) / try_cast(a.argument AS DOUBLE) IS NULL THEN 'unknown' ELSE 'no' END AS same_rate
FROM cells b
JOIN cells a ON (a.run IS NOT DISTINCT FROM b.run) AND a.region = b.region
  AND a.size_place = b.size_place - 1 AND a.cores_place = b.cores_place - 1
WHERE b.diff_both IS NOT NULL
ORDER BY b.run, b.region, b.size_place, b.cores
