-- title: In a sentence: how much the devices compute, and which idles most
-- topic: facts
-- needs: tasks.kind=kernel
--
WITH sums AS (
  SELECT count(*) AS devices, sum(total_time) AS total, sum(computing_time) AS computing,
    sum(computing_or_communicating_time) - sum(computing_time) AS communicating, sum(total_time) - sum(busy_time) AS idle,
    first_value(device ORDER BY 1.0 * (total_time - busy_time) / total_time DESC, run, device) AS idlest,
    max(1.0 * (total_time - busy_time) / total_time) AS most_idle
  FROM gpu.devices
  WHERE total_time > 0
)
SELECT CASE devices WHEN 1 THEN 'The device computed ' ELSE 'The ' || devices || ' devices ' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'of all runs ' ELSE '' END || 'computed ' END
  || round(100.0 * computing / total, 1) || CASE devices WHEN 1 THEN ' % of its time' ELSE ' % of their time' END
  || CASE WHEN communicating > 0 THEN ', communicated without computing ' || round(100.0 * communicating / total, 1) || ' %' ELSE '' END
  || ' and idled ' || round(100.0 * idle / total, 1) || ' %'
  || CASE WHEN devices > 1 THEN '; ' || idlest || ' idled most, ' || round(100 * most_idle, 1) || ' %.' ELSE '.' END AS fact
FROM sums
WHERE devices > 0
