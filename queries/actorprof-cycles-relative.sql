-- title: Which share of each PE's cycles goes to the main part, communication, processing
-- topic: communication
-- needs: counters.name=T_MAIN
-- chart: stacked x=pe y=share color=part
--
WITH parts AS (
  SELECT c.run, c.location AS pe, l.sort_index, c.name AS part, c.value AS cycles,
    sum(c.value) OVER (PARTITION BY c.run, c.location) AS total
  FROM counters c
  JOIN locations l ON l.run = c.run AND l.location = c.location
  WHERE c.kind = 'total' AND c.name IN ('T_MAIN', 'T_COMM', 'T_PROC')
)
SELECT run, pe, part, cycles, total, round(cycles / nullif(total, 0), 6) AS share
FROM parts
ORDER BY run, sort_index, part
