-- title: The hardware counters of each PE: main part and handlers
-- topic: communication
-- needs: counters.kind=delta, locations.kind=pe
-- chart: stacked x=pe y=value color=part panel=counter
--
SELECT c.run, c.location AS pe, c.name, CASE WHEN c.message IS NULL THEN 'main' ELSE 'handlers' END AS part, sum(c.value) AS value,
  count(*) AS sections, c.name || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || c.run ELSE '' END AS counter
FROM counters c
JOIN program_locations l ON l.run = c.run AND l.location = c.location AND l.kind = 'pe'
WHERE c.kind = 'delta' AND c.name LIKE 'PAPI%'
GROUP BY c.run, c.location, l.sort_index, c.name, c.message IS NULL
ORDER BY c.name DESC, c.run, l.sort_index, part DESC
