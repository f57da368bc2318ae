-- title: How the critical path changed from base to new, by name of task; the changes of all names add up to it
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, links.run=base, links.run=new, links.kind=dependency
-- chart: bar x=change_time y=name
--
WITH steps AS (
  -- Where nearly all names occur once, those that differ in numbers are one: blur_*_*.
  SELECT p.run, coalesce(f.family, p.name) AS name, count(*) AS steps, sum(p.duration) AS path_time
  FROM critical_path() p LEFT JOIN name_families f ON f.name = p.name
  WHERE p.run IN ('base', 'new')
  GROUP BY p.run, coalesce(f.family, p.name)
), changes AS (
  SELECT name, coalesce(sum(path_time) FILTER (WHERE run = 'base'), 0) AS base_time, coalesce(sum(path_time) FILTER (WHERE run = 'new'), 0) AS new_time,
    coalesce(sum(steps) FILTER (WHERE run = 'base'), 0) AS base_steps, coalesce(sum(steps) FILTER (WHERE run = 'new'), 0) AS new_steps
  FROM steps
  GROUP BY name
)
SELECT CASE name WHEN '' THEN 'tasks without a name' ELSE name END AS name, base_time, new_time, new_time - base_time AS change_time, base_steps, new_steps
FROM changes
WHERE base_time <> new_time
ORDER BY abs(new_time - base_time) DESC, name
LIMIT 30
