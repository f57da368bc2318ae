-- title: Where the tasks of the machine spend their time, by the top of the component names
-- topic: components
-- needs: tasks.kind=req_in
-- chart: bar x=task_time y=component color=run
--
WITH components AS (
  SELECT run, split_part(location, '.', 1) AS component, sum(duration) AS task_time, count(*) AS tasks,
    array_to_string(array_sort(array_agg(DISTINCT kind)), ',') AS kinds
  FROM program_tasks
  GROUP BY run, component
)
SELECT run, component, task_time, tasks, kinds
FROM components
ORDER BY sum(task_time) OVER (PARTITION BY component) DESC, component, run
