-- The tasks that changed from the run base to the run new. Times are those of the tasks themselves.
WITH spans AS (
  -- Waits cut a task into pieces.
  SELECT run, task, name, location, sum(self_time) AS time
  FROM self_time((SELECT * FROM tq.main.working_spans WHERE run IN ('base', 'new')))
  GROUP BY run, task, name, location
), times AS MATERIALIZED (
  SELECT s.run, CASE WHEN coalesce(s.name, '') = '' THEN 'tasks without a name' ELSE coalesce(f.family, s.name) END AS name,
    coalesce(s.location, 'no location') AS location, s.time - coalesce(c.wait_time, 0) AS time
  FROM spans s
  LEFT JOIN tq.main.name_families f ON f.name = s.name
  LEFT JOIN tq.main.collectives c ON c.task = s.task
), names AS (
  SELECT *, new_sum - base_sum AS change, 10.0 * abs(new_median - base_median) > base_median AS is_changed,
    10.0 * abs(new_tasks - base_tasks) > base_tasks AS is_recounted
  FROM (
    SELECT name, count(*) FILTER (WHERE run = 'base') AS base_tasks, count(*) FILTER (WHERE run = 'new') AS new_tasks,
      median(time) FILTER (WHERE run = 'base') AS base_median, median(time) FILTER (WHERE run = 'new') AS new_median,
      max(time) FILTER (WHERE run = 'base') AS base_longest, max(time) FILTER (WHERE run = 'new') AS new_longest,
      coalesce(sum(time) FILTER (WHERE run = 'base'), 0) AS base_sum, coalesce(sum(time) FILTER (WHERE run = 'new'), 0) AS new_sum,
      min(location) FILTER (WHERE run = 'new') AS least_location, max(location) FILTER (WHERE run = 'new') AS most_location
    FROM times
    GROUP BY name
  )
), places AS (
  -- A location that is slower gets fewer tasks of a runtime that shares them out: what it costs is more than what its sum says.
  SELECT *, new_sum - base_sum AS change, greatest(abs(new_sum - base_sum), abs(new_tasks * (new_median - base_median))) AS weight,
    10.0 * abs(new_median - base_median) > base_median AS is_changed, count(*) OVER (PARTITION BY name) AS places
  FROM (
    SELECT name, location, count(*) FILTER (WHERE run = 'base') AS base_tasks, count(*) FILTER (WHERE run = 'new') AS new_tasks,
      median(time) FILTER (WHERE run = 'base') AS base_median, median(time) FILTER (WHERE run = 'new') AS new_median,
      max(time) FILTER (WHERE run = 'base') AS base_longest, max(time) FILTER (WHERE run = 'new') AS new_longest,
      sum(time) FILTER (WHERE run = 'base') AS base_sum, sum(time) FILTER (WHERE run = 'new') AS new_sum
    FROM times
    GROUP BY name, location
  )
  WHERE base_median IS NOT NULL AND new_median IS NOT NULL
), some_places AS (
  -- Where the name as a whole took no longer, a location only got other tasks of it.
  SELECT * FROM (
    SELECT p.*, count(*) OVER (PARTITION BY p.name) AS changed, n.change AS change_of_all,
      sum(p.new_tasks * (p.new_median - p.base_median)) OVER (PARTITION BY p.name) AS cost
    FROM places p JOIN names n ON n.name = p.name
    WHERE p.is_changed AND NOT n.is_recounted
  )
  WHERE 2.0 * abs(change_of_all) >= abs(cost)
), on_places AS (
  SELECT * FROM some_places
  WHERE 2 * changed <= places AND 100.0 * weight > (SELECT max(makespan) FROM tq.main.runs WHERE run IN ('base', 'new'))
), many_places AS (
  SELECT name, max(changed) AS changed, max(places) AS places FROM some_places WHERE 2 * changed <= places GROUP BY name
), longer AS (
  -- Tasks that are longer than all of the other run.
  SELECT t.run, t.name, count(*) AS tasks, min(t.location) AS first_location, max(t.location) AS last_location
  FROM times t JOIN names n ON n.name = t.name
  WHERE 10.0 * t.time > 11.0 * CASE WHEN t.run = 'new' THEN n.base_longest ELSE n.new_longest END AND NOT n.is_recounted AND NOT n.is_changed
  GROUP BY t.run, t.name
), changes AS (
  SELECT name || ' on ' || location AS what, 'median' AS measure, base_tasks, new_tasks, base_median, new_median, base_longest, new_longest,
    base_sum, new_sum, change, weight
  FROM on_places
  UNION ALL
  SELECT CASE
      WHEN base_tasks = 0 THEN n.name || ': only in new' || CASE WHEN least_location = most_location THEN ', on ' || least_location ELSE '' END
      WHEN new_tasks = 0 THEN n.name || ': only in base'
      WHEN is_recounted THEN n.name || ': ' || base_tasks || ' tasks became ' || new_tasks
      WHEN l.name IS NOT NULL THEN n.name || ': ' || l.tasks || ' of its ' || CASE WHEN l.run = 'new' THEN new_tasks ELSE base_tasks END || ' tasks'
        || CASE WHEN l.tasks > 1 AND l.first_location = l.last_location THEN ', all on ' || l.first_location ELSE '' END
      WHEN m.name IS NOT NULL THEN n.name || ' on ' || m.changed || ' of its ' || m.places || ' locations'
      ELSE n.name
    END,
    CASE WHEN is_recounted THEN 'sum' WHEN is_changed THEN 'median' WHEN l.name IS NOT NULL THEN 'longest' ELSE 'sum' END,
    base_tasks, new_tasks, base_median, new_median, base_longest, new_longest, base_sum, new_sum, n.change, abs(n.change)
  FROM names n LEFT JOIN longer l ON l.name = n.name LEFT JOIN many_places m ON m.name = n.name
  WHERE (is_changed OR is_recounted OR l.name IS NOT NULL OR m.name IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM on_places p WHERE p.name = n.name)
)
SELECT what, measure,
  CASE measure WHEN 'median' THEN CAST(round(base_median) AS BIGINT) WHEN 'longest' THEN base_longest ELSE base_sum END AS base_time,
  CASE measure WHEN 'median' THEN CAST(round(new_median) AS BIGINT) WHEN 'longest' THEN new_longest ELSE new_sum END AS new_time,
  change AS change_time, base_tasks, new_tasks, weight
FROM changes
WHERE 100.0 * weight > (SELECT max(makespan) FROM tq.main.runs WHERE run IN ('base', 'new'))
