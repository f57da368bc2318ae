-- title: The kernels that operators launch one after the other, the most frequent sequences first
-- topic: gpu
-- needs: links.kind=launch
-- chart: bar x=calls y=kernels color=run
--
-- The operator is the innermost task around the launches. Sequences of one kernel are left out: `gpu-kernels` has them.
WITH launches AS (
  SELECT l.run, o.task, o.name AS operator, string_agg(d.name, ' → ' ORDER BY c.start, c.task, d.task) AS kernels,
    count(*) AS length, sum(d.duration) AS device_time
  FROM links l
  JOIN program_tasks c ON c.task = l.source
  JOIN program_tasks d ON d.task = l.target
  JOIN program_tasks o ON o.task = c.parent
  WHERE l.kind = 'launch' AND d.kind = 'kernel'
  GROUP BY l.run, o.task, o.name
  HAVING count(*) > 1
), sequences AS (
  SELECT run, operator, kernels, length, count(*) AS calls, sum(device_time) AS device_time,
    sum(count(*)) OVER of_all AS of_calls, sum(sum(device_time)) OVER of_all AS of_time
  FROM launches
  GROUP BY run, operator, kernels, length
  WINDOW of_all AS (PARTITION BY operator, kernels)
)
SELECT run, operator, kernels, length, calls, device_time
FROM sequences
ORDER BY of_calls DESC, of_time DESC, operator, kernels, run
LIMIT 300
