-- title: What waits for what: time between being ready and starting, by name and by the name that released it
-- topic: dependencies
-- needs: tasks, links.kind=dependency
--
WITH names AS (
  SELECT r.run, CAST(r.name AS VARCHAR) AS name, CAST(before.name AS VARCHAR) AS released_by_name, count(*) AS tasks, sum(r.delay) AS waited_time,
    CAST(round(median(r.delay)) AS BIGINT) AS median_time, max(r.delay) AS longest_time
  FROM ready() r
  JOIN program_tasks before ON before.task = r.released_by
  WHERE r.delay > 0
  GROUP BY r.run, r.name, before.name
), shares AS (
  SELECT *, sum(waited_time) OVER (PARTITION BY name, released_by_name) AS of_names FROM names
)
-- Those that waited most in all runs together, so that each stands beside itself in the others.
SELECT run, name, released_by_name, tasks, waited_time, median_time, longest_time
FROM shares
QUALIFY dense_rank() OVER (ORDER BY of_names DESC, name, released_by_name) <= 30
ORDER BY of_names DESC, name, released_by_name, run
LIMIT 300
