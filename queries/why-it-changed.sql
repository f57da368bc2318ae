-- title: Why the run new took longer or shorter than the run base: what the way to the end spent, by name and cause
-- topic: comparison
-- needs: runs.run=base, runs.run=new, tasks
-- chart: bar x=change_time y=what
--
SELECT coalesce(nullif(name, ''), '(no name)') || CASE cause WHEN 'waiting' THEN ': waiting before it'
    WHEN 'path' THEN ': on one path only' ELSE ': work' END AS what,
  name, cause, base AS base_time, new AS new_time, change AS change_time
FROM explain_change(base => 'base', new => 'new')
ORDER BY greatest(change, -change) DESC, name, cause
LIMIT 30
