-- title: Which tasks became longer or shorter from the run base to the run new: all of a name, those on some locations, or few of them
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=what
--
-- Times are those of the tasks themselves, without nested ones. A median that is a tenth longer or shorter is a change; where at most half of the
-- locations of a name changed, these are shown alone. Where no median changed, the tasks are counted that are a tenth longer than all of the
-- other run. change_time is what that adds up to; below a hundredth of the makespan it is not shown.
WITH times AS MATERIALIZED (
  SELECT s.run, CASE WHEN coalesce(s.name, '') = '' THEN 'tasks without a name' ELSE coalesce(f.family, s.name) END AS name, s.location, s.self_time AS time
  FROM self_time((SELECT * FROM working_tasks WHERE run IN ('base', 'new'))) s LEFT JOIN name_families f ON f.name = s.name
), names AS (
  SELECT name, count(*) FILTER (WHERE run = 'base') AS base_tasks, count(*) FILTER (WHERE run = 'new') AS new_tasks,
    median(time) FILTER (WHERE run = 'base') AS base_median, median(time) FILTER (WHERE run = 'new') AS new_median,
    max(time) FILTER (WHERE run = 'base') AS base_longest, max(time) FILTER (WHERE run = 'new') AS new_longest
  FROM times
  GROUP BY name
), places AS (
  SELECT name, location, tasks, base_median, new_median, base_longest, new_longest, is_changed,
    count(*) FILTER (WHERE is_changed) OVER (PARTITION BY name) AS changed, count(*) OVER (PARTITION BY name) AS places
  FROM (
    SELECT name, location, count(*) FILTER (WHERE run = 'new') AS tasks,
      median(time) FILTER (WHERE run = 'base') AS base_median, median(time) FILTER (WHERE run = 'new') AS new_median,
      max(time) FILTER (WHERE run = 'base') AS base_longest, max(time) FILTER (WHERE run = 'new') AS new_longest,
      10 * abs(median(time) FILTER (WHERE run = 'new') - median(time) FILTER (WHERE run = 'base')) > median(time) FILTER (WHERE run = 'base') AS is_changed
    FROM times
    GROUP BY name, location
  )
  WHERE base_median IS NOT NULL AND new_median IS NOT NULL
), on_places AS (
  SELECT name, location, tasks, base_median, new_median, base_longest, new_longest FROM places WHERE is_changed AND 2 * changed <= places
), longer AS (
  -- Tasks that are longer than all of the other run.
  SELECT t.run, t.name, count(*) AS tasks, sum(t.time - CASE WHEN t.run = 'new' THEN n.base_median ELSE n.new_median END) AS change
  FROM times t JOIN names n ON n.name = t.name
  WHERE 10 * t.time > 11 * CASE WHEN t.run = 'new' THEN n.base_longest ELSE n.new_longest END
  GROUP BY t.run, t.name
), changes AS (
  SELECT name || ' on ' || location AS what, tasks, base_median, new_median, base_longest, new_longest, tasks * (new_median - base_median) AS change
  FROM on_places
  UNION ALL
  SELECT CASE WHEN l.name IS NOT NULL THEN n.name || ': ' || l.tasks || ' of its ' || CASE WHEN l.run = 'new' THEN new_tasks ELSE base_tasks END || ' tasks' ELSE n.name END,
    new_tasks, base_median, new_median, base_longest, new_longest,
    CASE WHEN l.name IS NULL THEN new_tasks * (new_median - base_median) WHEN l.run = 'new' THEN l.change ELSE -l.change END
  FROM (SELECT *, 10 * abs(new_median - base_median) > base_median AS is_changed FROM names) n LEFT JOIN longer l ON l.name = n.name AND NOT is_changed
  WHERE (is_changed OR l.name IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM on_places p WHERE p.name = n.name)
)
SELECT what, tasks, base_median AS base_median_time, new_median AS new_median_time, base_longest AS base_longest_time, new_longest AS new_longest_time, CAST(change AS BIGINT) AS change_time
FROM changes
WHERE 100 * abs(change) > (SELECT max(makespan) FROM runs WHERE run IN ('base', 'new'))
ORDER BY abs(change) DESC, what
LIMIT 30
