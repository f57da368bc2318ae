-- title: In a sentence: which tasks changed most themselves from base to new, or else which location
-- topic: facts
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
--
-- Of two programs (facts-nothing-in-common) nothing changed.
WITH tasks_first AS (
  SELECT * FROM changed.tasks ORDER BY weight DESC, what LIMIT 1
), locations_first AS (
  SELECT * FROM changed.locations ORDER BY weight DESC, location LIMIT 1
)
SELECT 'Of the tasks themselves, this changed most (see What changed): ' || what || CASE measure
    WHEN 'median' THEN ', ' || time_text(new_time) || ' in the median instead of ' || time_text(base_time)
    WHEN 'longest' THEN ', up to ' || time_text(new_time) || ' instead of ' || time_text(base_time)
    ELSE ', ' || time_text(abs(change_time)) || CASE WHEN change_time > 0 THEN ' more' ELSE ' less' END || ' in all'
  END || '.' AS fact
FROM tasks_first CROSS JOIN changed.names
WHERE common_names > 0 OR base_names = 0 OR new_names = 0
UNION ALL
SELECT 'No task changed much itself, but one location did (see What changed): ' || location || ' was busy for ' || time_text(new_time)
  || ' instead of ' || time_text(base_time) || '.' AS fact
FROM locations_first CROSS JOIN changed.names
WHERE (common_names > 0 OR base_names = 0 OR new_names = 0) AND (SELECT count(*) FROM tasks_first) = 0
