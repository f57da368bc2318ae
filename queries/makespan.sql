-- title: How long each run took, from its first start to its last finish
-- topic: comparison
-- needs: tasks, no runs.time_unit=weights
-- metric makespan: better=lower
--
SELECT run, makespan FROM runs WHERE makespan IS NOT NULL ORDER BY run_number
