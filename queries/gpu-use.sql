-- title: What the devices of each run did, all together: how much of the run they had tasks at all, and what they did in this time
-- topic: gpu
-- needs: tasks.kind=kernel
--
-- `percent_of_run` lies between the first start and the last finish on each device, what follows is in per cent of that: the sums of
-- gpu-time-breakdown.
WITH sums AS (
  SELECT d.run, r.run_number, r.makespan, count(*) AS devices, sum(d.total_time) AS total, sum(d.computing_time) AS computing,
    sum(d.computing_or_communicating_time) - sum(d.computing_time) AS communicating,
    sum(d.busy_time) - sum(d.computing_or_communicating_time) AS copying, sum(d.total_time) - sum(d.busy_time) AS idle,
    first_value(d.device ORDER BY 1.0 * (d.total_time - d.busy_time) / d.total_time DESC, d.device) AS idlest,
    max(1.0 * (d.total_time - d.busy_time) / d.total_time) AS most_idle
  FROM gpu.devices d JOIN runs r ON r.run = d.run
  WHERE d.total_time > 0
  GROUP BY d.run, r.run_number, r.makespan
)
SELECT run, devices, makespan, round(100.0 * total / devices / nullif(makespan, 0), 1) AS percent_of_run,
  round(100.0 * (devices * makespan - total) / devices / nullif(makespan, 0), 1) AS before_and_after_percent,
  round(100.0 * (total - idle) / total, 1) AS busy_percent, round(100.0 * computing / total, 1) AS computing_percent,
  round(100.0 * communicating / total, 1) AS exposed_communication_percent,
  round(100.0 * copying / total, 1) AS exposed_copies_percent, round(100.0 * idle / total, 1) AS idle_percent,
  idlest AS idlest_device, round(100 * most_idle, 1) AS its_idle_percent
FROM sums
ORDER BY run_number
