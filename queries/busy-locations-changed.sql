-- title: Which locations are busy for longer or shorter in the run new than in the run base, unlike the others
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=location
--
-- One slow worker, or a rank that got more to do: locations whose change is more than a twentieth of the longer makespan, and differs by
-- as much from the median change of all of its kind. Where all changed alike, there are none.
WITH changes AS (
  SELECT l.kind, b.location, max(b.busy_time) FILTER (WHERE b.run = 'base') AS base_time, max(b.busy_time) FILTER (WHERE b.run = 'new') AS new_time
  FROM busy_lanes b JOIN program_locations l ON l.run = b.run AND l.location = b.location
  WHERE b.run IN ('base', 'new')
  GROUP BY l.kind, b.location
), differences AS (
  SELECT location, base_time, new_time, new_time - base_time AS change_time, median(new_time - base_time) OVER (PARTITION BY kind) AS usual
  FROM changes
  WHERE base_time IS NOT NULL AND new_time IS NOT NULL
)
SELECT location, base_time, new_time, change_time, round(100.0 * change_time / nullif(base_time, 0), 1) AS change_percent
FROM differences
WHERE 20 * least(abs(change_time - usual), abs(change_time)) > (SELECT max(makespan) FROM runs WHERE run IN ('base', 'new'))
ORDER BY abs(change_time - usual) DESC, location
LIMIT 30
