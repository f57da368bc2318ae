-- title: In a sentence: how much the devices compute, and which idles most
-- topic: facts
-- needs: tasks.kind=kernel
--
WITH device AS (
  SELECT t.run, coalesce(l.parent, l.location) AS device, t.role, t.start, t.finish
  FROM program_tasks t
  JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE l.kind = 'stream' AND t.kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')
), unions AS (
  SELECT run, device, max(finish) - min(start) AS total, busy(start, finish) AS busy,
    coalesce(busy(start, finish) FILTER (WHERE role = 'work'), 0) AS computing,
    coalesce(busy(start, finish) FILTER (WHERE role <> 'copy'), 0) AS computing_or_communicating
  FROM device
  GROUP BY run, device
), sums AS (
  SELECT count(*) AS devices, sum(total) AS total, sum(computing) AS computing,
    sum(computing_or_communicating) - sum(computing) AS communicating, sum(total) - sum(busy) AS idle,
    first_value(device ORDER BY 1.0 * (total - busy) / total DESC, run, device) AS idlest,
    max(1.0 * (total - busy) / total) AS most_idle
  FROM unions
  WHERE total > 0
)
SELECT CASE devices WHEN 1 THEN 'The device computed ' ELSE 'The ' || devices || ' devices ' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'of all runs ' ELSE '' END || 'computed ' END
  || round(100.0 * computing / total, 1) || CASE devices WHEN 1 THEN ' % of its time' ELSE ' % of their time' END
  || CASE WHEN communicating > 0 THEN ', communicated without computing ' || round(100.0 * communicating / total, 1) || ' %' ELSE '' END
  || ' and idled ' || round(100.0 * idle / total, 1) || ' %'
  || CASE WHEN devices > 1 THEN '; ' || idlest || ' idled most, ' || round(100 * most_idle, 1) || ' %.' ELSE '.' END AS fact
FROM sums
WHERE devices > 0
