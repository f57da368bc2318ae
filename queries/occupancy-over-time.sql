-- title: How busy the locations were over time, in 50 equal intervals, and on average
-- topic: time
-- needs: tasks
-- chart: occupancy x=bin_start y=occupancy bound=mean_occupancy panel=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
SELECT run, bin, bin_start, sum(busy) AS busy_time, round(avg(occupancy), 4) AS occupancy,
  round(avg(avg(occupancy)) OVER (PARTITION BY run), 4) AS mean_occupancy
FROM timeline((SELECT * FROM working_tasks WHERE depth = 0 OR depth IS NULL), bins => 50, from => slice_from(), to => slice_to())
GROUP BY run, bin, bin_start
ORDER BY run, bin
