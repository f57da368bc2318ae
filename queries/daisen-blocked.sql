-- title: What each task was blocked on, and for how long: the longest intervals
-- topic: waiting
-- needs: tasks.kind=req_in, events
-- param component: TEXT = NULL -- only tasks of this component and of what is below its name
-- param id: TEXT = NULL -- only the task with this id
-- param limit: BIGINT = 100 -- how many intervals
--
SELECT e.run, e.task, t.id, t.location, t.kind AS task_kind, e.kind AS reason, e.name AS resource,
  -- A milestone is the moment when what a task waited for is there: it was blocked on that since the milestone before, or
  -- since its start. After its last milestone nothing is said.
  coalesce(lag(e.time) OVER (PARTITION BY e.task ORDER BY e.time), t.start) AS start,
  e.time AS finish,
  e.time - coalesce(lag(e.time) OVER (PARTITION BY e.task ORDER BY e.time), t.start) AS duration
FROM events e JOIN program_tasks t ON t.task = e.task
WHERE e.kind <> 'tag' AND e.time IS NOT NULL
  AND ($component IS NULL OR t.location = $component OR starts_with(t.location, $component || '.'))
  AND ($id IS NULL OR t.id = $id)
ORDER BY duration DESC, e.task, finish
LIMIT $limit
