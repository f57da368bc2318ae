-- title: How hardware counters (PAPI) advance between readings, per thread
-- topic: parsec
-- needs: counters
-- chart: line x=time y=value by=series panel=name scales=own
--
SELECT run, location, name, time, value,
  value - lag(value) OVER (PARTITION BY run, location, name ORDER BY time) AS since_last,
  CASE WHEN (SELECT count(*) FROM runs) > 1 THEN run || ': ' ELSE '' END || location AS series
FROM counters
WHERE kind = 'level'
ORDER BY run, location, name, time
