-- title: What the counters measured over time
-- topic: counters
-- needs: counters
-- chart: line x=time y=value panel=name
--
SELECT run, name, location, time, value, unit
FROM counters
WHERE time IS NOT NULL AND value IS NOT NULL
ORDER BY run, name, location, time
