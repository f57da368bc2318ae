-- title: Does the program scale, strongly or weakly, and from which size or number of cores on?
-- topic: scalability
-- needs: executions
-- param epsilon: DOUBLE = 0.005 -- how far efficiency may fall before a step counts as a contradiction
-- param with_base: BOOLEAN = false -- whether the column of the fewest cores, which is 1 by definition, counts
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
--
-- What `words` says stands in no other column. Steps on the fewest cores, and from them to more, are counted with `with_base` only.
WITH cells AS MATERIALIZED (
  SELECT *, dense_rank() OVER (PARTITION BY run ORDER BY size_order) AS size_place,
    dense_rank() OVER (PARTITION BY run ORDER BY cores) AS cores_place
  FROM efficiency_diffs(executions, method => $method)
), steps AS MATERIALIZED (
  SELECT run, region, 1 AS place, 'scalable' AS property, argument, size_place, cores, cores_place, diff_size AS difference
  FROM cells WHERE diff_size IS NOT NULL AND ($with_base OR cores_place > 1)
  UNION ALL
  SELECT run, region, 2, 'strongly scalable', argument, size_place, cores, cores_place, diff_cores
  FROM cells WHERE diff_cores IS NOT NULL AND ($with_base OR cores_place > 2)
  UNION ALL
  SELECT run, region, 3, 'weakly scalable', argument, size_place, cores, cores_place, diff_both
  FROM cells WHERE diff_both IS NOT NULL AND ($with_base OR cores_place > 2)
), judged AS (
  SELECT run, region, place, property, count(*) AS steps, count(*) FILTER (WHERE difference >= -$epsilon) AS holding,
    max(size_place) FILTER (WHERE difference < -$epsilon) AS last_size, max(size_place) AS sizes,
    max(cores_place) FILTER (WHERE difference < -$epsilon) AS last_cores, max(cores_place) AS cores,
    min(cores_place) FILTER (WHERE difference < -$epsilon) AS first_cores, min(cores_place) AS least_cores,
    min(difference) AS worst,
    first_value(argument ORDER BY size_place, cores_place) FILTER (WHERE difference < -$epsilon) AS at_argument,
    first_value(cores ORDER BY size_place, cores_place) FILTER (WHERE difference < -$epsilon) AS at_cores
  FROM steps
  GROUP BY run, region, place, property
), properties AS (
  SELECT run, region, p['place'] AS place, p['property'] AS property
  FROM (
    SELECT run, region, unnest(make_array(named_struct('place', 1, 'property', 'scalable'),
      named_struct('place', 2, 'property', 'strongly scalable'), named_struct('place', 3, 'property', 'weakly scalable'))) AS p
    FROM (SELECT DISTINCT run, region FROM cells)
  )
), sizes AS (
  SELECT DISTINCT run, size_place, argument FROM cells
), core_counts AS (
  SELECT DISTINCT run, cores_place, cores FROM cells
), answers AS (
  SELECT p.run, p.region, p.place, p.property, j.steps, j.holding, j.worst, j.at_argument, j.at_cores,
    CASE WHEN j.steps IS NULL THEN 'unknown' WHEN j.holding = j.steps THEN 'yes' WHEN j.holding = 0 THEN 'no' ELSE 'partly' END AS verdict,
    CASE WHEN j.last_size < j.sizes THEN s.argument END AS from_argument,
    CASE WHEN j.last_cores < j.cores THEN c.cores END AS from_cores,
    CASE WHEN j.first_cores > j.least_cores THEN u.cores END AS up_to_cores
  FROM properties p
  LEFT JOIN judged j ON (j.run IS NOT DISTINCT FROM p.run) AND j.region = p.region AND j.place = p.place
  LEFT JOIN sizes s ON (s.run IS NOT DISTINCT FROM p.run) AND s.size_place = j.last_size + 1
  LEFT JOIN core_counts c ON (c.run IS NOT DISTINCT FROM p.run) AND c.cores_place = j.last_cores + 1
  LEFT JOIN core_counts u ON (u.run IS NOT DISTINCT FROM p.run) AND u.cores_place = j.first_cores - 1
)
SELECT run, region, property, verdict, steps, holding, steps - holding AS falling, round(worst, 6) AS worst_difference, from_argument, from_cores, up_to_cores,
  CASE verdict WHEN 'yes' THEN 'Efficiency falls by no more than ' || $epsilon || CASE steps WHEN 1 THEN ' in the only step' ELSE ' in any step' END
    WHEN 'unknown' THEN 'No step to ' || CASE place WHEN 1 THEN 'a larger size' WHEN 2 THEN 'more cores' ELSE 'a larger size on more cores' END
      || ' was measured' || CASE WHEN $with_base THEN '' WHEN place = 1 THEN ' on more than the fewest cores' ELSE ' from more than the fewest cores' END
    WHEN 'no' THEN CASE steps WHEN 1 THEN 'Efficiency falls in the only step' ELSE 'Efficiency falls in every step' END
    ELSE CASE WHEN from_argument IS NOT NULL OR from_cores IS NOT NULL OR up_to_cores IS NOT NULL
      THEN 'Efficiency holds in all steps '
        || array_to_string(make_array('from size ' || from_argument || ' on', 'from ' || from_cores || ' cores on', 'up to ' || up_to_cores || ' cores'), ', and in all ')
        || '; it falls first ' ELSE 'Efficiency falls first ' END
      || coalesce('at size ' || at_argument || ' ', '') || 'on ' || at_cores || ' cores' END || '.' AS words
FROM answers
ORDER BY run, region, place
