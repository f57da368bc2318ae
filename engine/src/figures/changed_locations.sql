-- The locations whose busy time changed from the run base to the run new, unlike that of the others of their kind.
-- A rank that waits in a collective for the last one is not busy.
WITH waits AS (
  SELECT t.run, t.location, sum(c.wait_time) AS wait_time
  FROM tq.main.collectives c JOIN tq.main.working_tasks t ON t.task = c.task
  GROUP BY t.run, t.location
), busy AS (
  SELECT l.kind, b.location, max(b.busy_time - coalesce(w.wait_time, 0)) FILTER (WHERE b.run = 'base') AS base_time,
    max(b.busy_time - coalesce(w.wait_time, 0)) FILTER (WHERE b.run = 'new') AS new_time
  FROM tq.main.busy_lanes b JOIN tq.main.program_locations l ON l.run = b.run AND l.location = b.location
  LEFT JOIN waits w ON w.run = b.run AND w.location = b.location
  WHERE b.run IN ('base', 'new')
  GROUP BY l.kind, b.location
), differences AS (
  SELECT location, base_time, new_time, new_time - base_time AS change_time, median(new_time - base_time) OVER (PARTITION BY kind) AS usual
  FROM busy
  WHERE base_time IS NOT NULL AND new_time IS NOT NULL
)
SELECT location, base_time, new_time, change_time, abs(change_time - usual) AS weight
FROM differences
WHERE 20.0 * least(abs(change_time - usual), abs(change_time)) > (SELECT max(makespan) FROM tq.main.runs WHERE run IN ('base', 'new'))
