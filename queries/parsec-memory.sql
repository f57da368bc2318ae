-- title: How much memory is in use over time, by device or process
-- topic: parsec
-- needs: counters
-- chart: line x=time y=bytes by=series steps=true
--
SELECT run, CASE WHEN (SELECT count(*) FROM runs) > 1 THEN run || ': ' ELSE '' END || location || ' ' || name AS series, location, name, time,
  sum(value) OVER (PARTITION BY run, location, name ORDER BY time RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes
FROM counters
WHERE kind = 'delta' AND unit = 'bytes'
ORDER BY run, series, time
