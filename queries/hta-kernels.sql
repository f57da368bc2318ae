-- title: HTA's kernel breakdown: total, longest, shortest and mean time of each kernel on each rank
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=total_time y=name_of_rank color=run
--
SELECT *, name || CASE WHEN min(rank) OVER () < max(rank) OVER () THEN ' on rank ' || rank ELSE '' END AS name_of_rank
FROM (
  SELECT run, class AS kernel_type, name, rank, count(*) AS kernels, sum(finish - start) AS total_time,
    max(finish - start) AS longest_time, min(finish - start) AS shortest_time, avg(finish - start) AS mean_time,
    coalesce(stddev(finish - start), 0) AS deviation_time
  FROM hta.device_spans
  WHERE class <> 'OTHER'
  GROUP BY run, class, name, rank
)
ORDER BY kernel_type, sum(total_time) OVER (PARTITION BY kernel_type, name) DESC, name, rank, run
