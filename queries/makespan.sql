-- title: How long each run took, from its first start to its last finish
-- topic: comparison
-- needs: tasks
-- metric makespan: better=lower
--
SELECT run, makespan FROM runs WHERE makespan IS NOT NULL ORDER BY run_number
