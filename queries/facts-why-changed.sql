-- title: In a sentence: what on the executed path of the run changed most from base to new
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
--
-- Of two programs (facts-nothing-in-common) there is nothing to explain.
-- As in why-it-changed: the executed paths, whose changes add up to that of the makespan.
WITH most AS (
  -- Of a run that became longer what grew, of one that became shorter what shrank.
  SELECT *
  FROM (SELECT *, sum(change_time) OVER () AS change_of_makespan FROM changed.path)
  WHERE change_time * sign(change_of_makespan) > 0
  ORDER BY abs(change_time) DESC, name, cause
  LIMIT 1
)
SELECT 'Look next at ' || CASE WHEN coalesce(name, '') = '' THEN 'tasks without a name' ELSE name END || ' (see What changed): on the executed path, the chain of waits from the start to the end of '
  || CASE
       WHEN is_same_work THEN 'the run, ' || CASE WHEN change_time > 0 THEN 'more' ELSE 'less' END || ' of it stands in a row, by ' || time_text(abs(change_time))
            || ', though all of it together takes ' || CASE WHEN change_time > 0 THEN 'hardly longer' ELSE 'hardly less' END
       WHEN cause <> 'path' THEN 'the run, ' || CASE WHEN cause = 'waiting' THEN 'waiting before it' WHEN is_wait THEN 'it, a wait that is recorded as a task,' ELSE 'its work' END
            || ' took ' || time_text(abs(change_time)) || CASE WHEN change_time > 0 THEN ' more' ELSE ' less' END
       ELSE CASE WHEN change_time > 0 THEN 'new' ELSE 'base' END || ' it took ' || time_text(abs(change_time)) || ', and it is not on that of '
            || CASE WHEN change_time > 0 THEN 'base' ELSE 'new' END
     END
  || '.' AS fact, name
FROM most CROSS JOIN changed.names
WHERE common_names > 0 OR base_names = 0 OR new_names = 0
