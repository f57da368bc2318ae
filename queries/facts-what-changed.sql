-- title: In a sentence: how the makespan changed from the run base to the run new, and which work changed most
-- topic: facts
-- needs: runs.run=base, runs.run=new, tasks, no runs.time_unit=weights
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH spans AS (
  SELECT max(makespan) FILTER (WHERE run = 'base') AS base_time, max(makespan) FILTER (WHERE run = 'new') AS new_time FROM runs
), work AS (
  SELECT run, name, sum(self_time) AS work_time FROM self_time(working_tasks) WHERE run IN ('base', 'new') GROUP BY run, name
), changes AS (
  SELECT name, coalesce(sum(work_time) FILTER (WHERE run = 'new'), 0) - coalesce(sum(work_time) FILTER (WHERE run = 'base'), 0) AS change_time
  FROM work
  GROUP BY name
), largest AS (
  SELECT name, change_time FROM changes ORDER BY greatest(change_time, -change_time) DESC, name LIMIT 1
)
SELECT CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN 'The run took ' ELSE 'Within the slice, the run took ' END
  || time_text(s.new_time) || CASE WHEN s.new_time = s.base_time THEN ' as before' ELSE ' instead of ' || time_text(s.base_time) END
  || CASE
       WHEN s.base_time = 0 OR s.new_time = s.base_time THEN ''
       WHEN s.new_time > s.base_time THEN ', ' || round(100.0 * (s.new_time - s.base_time) / s.base_time, 1) || ' % longer'
       ELSE ', ' || round(100.0 * (s.base_time - s.new_time) / s.base_time, 1) || ' % shorter'
     END
  || CASE
       WHEN l.change_time > 0 THEN '; the work that grew most is ' || CASE WHEN l.name = '' THEN 'tasks without a name' ELSE l.name END
         || ', by ' || time_text(l.change_time) || '.'
       WHEN l.change_time < 0 THEN '; the work that shrank most is ' || CASE WHEN l.name = '' THEN 'tasks without a name' ELSE l.name END
         || ', by ' || time_text(-l.change_time) || '.'
       ELSE '; the work in every name of task is the same.'
     END AS fact
FROM spans s
CROSS JOIN largest l
WHERE s.base_time IS NOT NULL AND s.new_time IS NOT NULL
