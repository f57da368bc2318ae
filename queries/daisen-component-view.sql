-- title: The tasks of a component as bars in rows
-- topic: components
-- needs: tasks.kind=req_in
-- param component: TEXT = NULL -- its name; without one, the one with the most tasks
-- param from: TIME = NULL -- where the window begins; tasks that overlap it are shown whole
-- param to: TIME = NULL -- where the window ends
-- param rules: TEXT = v3 -- v3 for Akita v3 and v4, v5, or plain
-- chart: gantt
--
WITH component AS (
  SELECT coalesce($component, first_value(location ORDER BY tasks DESC, location)) AS name
  FROM (SELECT location, count(*) AS tasks FROM program_tasks GROUP BY location)
)
SELECT run, task, location, level, row, start, finish, name, kind
FROM component_rows((
    SELECT t.*, t.args->>'parent' AS parent_id
    FROM program_tasks t CROSS JOIN component c
    WHERE (t.location = c.name OR $rules = 'v5' AND starts_with(t.location, c.name || '.'))
      AND ($from IS NULL OR t.finish > $from) AND ($to IS NULL OR t.start < $to)
  ), rules => $rules)
ORDER BY run, level, row, start, task
