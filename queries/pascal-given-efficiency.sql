-- title: The efficiencies of a file that has no times (SPERF's CSV), as their medians
-- topic: scalability
-- needs: counters.name=efficiency
-- chart: heatmap x=cores y=argument value=efficiency panel=panel
--
SELECT r.study, t.name AS region, r.argument, r.cores, count(*) AS repetitions, median(c.value) AS efficiency,
  r.study || ': ' || CASE t.name WHEN '' THEN 'whole program' ELSE t.name END AS panel
FROM counters c
JOIN program_tasks t ON t.task = c.task
JOIN runs r ON r.run = c.run
WHERE c.name = 'efficiency' AND t.kind = 'region'
GROUP BY r.study, t.name, r.argument, r.size_order, r.cores
ORDER BY r.study, region, r.size_order, r.cores
