-- title: In a sentence: which tasks changed most themselves from base to new, or else which location
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
--
-- Of two programs (facts-nothing-in-common) nothing changed.
WITH tasks_first AS (
  SELECT * FROM changed.tasks ORDER BY weight DESC, what LIMIT 1
), locations_first AS (
  SELECT * FROM changed.locations ORDER BY weight DESC, location LIMIT 1
), common AS (
  SELECT count(*) FILTER (WHERE in_base AND in_new) > 0 OR count(*) FILTER (WHERE in_base) = 0 OR count(*) FILTER (WHERE in_new) = 0 AS is_one_program
  FROM (SELECT count(*) FILTER (WHERE run = 'base') > 0 AS in_base, count(*) FILTER (WHERE run = 'new') > 0 AS in_new FROM program_tasks
    WHERE run IN ('base', 'new') AND name <> '' GROUP BY name)
)
SELECT 'Of the tasks themselves, this changed most (see What changed): ' || what || CASE measure
    WHEN 'median' THEN ', ' || time_text(new_time) || ' in the median instead of ' || time_text(base_time)
    WHEN 'longest' THEN ', up to ' || time_text(new_time) || ' instead of ' || time_text(base_time)
    ELSE ', ' || time_text(abs(change_time)) || CASE WHEN change_time > 0 THEN ' more' ELSE ' less' END || ' in all'
  END || '.' AS fact
FROM tasks_first CROSS JOIN common
WHERE is_one_program
UNION ALL
SELECT 'No task changed much itself, but one location did (see What changed): ' || location || ' was busy for ' || time_text(new_time)
  || ' instead of ' || time_text(base_time) || '.' AS fact
FROM locations_first CROSS JOIN common
WHERE is_one_program AND (SELECT count(*) FROM tasks_first) = 0
