-- title: How the busy time of the locations changed from base to new, by name of task; the changes of all names add up to it
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=name
--
-- Where a location runs several tasks at once, its time is that of the one that started last: so it counts once, as in busy-time.
WITH work AS (
  -- Where nearly all names occur once, those that differ in numbers are one: blur_*_*.
  SELECT w.run, coalesce(f.family, w.name) AS name, w.tasks, w.work_time AS busy_time
  FROM work_by_name w LEFT JOIN name_families f ON f.name = w.name
  WHERE w.run IN ('base', 'new')
), changes AS (
  SELECT name, coalesce(sum(busy_time) FILTER (WHERE run = 'base'), 0) AS base_time, coalesce(sum(busy_time) FILTER (WHERE run = 'new'), 0) AS new_time,
    coalesce(sum(tasks) FILTER (WHERE run = 'base'), 0) AS base_tasks, coalesce(sum(tasks) FILTER (WHERE run = 'new'), 0) AS new_tasks
  FROM work
  GROUP BY name
)
SELECT CASE name WHEN '' THEN 'tasks without a name' ELSE name END AS name, base_time, new_time, new_time - base_time AS change_time, base_tasks, new_tasks
FROM changes
WHERE base_time <> new_time
ORDER BY abs(new_time - base_time) DESC, name
LIMIT 30
