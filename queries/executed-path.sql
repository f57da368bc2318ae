-- title: What the end of the run really waited for, by name: work and waiting of the executed path
-- topic: makespan
-- needs: tasks
-- chart: bar x=total_time y=name color=part most=20
--
-- Work and waiting of a run add up to its makespan. Where ranks have clocks of their own, the path is as wrong as those are
-- (parsec-clock-offsets; `--option align=messages`); a thread that sends and receives counts as a location like others. A rank that waits in a
-- collective for another one does no work, and the path goes on where the last one was.
WITH path AS MATERIALIZED (SELECT run, name, running, wait FROM executed_path((SELECT * FROM path_tasks), (SELECT * FROM path_links))),
parts AS (
  SELECT run, name, 'work' AS part, running AS time FROM path
  UNION ALL
  SELECT run, name, 'waiting before it' AS part, wait AS time FROM path
)
SELECT run, name, part, sum(time) AS total_time, count(*) AS steps
FROM parts
WHERE time > 0
GROUP BY run, name, part
ORDER BY run, total_time DESC, name, part
