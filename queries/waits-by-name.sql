-- title: What waits for what: time between being ready and starting, by name and by the name that released it
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
SELECT r.run, r.name, before.name AS released_by_name, count(*) AS tasks, sum(r.delay) AS waited_time,
  CAST(median(r.delay) AS BIGINT) AS median_time, max(r.delay) AS longest_time
FROM ready() r
JOIN program_tasks before ON before.task = r.released_by
WHERE r.delay > 0
GROUP BY r.run, r.name, before.name
QUALIFY row_number() OVER (PARTITION BY r.run ORDER BY sum(r.delay) DESC, r.name, before.name) <= 30
ORDER BY r.run, waited_time DESC, r.name, released_by_name
LIMIT 300
