-- title: Which locations are busy for longer or shorter in the run new than in the run base, unlike the others
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=location
--
-- One slow worker, or a rank that got more to do: locations whose change is more than a twentieth of the longer makespan, and differs by
-- as much from the median change of all of its kind. Where all changed alike, there are none. A rank that waits in a collective for the last one is not busy.
SELECT location, base_time, new_time, change_time, round(100.0 * change_time / nullif(base_time, 0), 1) AS change_percent
FROM changed.locations
ORDER BY weight DESC, location
LIMIT 30
