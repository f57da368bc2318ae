-- title: Which steps contradict scalability: where efficiency falls, and by how much
-- topic: scalability
-- needs: executions
-- param epsilon: DOUBLE = 0.005 -- how far efficiency may fall before a step counts as a contradiction
-- param with_base: BOOLEAN = false -- whether the column of the fewest cores, which is 1 by definition, counts
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
-- chart: bar x=difference y=step color=run most=20
--
WITH cells AS MATERIALIZED (
  SELECT *, dense_rank() OVER (PARTITION BY run ORDER BY size_order) AS size_place,
    dense_rank() OVER (PARTITION BY run ORDER BY cores) AS cores_place
  FROM efficiency_diffs(executions, method => $method)
), steps AS (
  SELECT run, region, 1 AS place, 'scalable' AS property, argument, size_place, cores, cores_place, diff_size AS difference
  FROM cells WHERE diff_size IS NOT NULL AND ($with_base OR cores_place > 1)
  UNION ALL
  SELECT run, region, 2, 'strongly scalable', argument, size_place, cores, cores_place, diff_cores
  FROM cells WHERE diff_cores IS NOT NULL AND ($with_base OR cores_place > 2)
  UNION ALL
  SELECT run, region, 3, 'weakly scalable', argument, size_place, cores, cores_place, diff_both
  FROM cells WHERE diff_both IS NOT NULL AND ($with_base OR cores_place > 2)
), words AS (
  SELECT run, argument, unnest(string_to_array(argument, ' ')) AS word FROM (SELECT DISTINCT run, argument FROM cells)
), shared AS (
  -- Words of the command line that all sizes have tell none of them from the others.
  SELECT run, array_agg(word) AS shared_words
  FROM (SELECT w.run, w.word FROM words w JOIN (SELECT run, count(DISTINCT argument) AS sizes FROM words GROUP BY run) n ON n.run IS NOT DISTINCT FROM w.run
    GROUP BY w.run, w.word, n.sizes HAVING count(DISTINCT w.argument) = n.sizes AND n.sizes > 1)
  GROUP BY run
), labelled AS (
  SELECT s.*, coalesce(nullif(array_to_string(array_except(string_to_array(argument, ' '), shared_words), ' '), ''), argument) AS size,
    min(difference) OVER (PARTITION BY region, place, argument, cores) AS worst
  FROM steps s
  LEFT JOIN shared h ON h.run IS NOT DISTINCT FROM s.run
  WHERE difference < -$epsilon
)
SELECT run, region, property, argument, cores, round(difference, 6) AS difference,
  property || ': ' || coalesce('size ' || size || ' on ', '') || cores || CASE cores WHEN 1 THEN ' core' ELSE ' cores' END
    || CASE region WHEN '' THEN '' ELSE ' (' || region || ')' END AS step
FROM labelled
-- The worst first; of several studies, a step of one stands beside the same step of the others.
ORDER BY worst, region, place, size_place, argument, cores, run
