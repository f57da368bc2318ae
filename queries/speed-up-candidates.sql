-- title: Which name of task is worth speeding up most: the path time that its tasks on the critical path could save
-- topic: dependencies
-- needs: tasks, links.kind=dependency
-- chart: bar x=at_most_saved_time y=name color=run
--
-- At most: where another chain is nearly as long, that one remains. `saved_time` is by how much the longest chain becomes shorter when all tasks
-- of the name take no time; it is computed for graphs of up to 200 000 tasks, and what-if-faster answers it for others.
WITH names AS (
  SELECT run, name, count(*) AS steps, sum(duration) AS at_most_saved_time FROM critical_path() GROUP BY run, name
), candidates AS MATERIALIZED (
  -- The names that are most of all runs together, so that each stands beside itself in the others.
  SELECT *, dense_rank() OVER (ORDER BY of_name DESC NULLS LAST, name) AS place
  FROM (SELECT *, sum(at_most_saved_time) OVER (PARTITION BY run) AS of_run, sum(at_most_saved_time) OVER (PARTITION BY name) AS of_name FROM names)
  QUALIFY place <= 10
), dependencies AS (
  SELECT run, source, target FROM links WHERE kind = 'dependency'
), graph AS (
  SELECT run, task, name, duration FROM program_tasks
  WHERE task IN (SELECT source FROM dependencies) OR task IN (SELECT target FROM dependencies)
), asked AS MATERIALIZED (
  SELECT place, run, name FROM candidates WHERE (SELECT count(*) FROM graph) <= 200000
), savings AS (
  -- For each of them the graph once more, as a run of its own.
  SELECT run, path_before - path_after AS saved_time
  FROM what_if(
    (SELECT a.place || ' ' || g.run AS run, g.task, g.duration FROM graph g JOIN asked a ON a.run = g.run),
    (SELECT a.place || ' ' || d.run AS run, d.source, d.target FROM dependencies d JOIN asked a ON a.run = d.run),
    (SELECT a.place || ' ' || g.run AS run, g.task, 0 AS duration FROM graph g JOIN asked a ON a.run = g.run AND a.name = g.name))
)
SELECT c.run, c.name, steps, at_most_saved_time, round(100.0 * at_most_saved_time / nullif(of_run, 0), 2) AS at_most_saved_percent, saved_time
FROM candidates c
LEFT JOIN savings s ON s.run = c.place || ' ' || c.run
ORDER BY of_name DESC NULLS LAST, c.name, c.run
LIMIT 100
