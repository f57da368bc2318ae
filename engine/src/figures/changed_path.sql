-- What the executed paths of the runs base and new spent, by name and cause.
WITH named AS (
  SELECT t.* EXCLUDE (name), coalesce(f.family, t.name) AS name FROM tq.main.path_tasks t LEFT JOIN tq.main.name_families f ON f.name = t.name
  WHERE t.run IN ('base', 'new')
), worked AS (
  SELECT name, sum(CASE WHEN run = 'new' THEN work_time ELSE -work_time END) AS change FROM tq.changed.work WHERE run IN ('base', 'new') GROUP BY name
), waits AS (
  SELECT name FROM named WHERE name IS NOT NULL GROUP BY name HAVING bool_and(role IS NOT DISTINCT FROM 'wait')
)
SELECT e.name, e.cause, w.name IS NOT NULL AS is_wait,
  e.cause = 'work' AND w.name IS NULL AND coalesce(2.0 * worked.change * sign(e.change) < abs(e.change), false) AS is_same_work,
  e.base AS base_time, e.new AS new_time, e.change AS change_time
FROM explain_change((SELECT * FROM named), (SELECT * FROM tq.main.path_links), (SELECT * FROM tq.main.messages), base => 'base', new => 'new') e
LEFT JOIN waits w ON w.name = e.name
LEFT JOIN worked ON worked.name = e.name
