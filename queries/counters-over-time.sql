-- title: What the counters measured over time
-- topic: counters
-- needs: counters
-- chart: line x=time y=value by=series panel=name steps=true scales=own
--
-- Increments (kind delta) are added up.
SELECT run, name, location, time, CASE kind WHEN 'delta' THEN sum(value) OVER (PARTITION BY run, name, location ORDER BY time) ELSE value END AS value, unit,
  CASE WHEN (SELECT count(*) FROM runs) > 1 THEN run || coalesce(': ' || location, '') ELSE coalesce(location, run) END AS series
FROM counters
WHERE time IS NOT NULL AND value IS NOT NULL
ORDER BY run, name, location, time
