-- title: Which tasks changed from the run base to the run new: longer or shorter, all of a name, those on some locations or few, or more of them
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new, no runs.time_unit=weights
-- chart: bar x=change_time y=what
--
-- Times are those of the tasks themselves, without nested ones and without waiting for the last rank of a collective. A median that is a tenth
-- longer or shorter is a change; where at most half of the locations of a name changed, these are shown alone or, if each is little, counted. Where no
-- median changed, the tasks are counted that are a tenth longer than all of the other run. base_time and new_time are what `measure` says, change_time is the change
-- of the sum of all times of a name, on a location where that is named.
-- What comes to less than a hundredth of the makespan is not shown.
SELECT what, measure, base_time, new_time, change_time
FROM changed.tasks
ORDER BY weight DESC, what
LIMIT 30
