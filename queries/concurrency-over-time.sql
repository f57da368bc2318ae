-- title: How many tasks ran at once over time, in 200 equal intervals
-- topic: time
-- needs: tasks
-- chart: line x=bin_start y=running by=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- The intervals reach from the first start to the last finish of the run, as its makespan does.
SELECT run, bin, bin_start, round(sum(mean_concurrency), 3) AS running
FROM timeline((SELECT run, location, start, finish FROM spans_and_ends WHERE is_outermost), bins => 200, from => slice_from(), to => slice_to())
GROUP BY run, bin, bin_start
ORDER BY run, bin
