-- title: What changed from the run base to the run new: work by name of task, idle time, and the locations used
-- topic: comparison
-- needs: runs.run=base, runs.run=new, tasks, no runs.time_unit=weights
-- chart: bar x=change_time y=what
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- Where nearly all names occur once, those that differ in numbers are one: blur_*_*.
WITH idle AS (
  SELECT r.run, CAST(count(*) AS BIGINT) AS lanes, sum(r.makespan - n.busy_time) AS idle_time
  FROM busy_lanes n
  JOIN runs r ON r.run = n.run
  GROUP BY r.run
), waiting AS (
  SELECT c.run, coalesce(f.family, c.name) AS name, count(*) AS tasks, sum(c.wait_time) AS wait_time
  FROM collectives c LEFT JOIN name_families f ON f.name = c.name
  GROUP BY c.run, coalesce(f.family, c.name)
), measures AS (
  SELECT r.run, 0 AS part, 'makespan' AS what, r.makespan AS total_time, coalesce(c.count, 0) AS count
  FROM runs r LEFT JOIN (SELECT run, count(*) AS count FROM working_tasks GROUP BY run) c ON c.run = r.run
  UNION ALL
  SELECT run, 1 AS part, 'idle locations' AS what, idle_time AS total_time, lanes AS count FROM idle
  UNION ALL
  SELECT run, 2 AS part, 'work in ' || CASE WHEN coalesce(name, '') = '' THEN 'tasks without a name' ELSE name END AS what, work_time AS total_time, tasks AS count FROM changed.work
  UNION ALL
  SELECT run, 2 AS part, 'waiting for the last rank in ' || name AS what, wait_time AS total_time, tasks AS count FROM waiting
), changes AS (
  SELECT part, what, base.total_time AS base_time, new.total_time AS new_time,
    -- Work that only one of the runs has took no time in the other; a makespan that is not known is not 0.
    CASE WHEN part = 2 THEN coalesce(new.total_time, 0) - coalesce(base.total_time, 0) ELSE new.total_time - base.total_time END AS change_time,
    base.count AS base_count, new.count AS new_count
  FROM (SELECT part, what, total_time, count FROM measures WHERE run = 'base') base
  FULL JOIN (SELECT part, what, total_time, count FROM measures WHERE run = 'new') new USING (part, what)
)
SELECT what,
  CASE WHEN part = 2 THEN coalesce(base_time, 0) ELSE base_time END AS base_time,
  CASE WHEN part = 2 THEN coalesce(new_time, 0) ELSE new_time END AS new_time,
  coalesce(base_count, 0) AS base_count, coalesce(new_count, 0) AS new_count,
  change_time, round(100.0 * change_time / nullif(base_time, 0), 1) AS change_percent
FROM changes
WHERE change_time <> 0 OR (base_time IS DISTINCT FROM new_time) OR (base_count IS DISTINCT FROM new_count)
ORDER BY CASE WHEN part = 0 THEN 0 ELSE 1 END, abs(change_time) DESC NULLS LAST, part, what
LIMIT 30
