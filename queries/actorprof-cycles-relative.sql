-- title: Shares of each PE's cycles in the main part, communication and processing
-- topic: communication
-- needs: counters.kind=total
-- chart: stacked x=pe y=share color=part panel=run
--
WITH totals AS (
  SELECT c.run, c.location AS pe, l.sort_index, c.name, c.value
  FROM counters c
  JOIN program_locations l ON l.run = c.run AND l.location = c.location
  WHERE c.kind = 'total'
), absolute AS (
  SELECT run, pe, sort_index, name AS part, value AS cycles, sum(value) OVER (PARTITION BY run, pe) AS total
  FROM totals
  WHERE name IN ('T_MAIN', 'T_COMM', 'T_PROC')
), parts AS (
  SELECT run, pe, sort_index, part, cycles, total, cycles / nullif(total, 0) AS share FROM absolute
  UNION ALL
  -- Of some PEs nothing but the shares was printed.
  SELECT t.run, t.pe, t.sort_index, replace(t.name, '/T_TOTAL', '') AS part, NULL AS cycles, NULL AS total, t.value AS share
  FROM totals t
  LEFT ANTI JOIN absolute a ON a.run = t.run AND a.pe = t.pe
  WHERE t.name IN ('T_MAIN/T_TOTAL', 'T_COMM/T_TOTAL', 'T_PROC/T_TOTAL')
)
SELECT run, pe, part, cycles, total, round(share, 6) AS share
FROM parts
ORDER BY sort_index, part, run
