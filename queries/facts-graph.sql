-- title: In sentences: what a graph of tasks without times holds, how deep it is, and what it lacks
-- topic: facts
-- needs: tasks, no tasks.start, no executions
--
WITH lacking AS (
  SELECT run, what, count, example FROM import_stats WHERE what IN ('file_not_read', 'no_events')
  QUALIFY row_number() OVER (PARTITION BY run ORDER BY what) = 1
), graphs AS (
  SELECT g.*, l.what, CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || g.run ELSE '' END AS of_run
  FROM graph.sizes g
  LEFT JOIN lacking l ON l.run = g.run
), sentences AS (
  SELECT run_number, 1 AS place, 'No task' || of_run || ' has a start, so there are no times: what is known is the graph, ' || tasks
    || CASE tasks WHEN 1 THEN ' task of ' ELSE ' tasks of ' END || names || CASE names WHEN 1 THEN ' name and ' ELSE ' names and ' END || dependencies
    || CASE dependencies WHEN 1 THEN ' dependency' ELSE ' dependencies' END || ' between them.' AS fact
  FROM graphs
  UNION ALL
  SELECT run_number, 2, 'The longest chain' || of_run || ' has ' || steps || ' of the ' || tasks || CASE tasks WHEN 1 THEN ' task' ELSE ' tasks' END
    || ': were all equally long, ' || round(1.0 * tasks / steps, 1) || ' could run at once on average, however many locations there are.'
  FROM graphs
  WHERE dependencies > 0
  UNION ALL
  SELECT run_number, 3, CASE what
      WHEN 'file_not_read' THEN 'Look next at the recordings' || of_run || ' that could not be read (see Is the trace sound): the times are in them.'
      WHEN 'no_events' THEN 'Look next at how it was recorded (see Is the trace sound): the trace' || of_run || ' is there, and has no events.'
      ELSE 'Look next for the recording of the events' || of_run || ' that belongs to this graph: opened together with it, it gives the tasks their times.' END
  FROM graphs
)
SELECT fact FROM sentences ORDER BY run_number, place
