-- title: How many waits of tasks lasted, and for what, over time
-- topic: waiting
-- needs: tasks.kind=req_in, events
-- param component: TEXT = NULL -- only tasks of this component and of what is below its name
-- param bins: BIGINT = 40 -- number of equal intervals
-- param from: TIME = NULL -- where the window begins; the first start
-- param to: TIME = NULL -- where the window ends; the last finish
-- param resource: TEXT = NULL -- only waits for this resource, of tasks that met it as hardware_resource
-- param by: TEXT = kind -- kind, or kind-what for the single resources
-- chart: stacked x=bin_start y=waits color=reason panel=run
--
WITH spans AS (
  -- As the server of Akita v5: a bin counts every interval between milestones that touches it, so that a task may count several times.
  -- All runs have the same bins.
  SELECT DISTINCT run, coalesce($from, min(start) OVER ()) AS a, coalesce($to, max(finish) OVER ()) AS b FROM program_tasks
), intervals AS (
  SELECT e.run, e.task, e.name AS resource, CASE WHEN $by = 'kind-what' THEN e.kind || '-' || e.name ELSE e.kind END AS reason,
    t.start AS task_start, t.finish AS task_finish, e.time AS finish,
    coalesce(lag(e.time) OVER (PARTITION BY e.task ORDER BY e.time), t.start) AS start
  FROM events e JOIN program_tasks t ON t.task = e.task
  WHERE e.kind <> 'tag' AND e.time IS NOT NULL
    AND ($component IS NULL OR t.location = $component OR starts_with(t.location, $component || '.'))
), binned AS (
  SELECT i.run, i.reason,
    greatest(0, least($bins - 1, CAST(floor((i.start - a) * $bins / CAST(b - a AS DOUBLE)) AS BIGINT))) AS first_bin,
    CAST(ceil((i.finish - a) * $bins / CAST(b - a AS DOUBLE)) AS BIGINT) AS end_bin
  FROM intervals i JOIN spans USING (run)
  WHERE a < b AND i.task_finish > a AND i.task_start < b AND i.finish > a AND i.start < b
    AND ($resource IS NULL OR i.resource = $resource
      AND i.task IN (SELECT task FROM events WHERE kind = 'hardware_resource' AND name = $resource))
), changes AS (
  SELECT run, reason, bin, sum(change) AS change
  FROM (
    SELECT run, reason, first_bin AS bin, 1 AS change FROM binned
    UNION ALL
    SELECT run, reason, end_bin, -1 FROM binned
  )
  GROUP BY run, reason, bin
)
SELECT s.run, s.bin, a + s.bin * (b - a) / $bins AS bin_start, s.reason,
  greatest(0, sum(coalesce(c.change, 0)) OVER (PARTITION BY s.run, s.reason ORDER BY s.bin)) AS waits,
  time_text(a + s.bin * (b - a) / $bins) AS begins
FROM (SELECT run, reason, unnest(range(0, $bins)) AS bin FROM (SELECT DISTINCT run, reason FROM binned)) s
JOIN spans ON spans.run = s.run
LEFT JOIN changes c ON c.run = s.run AND c.reason = s.reason AND c.bin = s.bin
ORDER BY bin, reason, run
