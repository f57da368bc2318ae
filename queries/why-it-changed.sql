-- title: Why the makespan changed from the run base to the run new: what the executed paths spent, by name and cause
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=what
--
-- A recorded wait is a task whose role is wait, such as `threading.py: wait` of Python.
WITH waits AS (
  SELECT name FROM program_tasks WHERE run IN ('base', 'new') AND name IS NOT NULL GROUP BY name HAVING bool_and(role = 'wait')
)
SELECT CASE WHEN coalesce(e.name, '') = '' THEN 'tasks without a name' ELSE e.name END
    || CASE cause WHEN 'waiting' THEN ': waiting' WHEN 'path' THEN ': on one path only' ELSE CASE WHEN w.name IS NOT NULL THEN ': recorded wait' ELSE ': work' END END AS what,
  base AS base_time, new AS new_time, change AS change_time
-- The changes of all names add up to the change of the makespan exactly; the thirty largest are shown.
FROM explain_change(base => 'base', new => 'new') e
LEFT JOIN waits w ON w.name = e.name
WHERE change <> 0
ORDER BY greatest(change, -change) DESC, what
LIMIT 30
