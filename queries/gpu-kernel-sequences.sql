-- title: The kernels that operators launch one after the other, the most frequent sequences first
-- topic: gpu
-- needs: links.kind=launch
-- chart: bar x=calls y=kernels
--
-- The operator is the innermost task around the launches. Sequences of one kernel are left out: `gpu-kernels` has them.
SELECT run, operator, kernels, length, count(*) AS calls, sum(device_time) AS device_time
FROM (
  SELECT l.run, o.task, o.name AS operator, string_agg(d.name, ' → ' ORDER BY c.start, c.task, d.task) AS kernels,
    count(*) AS length, sum(d.duration) AS device_time
  FROM links l
  JOIN program_tasks c ON c.task = l.source
  JOIN program_tasks d ON d.task = l.target
  JOIN program_tasks o ON o.task = c.parent
  WHERE l.kind = 'launch' AND d.kind = 'kernel'
  GROUP BY l.run, o.task, o.name
  HAVING count(*) > 1
)
GROUP BY run, operator, kernels, length
ORDER BY run, calls DESC, device_time DESC, operator, kernels
LIMIT 300
