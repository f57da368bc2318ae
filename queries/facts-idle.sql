-- title: In a sentence: which location idled longest, and what ran there before and after
-- topic: facts
-- needs: tasks.start, no tasks.kind=kernel, no links.kind=dependency, no tasks.kind=req_in, no runs.time_unit=weights, no executions
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
WITH idle AS (
  SELECT g.run, g.location, g.start, g.finish, g.duration, before.name AS name_before, after.name AS name_after
  FROM idle_stretches g
  JOIN runs r ON r.run = g.run
  LEFT JOIN working_tasks before ON before.task = g.task_before
  LEFT JOIN working_tasks after ON after.task = g.task_after
  -- A location that was never busy is counted below.
  WHERE g.duration > 0 AND (g.task_before IS NOT NULL OR g.task_after IS NOT NULL)
  ORDER BY g.duration DESC, r.run_number, g.location, g.start
  LIMIT 1
), waited AS (
  -- What is recorded of the wait.
  SELECT max(name) AS name FROM (
    SELECT t.name FROM program_tasks t JOIN idle i ON i.run = t.run AND i.location = t.location
    WHERE t.role = 'wait' AND t.name <> '' AND t.start < i.finish AND t.finish > i.start
    ORDER BY least(t.finish, i.finish) - greatest(t.start, i.start) DESC, t.task LIMIT 1)
), collectives AS (
  -- facts-collectives says who waits for whom.
  SELECT count(DISTINCT l.clock) AS ranks
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  WHERE t.name LIKE 'gloo:%'
), unlinked AS (
  SELECT CASE WHEN (SELECT count(*) FROM links) > 0 THEN 'No dependency says what waits for what' ELSE 'No link says what waits for what' END
    || CASE WHEN lost > 0 THEN ' (' || lost || ' of the recording could not be joined to tasks, see Is the trace sound)' ELSE '' END AS said
  FROM (SELECT coalesce(sum(count), 0) AS lost FROM import_stats
    WHERE what IN ('dot_edges_not_joined', 'dot_edges_partly_joined', 'dot_spawns_not_joined', 'unknown_reference', 'ambiguous_reference'))
), enclosing AS (
  SELECT max(name) AS name FROM (
    SELECT t.name FROM working_tasks t JOIN runs r ON r.run = t.run
    WHERE t.depth = 0 AND t.duration >= 0.99 * r.makespan AND r.makespan > 0 AND t.name <> '' AND EXISTS (SELECT 1 FROM program_tasks c WHERE c.stack_parent = t.task)
    ORDER BY r.run_number, t.task LIMIT 1)
), never AS (
  SELECT count(*) AS lanes, min(l.location) AS location FROM busy_lanes l JOIN runs r ON r.run = l.run WHERE l.busy_time = 0 AND r.makespan > 0
)
SELECT u.said || '; ' || CASE n.lanes WHEN 0 THEN 'the' WHEN 1 THEN n.location || ' was never busy, and of the others the'
    ELSE n.lanes || ' locations were never busy, and of the others the' END || ' longest idle stretch is ' || time_text(i.duration) || ' on ' || i.location
  || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || i.run ELSE '' END || coalesce(', in ' || w.name, '')
  || CASE
       WHEN coalesce(name_before, '') <> '' AND coalesce(name_after, '') <> '' THEN ', between ' || name_before || ' and ' || name_after || '.'
       WHEN coalesce(name_after, '') <> '' THEN ', before its first task, ' || name_after || '.'
       WHEN coalesce(name_before, '') <> '' THEN ', after its last task, ' || name_before || '.'
       ELSE '.'
     END AS fact, name_before, name_after
FROM idle i
CROSS JOIN waited w
CROSS JOIN never n
CROSS JOIN unlinked u
CROSS JOIN collectives c
WHERE c.ranks < 2
UNION ALL
SELECT CASE
    WHEN e.name IS NOT NULL THEN e.name || ' lasts as long as the run and contains the rest, so that nothing is seen of what waits inside of it.'
    WHEN n.lanes = 0 THEN 'Nothing waited: no location ever idled, so the run is as long as its work.'
    WHEN n.lanes = 1 THEN u.said || '; ' || n.location || ' was never busy, and the others never idled.'
    ELSE u.said || '; ' || n.lanes || ' locations were never busy, and the others never idled.'
  END AS fact, NULL AS name_before, NULL AS name_after
FROM (SELECT count(*) AS stretches FROM idle)
CROSS JOIN (SELECT count(*) AS tasks FROM working_tasks WHERE duration > 0 AND location IS NOT NULL)
CROSS JOIN enclosing e
CROSS JOIN never n
CROSS JOIN unlinked u
CROSS JOIN collectives c
WHERE stretches = 0 AND tasks > 0 AND c.ranks < 2
