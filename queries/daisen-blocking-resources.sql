-- title: Hardware resources that tasks waited for most often
-- topic: waiting
-- needs: events.kind=hardware_resource
-- param component: TEXT = NULL -- only tasks of this component and of what is below its name
-- param limit: BIGINT = 10 -- how many resources
-- chart: bar x=waits y=resource color=run
--
WITH intervals AS (
  SELECT e.run, e.task, e.kind, e.name AS resource, e.time AS finish,
    coalesce(lag(e.time) OVER (PARTITION BY e.task ORDER BY e.time), t.start) AS start
  FROM events e JOIN program_tasks t ON t.task = e.task
  WHERE e.kind <> 'tag'
    AND ($component IS NULL OR t.location = $component OR starts_with(t.location, $component || '.'))
), resources AS (
  SELECT run, resource, count(*) AS waits, count(DISTINCT task) AS tasks, sum(finish - start) AS waiting_time,
    sum(count(*)) OVER (PARTITION BY resource) AS of_resource
  FROM intervals
  WHERE kind = 'hardware_resource'
  GROUP BY run, resource
)
SELECT run, resource, waits, tasks, waiting_time
FROM resources
QUALIFY dense_rank() OVER (ORDER BY of_resource DESC, resource) <= $limit
ORDER BY of_resource DESC, resource, run
