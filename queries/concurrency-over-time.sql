-- title: How many tasks ran at once over time, in 200 equal intervals
-- topic: time
-- needs: tasks
-- chart: line x=bin_start y=running by=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- The intervals reach from the first start to the last finish of the run, as its makespan does.
WITH ends AS (
  SELECT w.run, w.location, r.first_start, r.last_finish
  FROM (SELECT run, min(location) AS location FROM working_tasks GROUP BY run) w
  JOIN (SELECT run, min(start) AS first_start, max(finish) AS last_finish FROM program_tasks GROUP BY run) r ON r.run = w.run
), spans AS (
  SELECT run, location, start, finish FROM working_spans WHERE is_outermost
  -- Spans without length are busy for no time, but the intervals reach them.
  UNION ALL SELECT run, location, first_start AS start, first_start AS finish FROM ends
  UNION ALL SELECT run, location, last_finish AS start, last_finish AS finish FROM ends
)
SELECT run, bin, bin_start, round(sum(mean_concurrency), 3) AS running
FROM timeline(spans, bins => 200, from => slice_from(), to => slice_to())
GROUP BY run, bin, bin_start
ORDER BY run, bin
