-- title: Which location hands work to which: dependencies from the location of one task to that of the next
-- topic: communication
-- needs: tasks, links.kind=dependency
-- chart: heatmap x=target y=source value=dependencies totals=true panel=run
--
SELECT l.run, s.location AS source, t.location AS target, count(*) AS dependencies
FROM links l
JOIN program_tasks s ON s.task = l.source
JOIN program_tasks t ON t.task = l.target
WHERE l.kind = 'dependency'
GROUP BY l.run, s.location, t.location
ORDER BY source, target, l.run
