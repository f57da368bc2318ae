-- title: HTA's kernel breakdown: total, longest, shortest and mean time of each kernel on each rank
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=total_time y=name
--
SELECT run, class AS kernel_type, name, rank, count(*) AS kernels, sum(finish - start) AS total_time,
  max(finish - start) AS longest_time, min(finish - start) AS shortest_time, avg(finish - start) AS mean_time,
  coalesce(stddev(finish - start), 0) AS deviation_time
FROM hta.device_spans
WHERE class <> 'OTHER'
GROUP BY run, class, name, rank
ORDER BY run, kernel_type, name, rank
