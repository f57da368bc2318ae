-- title: Which PEs stand out: far above the others in messages, instructions or cycles
-- topic: communication
-- needs: locations.kind=pe
-- chart: bar x=times_mean y=what color=run
--
WITH pes AS (
  SELECT run, location, sort_index FROM program_locations WHERE kind = 'pe'
), measures AS (
  SELECT run, pe, sort_index, kind || ' ' || direction AS measure, CAST(messages AS DOUBLE) AS value FROM actorprof.totals
  UNION ALL
  SELECT p.run, p.location, p.sort_index, n.name, coalesce(s.value, 0)
  FROM pes p
  JOIN (SELECT DISTINCT run, name FROM counters WHERE name IN ('PAPI_TOT_INS', 'T_MAIN', 'T_COMM', 'T_PROC')) n ON n.run = p.run
  LEFT JOIN (SELECT run, location, name, sum(value) AS value FROM counters GROUP BY run, location, name) s
    ON s.run = p.run AND s.location = p.location AND s.name = n.name
), spread AS (
  SELECT run, measure, avg(value) AS mean, percentile_cont(value, 0.25) AS q1, percentile_cont(value, 0.75) AS q3
  FROM measures GROUP BY run, measure
), outside AS (
  SELECT m.run, m.pe, m.sort_index, m.measure, m.value, round(m.value / nullif(s.mean, 0), 3) AS times_mean, m.measure || ' of ' || m.pe AS what
  FROM measures m
  JOIN spread s ON s.run = m.run AND s.measure = m.measure
  WHERE m.value > s.q3 + 1.5 * (s.q3 - s.q1)
)
SELECT run, pe, measure, value, times_mean, what
FROM outside
ORDER BY max(times_mean) OVER (PARTITION BY what) DESC, measure, sort_index, run
