-- title: How long the locations of each run were busy, in total
-- topic: comparison
-- needs: tasks, no runs.time_unit=weights
-- metric busy_time: better=lower
--
-- Tasks may overlap on a location; it can be busy only once. Asynchronous spans, states of threads and transfers (locations of kind async or state, or role communication) run
-- nothing and are left out.
SELECT run, sum(busy_time) AS busy_time
FROM (SELECT run, location, busy(start, finish) AS busy_time FROM working_spans GROUP BY run, location)
GROUP BY run
ORDER BY run
