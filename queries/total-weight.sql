-- title: How much the folded stacks of each run weigh together
-- topic: comparison
-- needs: tasks, runs.time_unit=weights
-- metric total_weight: better=lower
--
-- What a weight counts (samples, bytes, microseconds), the file does not say.
SELECT run, makespan AS total_weight FROM runs WHERE makespan IS NOT NULL ORDER BY run_number
