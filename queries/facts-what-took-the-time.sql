-- title: In a sentence: which name of task took the most time
-- topic: facts
-- needs: tasks.start
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH longest_run AS (
  SELECT run FROM runs WHERE makespan IS NOT NULL ORDER BY makespan DESC, run_number LIMIT 1
), names AS (
  -- Where nearly all names occur once, those that differ in numbers are one: blur_*_*.
  SELECT name, sum(tasks) AS tasks, sum(work_time) AS total_time, sum(sum(work_time)) OVER () AS all_time
  FROM (SELECT coalesce(f.family, w.name) AS name, w.tasks, w.work_time FROM work_by_name w LEFT JOIN name_families f ON f.name = w.name
    WHERE w.run = (SELECT run FROM longest_run))
  GROUP BY name
), most AS (
  -- The one before its sentence: where names are many, sentences about all of them would take longer than everything else.
  SELECT * FROM names WHERE total_time > 0 ORDER BY total_time DESC, name LIMIT 1
), longest AS (
  SELECT name, location, duration FROM working_tasks WHERE duration IS NOT NULL AND run = (SELECT run FROM longest_run) ORDER BY duration DESC, task LIMIT 1
)
SELECT CASE WHEN (SELECT count(*) FROM runs) > 1 THEN 'Most task time of the longest run, ' || (SELECT run FROM longest_run) || ',' ELSE 'Most task time' END || ' went into ' || CASE WHEN n.name = '' THEN 'tasks without a name' ELSE n.name END || ': '
  || round(100.0 * n.total_time / n.all_time, 1) || ' %, ' || time_text(n.total_time)
  || ' in ' || n.tasks || CASE WHEN n.tasks = 1 THEN ' task' ELSE ' tasks' END
  || '. The longest single task' || CASE WHEN l.name = '' THEN '' ELSE ', ' || l.name END
  || CASE WHEN coalesce(l.location, '') = '' THEN '' ELSE ' on ' || l.location END
  || CASE WHEN l.name = '' THEN ' took ' ELSE ', took ' END || time_text(l.duration) || '.' AS fact
FROM most n
CROSS JOIN longest l
