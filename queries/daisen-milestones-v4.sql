-- title: How many tasks of a component had reached which milestone, over time, as Akita v4 counts them
-- topic: waiting
-- needs: tasks.kind=req_in, events
-- param component: TEXT = NULL -- its name; without one, all tasks
-- param bins: BIGINT = 40 -- number of equal intervals
-- param from: TIME = NULL -- where the window begins; the first start
-- param to: TIME = NULL -- where the window ends; the last finish
-- chart: stacked x=bin_start y=tasks color=reason panel=run
--
WITH spans AS (
  -- A task that touches a bin counts there with the reason that was resolved last when the bin begins, else with its first:
  -- one step behind what it is blocked on (daisen-milestones).
  -- All runs have the same bins.
  SELECT DISTINCT run, coalesce($from, min(start) OVER ()) AS a, coalesce($to, max(finish) OVER ()) AS b FROM program_tasks
), bins AS (
  SELECT run, value AS bin, a + value * (b - a) / $bins AS bin_start,
    a + value * (b - a) / CAST($bins AS DOUBLE) AS begins, a + (value + 1) * (b - a) / CAST($bins AS DOUBLE) AS ends
  FROM (SELECT *, unnest(range(0, $bins)) AS value FROM spans WHERE a < b)
), resolved AS (
  SELECT e.run, e.kind AS reason, t.start, t.finish,
    CASE WHEN lag(e.time) OVER of_task IS NULL THEN NULL ELSE e.time END AS holds_from,
    lead(e.time) OVER of_task AS holds_until
  FROM events e JOIN program_tasks t ON t.task = e.task JOIN spans s ON s.run = t.run
  WHERE e.kind <> 'tag' AND e.time IS NOT NULL AND ($component IS NULL OR t.location = $component)
    AND t.finish > s.a AND t.start < s.b
  WINDOW of_task AS (PARTITION BY e.task ORDER BY e.time)
)
SELECT b.run, b.bin, b.bin_start, reasons.reason, count(r.reason) AS tasks, time_text(b.bin_start) AS begins
FROM bins b JOIN (SELECT DISTINCT run, reason FROM resolved) reasons ON reasons.run = b.run
LEFT JOIN resolved r ON r.run = b.run AND r.reason = reasons.reason AND r.start <= b.ends AND r.finish >= b.begins
  AND (r.holds_from IS NULL OR r.holds_from <= b.begins) AND (r.holds_until IS NULL OR r.holds_until > b.begins)
GROUP BY b.run, b.bin, b.bin_start, reasons.reason
ORDER BY b.bin, reasons.reason, b.run
