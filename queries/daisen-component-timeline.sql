-- title: How many tasks of each kind a component had, over time
-- topic: components
-- needs: tasks.kind=req_in
-- param component: TEXT = NULL -- only tasks of this component and of what is below its name
-- param bins: BIGINT = 40 -- number of equal intervals
-- param from: TIME = NULL -- where the window begins; the first start
-- param to: TIME = NULL -- where the window ends; the last finish
-- param by: TEXT = kind -- kind, or kind-what for the single actions
-- chart: stacked x=bin_start y=tasks color=series panel=run
--
WITH spans AS (
  -- As the server of Akita v5: a bin counts every task that touches it.
  -- All runs have the same bins.
  SELECT DISTINCT run, coalesce($from, min(start) OVER ()) AS a, coalesce($to, max(finish) OVER ()) AS b FROM program_tasks
), binned AS (
  SELECT t.run, CASE WHEN $by = 'kind-what' THEN t.kind || '-' || t.name ELSE t.kind END AS series,
    greatest(0, least($bins - 1, CAST(floor((t.start - a) * $bins / CAST(b - a AS DOUBLE)) AS BIGINT))) AS first_bin,
    CAST(ceil((t.finish - a) * $bins / CAST(b - a AS DOUBLE)) AS BIGINT) AS end_bin
  FROM program_tasks t JOIN spans USING (run)
  WHERE a < b AND t.finish > a AND t.start < b
    AND ($component IS NULL OR t.location = $component OR starts_with(t.location, $component || '.'))
), changes AS (
  SELECT run, series, bin, sum(change) AS change
  FROM (
    SELECT run, series, first_bin AS bin, 1 AS change FROM binned
    UNION ALL
    SELECT run, series, end_bin, -1 FROM binned
  )
  GROUP BY run, series, bin
)
SELECT s.run, s.bin, a + s.bin * (b - a) / $bins AS bin_start, s.series,
  greatest(0, sum(coalesce(c.change, 0)) OVER (PARTITION BY s.run, s.series ORDER BY s.bin)) AS tasks,
  time_text(a + s.bin * (b - a) / $bins) AS begins
FROM (SELECT run, series, unnest(range(0, $bins)) AS bin FROM (SELECT DISTINCT run, series FROM binned)) s
JOIN spans ON spans.run = s.run
LEFT JOIN changes c ON c.run = s.run AND c.series = s.series AND c.bin = s.bin
ORDER BY bin, series, run
