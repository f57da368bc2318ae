-- title: Where the cycles of each PE go: main part, communication and processing
-- topic: communication
-- needs: counters.name=T_MAIN
-- chart: stacked x=pe y=cycles color=part panel=run
--
SELECT c.run, c.location AS pe, c.name AS part, c.value AS cycles
FROM counters c
JOIN program_locations l ON l.run = c.run AND l.location = c.location
WHERE c.kind = 'total' AND c.name IN ('T_MAIN', 'T_COMM', 'T_PROC')
ORDER BY l.sort_index, c.name, c.run
