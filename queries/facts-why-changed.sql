-- title: In a sentence: what on the executed path of the run changed most from base to new
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
--
-- Of two programs (facts-nothing-in-common) there is nothing to explain.
-- As in why-it-changed: the executed paths, whose changes add up to that of the makespan.
WITH named AS (
  SELECT t.* EXCLUDE (name), coalesce(f.family, t.name) AS name FROM path_tasks t LEFT JOIN name_families f ON f.name = t.name
  WHERE t.run IN ('base', 'new')
), most AS (
  -- Of a run that became longer what grew, of one that became shorter what shrank.
  SELECT name, cause, change
  FROM (SELECT name, cause, change, sum(change) OVER () AS change_time 
    FROM explain_change((SELECT * FROM named), (SELECT * FROM path_links), base => 'base', new => 'new'))
  WHERE change * sign(change_time) > 0
  ORDER BY abs(change) DESC, name, cause
  LIMIT 1
), worked AS (
  SELECT coalesce(f.family, w.name) AS name, sum(CASE WHEN w.run = 'new' THEN w.work_time ELSE -w.work_time END) AS change
  FROM changed.work w LEFT JOIN name_families f ON f.name = w.name
  WHERE w.run IN ('base', 'new')
  GROUP BY coalesce(f.family, w.name)
), common AS (
  SELECT count(*) FILTER (WHERE in_base AND in_new) > 0 OR count(*) FILTER (WHERE in_base) = 0 OR count(*) FILTER (WHERE in_new) = 0 AS is_one_program
  FROM (SELECT count(*) FILTER (WHERE run = 'base') > 0 AS in_base, count(*) FILTER (WHERE run = 'new') > 0 AS in_new FROM program_tasks
    WHERE run IN ('base', 'new') AND name <> '' GROUP BY name)
)
SELECT 'Look next at ' || CASE WHEN coalesce(most.name, '') = '' THEN 'tasks without a name' ELSE most.name END || ' (see What changed): on the executed path, the chain of waits from the start to the end of '
  -- All locations together worked less than half as much longer.
  || CASE WHEN cause = 'work' AND waits.name IS NULL AND 2.0 * worked.change * sign(most.change) < abs(most.change)
       THEN 'the run, ' || CASE WHEN most.change > 0 THEN 'more' ELSE 'less' END || ' of it stands in a row, by ' || time_text(abs(most.change)) || ', though all of it together takes '
            || CASE WHEN most.change > 0 THEN 'hardly longer' ELSE 'hardly less' END
       WHEN cause <> 'path' THEN 'the run, ' || CASE cause WHEN 'waiting' THEN 'waiting before it' ELSE CASE WHEN waits.name IS NULL THEN 'its work' ELSE 'it, a wait that is recorded as a task,' END END || ' took ' || time_text(abs(most.change))
            || CASE WHEN most.change > 0 THEN ' more' ELSE ' less' END
       ELSE CASE WHEN most.change > 0 THEN 'new' ELSE 'base' END || ' it took ' || time_text(abs(most.change)) || ', and it is not on that of '
            || CASE WHEN most.change > 0 THEN 'base' ELSE 'new' END END
  || '.' AS fact, most.name
FROM most
CROSS JOIN common
LEFT JOIN (SELECT name FROM named GROUP BY name HAVING bool_and(role IS NOT DISTINCT FROM 'wait')) waits ON waits.name = most.name
LEFT JOIN worked ON worked.name = most.name
WHERE is_one_program
