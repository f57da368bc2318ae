-- title: Why the makespan changed from the run base to the run new: what the executed paths spent, by name and cause
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=what
--
-- A recorded wait is a task whose role is wait, such as `threading.py: wait` of Python. A rank that waits in a collective for a late one
-- does no work, and the path goes on where that one was. Where nearly all names occur once, those that differ in numbers are one: blur_*_*.
-- Where all tasks of a name together grew by less than half of what the path did, it has more of them: fewer ran at once.
SELECT CASE WHEN coalesce(name, '') = '' THEN 'tasks without a name' ELSE name END
    || CASE WHEN cause = 'waiting' THEN ': waiting' WHEN cause = 'path' THEN ': on one path only' WHEN is_wait THEN ': recorded wait'
      WHEN is_same_work THEN CASE WHEN change_time > 0 THEN ': same work, more in a row' ELSE ': same work, less in a row' END
      ELSE ': work' END AS what,
  base_time, new_time, change_time
-- The changes of all names add up to the change of the makespan exactly; the thirty largest are shown.
FROM changed.path
WHERE change_time <> 0
ORDER BY greatest(change_time, -change_time) DESC, what
LIMIT 30
