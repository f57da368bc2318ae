-- title: Why the makespan changed from the run base to the run new: what the executed paths spent, by name and cause
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=what
--
-- A recorded wait is a task whose role is wait, such as `threading.py: wait` of Python. A rank that waits in a collective for a late one
-- does no work, and the path goes on where that one was. Where nearly all names occur once, those that differ in numbers are one: blur_*_*.
-- Where all tasks of a name together grew by less than half of what the path did, it has more of them: fewer ran at once.
WITH named AS (
  SELECT t.* EXCLUDE (name), coalesce(f.family, t.name) AS name FROM path_tasks t LEFT JOIN name_families f ON f.name = t.name
  WHERE t.run IN ('base', 'new')
), worked AS (
  SELECT coalesce(f.family, w.name) AS name, sum(CASE WHEN w.run = 'new' THEN w.work_time ELSE -w.work_time END) AS change
  FROM changed.work w LEFT JOIN name_families f ON f.name = w.name
  WHERE w.run IN ('base', 'new')
  GROUP BY coalesce(f.family, w.name)
), waits AS (
  SELECT name FROM named WHERE name IS NOT NULL GROUP BY name HAVING bool_and(role IS NOT DISTINCT FROM 'wait')
)
SELECT CASE WHEN coalesce(e.name, '') = '' THEN 'tasks without a name' ELSE e.name END
    || CASE cause WHEN 'waiting' THEN ': waiting' WHEN 'path' THEN ': on one path only' ELSE CASE WHEN w.name IS NOT NULL THEN ': recorded wait'
      -- All locations together worked less than half as much longer.
      WHEN 2.0 * worked.change * sign(e.change) < abs(e.change) THEN CASE WHEN e.change > 0 THEN ': same work, more in a row' ELSE ': same work, less in a row' END
      ELSE ': work' END END AS what,
  base AS base_time, new AS new_time, e.change AS change_time
-- The changes of all names add up to the change of the makespan exactly; the thirty largest are shown.
FROM explain_change((SELECT * FROM named), (SELECT * FROM path_links), base => 'base', new => 'new') e
LEFT JOIN waits w ON w.name = e.name
LEFT JOIN worked ON worked.name = e.name
WHERE e.change <> 0
ORDER BY greatest(e.change, -e.change) DESC, what
LIMIT 30
