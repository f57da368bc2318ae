-- title: What runs on devices within each NVTX range, including the ranges inside of it
-- topic: gpu
-- needs: links.kind=nvtx
-- chart: bar x=device_busy_time y=label color=run
--
-- Each process has its own ranges, also where several call them the same.
WITH ranges AS (
  SELECT task, task AS inner_task, name FROM program_tasks WHERE kind = 'nvtx'
  UNION ALL
  -- A launch belongs to every range around the innermost one on its lane.
  SELECT a.task, a.of_task AS inner_task, a.name FROM ancestors(program_tasks, (SELECT task FROM program_tasks WHERE kind = 'nvtx')) a
),
under AS (
  -- Each domain has its innermost range; ranges that may overlap are all linked, also those around each other.
  SELECT DISTINCT r.task, r.name, l.target FROM links l JOIN ranges r ON r.inner_task = l.source WHERE l.kind = 'nvtx'
), launched AS (
  SELECT d.run, l.process, u.name AS range, u.task, d.start, d.finish, d.duration
  FROM under u
  JOIN program_tasks d ON d.task = u.target
  JOIN program_tasks r ON r.task = u.task
  LEFT JOIN program_locations l ON l.run = r.run AND l.location = r.location
)
SELECT run, process, range, count(DISTINCT task) AS ranges, count(*) AS launched, sum(duration) AS device_time,
  busy(start, finish) AS device_busy_time, max(finish) - min(start) AS device_span_time,
  CASE WHEN (SELECT max(processes) FROM (SELECT count(DISTINCT process) AS processes FROM launched GROUP BY run)) > 1
    THEN coalesce(process || ': ', '') ELSE '' END || range AS label
FROM launched
GROUP BY run, process, range
ORDER BY sum(busy(start, finish)) OVER (PARTITION BY range) DESC, range, process, run
