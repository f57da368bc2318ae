-- title: What runs on devices within each NVTX range, including the ranges inside of it
-- topic: gpu
-- needs: links.kind=nvtx
-- chart: bar x=device_busy_time y=range color=run
--
WITH ranges AS (
  SELECT task, task AS inner_task, name FROM program_tasks WHERE kind = 'nvtx'
  UNION ALL
  -- A launch belongs to every range around the innermost one on its lane.
  SELECT a.task, a.of_task AS inner_task, a.name FROM ancestors(program_tasks, (SELECT task FROM program_tasks WHERE kind = 'nvtx')) a
),
under AS (
  -- Each domain has its innermost range; ranges that may overlap are all linked, also those around each other.
  SELECT DISTINCT r.task, r.name, l.target FROM links l JOIN ranges r ON r.inner_task = l.source WHERE l.kind = 'nvtx'
)
SELECT d.run, u.name AS range, count(DISTINCT u.task) AS ranges, count(*) AS launched, sum(d.duration) AS device_time,
  busy(d.start, d.finish) AS device_busy_time, max(d.finish) - min(d.start) AS device_span_time
FROM under u JOIN program_tasks d ON d.task = u.target
GROUP BY d.run, u.name
ORDER BY sum(busy(d.start, d.finish)) OVER (PARTITION BY u.name) DESC, range, d.run
