-- title: In a sentence: how the makespan changed from the run base to the run new, and which work changed most
-- topic: facts
-- needs: runs.run=base, runs.run=new, tasks, no runs.time_unit=weights
--
-- Of two programs (facts-nothing-in-common) nothing changed.
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH spans AS (
  SELECT max(makespan) FILTER (WHERE run = 'base') AS base_time, max(makespan) FILTER (WHERE run = 'new') AS new_time FROM runs
), counts AS (
  SELECT count(*) FILTER (WHERE run = 'base') AS base_count, count(*) FILTER (WHERE run = 'new') AS new_count
  FROM working_tasks
  WHERE run IN ('base', 'new')
), changes AS (
  SELECT name, coalesce(sum(work_time) FILTER (WHERE run = 'base'), 0) AS base_time,
    coalesce(sum(work_time) FILTER (WHERE run = 'new'), 0) - coalesce(sum(work_time) FILTER (WHERE run = 'base'), 0) AS change_time
  FROM changed.work
  WHERE run IN ('base', 'new')
  GROUP BY name
), alike AS (
  -- Names with a hundredth of the work and more: where all of them changed by the same share, it is not one of them.
  SELECT count(*) AS names, min(1.0 * change_time / nullif(base_time, 0)) AS least, max(1.0 * change_time / nullif(base_time, 0)) AS most
  FROM changes
  WHERE 100.0 * greatest(base_time, base_time + change_time) >= (SELECT sum(base_time) FROM changes)
), largest AS (
  -- In a run that took longer, what grew; what shrank only where nothing grew.
  SELECT first_value(name ORDER BY place DESC, name) AS name, first_value(change_time ORDER BY place DESC, name) AS change_time
  FROM (
    SELECT c.name, c.change_time, CASE WHEN s.new_time > s.base_time THEN c.change_time WHEN s.new_time < s.base_time THEN -c.change_time
        ELSE greatest(c.change_time, -c.change_time) END AS place
    FROM changes c CROSS JOIN spans s
    -- Less than that is rounding.
    WHERE c.change_time <> 0 AND 1000.0 * abs(c.change_time) >= (SELECT greatest(base_time, new_time) FROM spans)
  )
)
SELECT CASE WHEN slice_from() IS NULL AND slice_to() IS NULL THEN 'The run took ' ELSE 'Within the slice, the run took ' END
  || time_text(s.new_time) || CASE WHEN s.new_time = s.base_time THEN ' as before' ELSE ' instead of ' || time_text(s.base_time) END
  || CASE
       WHEN s.base_time = 0 OR s.new_time = s.base_time THEN ''
       WHEN s.new_time >= 2 * s.base_time THEN ', ' || round(1.0 * s.new_time / s.base_time, 1) || ' times as long'
       WHEN s.new_time > s.base_time THEN ', ' || round(100.0 * (s.new_time - s.base_time) / s.base_time, 1) || ' % longer'
       ELSE ', ' || round(100.0 * (s.base_time - s.new_time) / s.base_time, 1) || ' % shorter'
     END
  || CASE
       WHEN a.names > 1 AND a.most - a.least < 0.02 AND least(abs(a.most), abs(a.least)) > 0.02
         THEN '; all work took ' || round(50.0 * abs(a.most + a.least), 1) || CASE WHEN a.most > 0 THEN ' % longer' ELSE ' % less' END || ' alike, whatever its name.'
       WHEN l.change_time > 0 THEN '; the work that grew most is ' || CASE WHEN l.name = '' THEN 'tasks without a name' ELSE l.name END
         || ', by ' || time_text(l.change_time) || '.'
       WHEN l.change_time < 0 THEN '; the work that shrank most is ' || CASE WHEN l.name = '' THEN 'tasks without a name' ELSE l.name END
         || ', by ' || time_text(-l.change_time) || '.'
       ELSE '; the work in every name of task is about the same.'
     END
  -- A tenth more or fewer: perhaps another problem.
  || CASE
       WHEN 10 * greatest(n.base_count, n.new_count) > 11 * least(n.base_count, n.new_count)
         THEN ' It has ' || n.new_count || CASE n.new_count WHEN 1 THEN ' task' ELSE ' tasks' END || ' instead of ' || n.base_count || '.'
       ELSE ''
     END AS fact
FROM spans s
CROSS JOIN counts n
CROSS JOIN largest l
CROSS JOIN changed.names c
CROSS JOIN alike a
WHERE s.base_time IS NOT NULL AND s.new_time IS NOT NULL AND (c.common_names > 0 OR c.base_names = 0 OR c.new_names = 0)
