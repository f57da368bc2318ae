-- title: The longest intervals in which a location ran nothing
-- topic: locations
-- needs: tasks
--
-- From the first start to the last finish of its run, as its makespan, or within the slice: what a location waited for its first task (no
-- `name_before`) and after its last one (no `name_after`) counts too. Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are
-- left out.
SELECT g.run, g.location, g.start, g.duration, before.name AS name_before, after.name AS name_after
FROM idle_stretches g
LEFT JOIN working_tasks before ON before.task = g.task_before
LEFT JOIN working_tasks after ON after.task = g.task_after
ORDER BY g.duration DESC, g.run, g.location, g.start
LIMIT 20
