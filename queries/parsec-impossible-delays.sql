-- title: Tasks that start before an input from another rank was ready: how far apart the clocks of two ranks are at least
-- topic: parsec
-- needs: tasks, links, locations
--
SELECT r.run, before.rank AS source_rank, after.rank AS target_rank, count(*) AS tasks,
  count(*) FILTER (WHERE r.delay < 0) AS impossible, min(r.delay) AS min_delay_time
FROM ready(
  (SELECT * FROM program_tasks WHERE kind = 'task'),
  (SELECT * FROM links WHERE kind = 'dependency' AND name IS DISTINCT FROM 'again')) r
JOIN program_tasks b ON b.task = r.released_by
JOIN (SELECT run, location, 'rank ' || process AS rank, clock FROM program_locations) before ON before.run = r.run AND before.location = b.location
JOIN (SELECT run, location, 'rank ' || process AS rank, clock FROM program_locations) after ON after.run = r.run AND after.location = r.location
WHERE before.rank <> after.rank AND r.finish IS NOT NULL
GROUP BY r.run, before.rank, after.rank
ORDER BY min_delay_time, r.run, source_rank, target_rank
