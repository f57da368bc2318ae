-- title: How busy the locations were over time, in 50 equal intervals, and on average
-- topic: time
-- needs: tasks
-- chart: occupancy x=bin_start y=occupancy bound=mean_occupancy panel=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- Locations that never ran count with 0. The intervals reach from the first start to the last finish of the run, as its makespan does, also where it
-- begins or ends with what is left out.
WITH bins AS (
  SELECT run, bin, bin_start, sum(busy) AS busy_time, sum(occupancy) AS occupancy, count(*) AS locations
  FROM timeline((SELECT run, location, start, finish FROM spans_and_ends WHERE is_outermost), bins => 50, from => slice_from(), to => slice_to())
  GROUP BY run, bin, bin_start
), lanes AS (
  SELECT run, count(*) AS lanes FROM busy_lanes GROUP BY run
)
SELECT b.run, b.bin, b.bin_start, b.busy_time, round(b.occupancy / greatest(b.locations, coalesce(l.lanes, 0)), 4) AS occupancy,
  round(avg(b.occupancy / greatest(b.locations, coalesce(l.lanes, 0))) OVER (PARTITION BY b.run), 4) AS mean_occupancy
FROM bins b
LEFT JOIN lanes l ON l.run = b.run
ORDER BY b.run, b.bin
