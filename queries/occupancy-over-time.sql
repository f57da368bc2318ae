-- title: How busy the locations were over time, in 50 equal intervals, and on average
-- topic: time
-- needs: tasks
-- chart: occupancy x=bin_start y=occupancy bound=mean_occupancy panel=run
--
-- Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run nothing and are left out.
-- Locations that never ran count with 0. The intervals reach from the first start to the last finish of the run, as its makespan does, also where it
-- begins or ends with what is left out.
WITH ends AS (
  SELECT w.run, w.location, r.first_start, r.last_finish
  FROM (SELECT run, min(location) AS location FROM working_tasks GROUP BY run) w
  JOIN (SELECT run, min(start) AS first_start, max(finish) AS last_finish FROM program_tasks GROUP BY run) r ON r.run = w.run
), spans AS (
  SELECT run, location, start, finish FROM working_spans WHERE is_outermost
  -- Spans without length are busy for no time, but the intervals reach them.
  UNION ALL SELECT run, location, first_start AS start, first_start AS finish FROM ends
  UNION ALL SELECT run, location, last_finish AS start, last_finish AS finish FROM ends
), bins AS (
  SELECT run, bin, bin_start, sum(busy) AS busy_time, sum(occupancy) AS occupancy, count(*) AS locations
  FROM timeline(spans, bins => 50, from => slice_from(), to => slice_to())
  GROUP BY run, bin, bin_start
), lanes AS (
  SELECT run, count(*) AS lanes FROM busy_lanes GROUP BY run
)
SELECT b.run, b.bin, b.bin_start, b.busy_time, round(b.occupancy / greatest(b.locations, coalesce(l.lanes, 0)), 4) AS occupancy,
  round(avg(b.occupancy / greatest(b.locations, coalesce(l.lanes, 0))) OVER (PARTITION BY b.run), 4) AS mean_occupancy
FROM bins b
LEFT JOIN lanes l ON l.run = b.run
ORDER BY b.run, b.bin
