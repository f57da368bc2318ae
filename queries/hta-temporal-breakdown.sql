-- title: HTA's temporal breakdown: how long each rank's device idles, computes, and does something else
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=idle_percent y=rank color=run
--
WITH merged AS (
  -- Union of spans in the order of their starts: what each one adds. One that ends before it starts takes away, as in HTA.
  SELECT run, rank, class, start, finish,
    max(finish) OVER before AS busy_until, max(finish) FILTER (WHERE class = 'COMPUTATION') OVER before AS computing_until
  FROM hta.device_spans
  WINDOW before AS (PARTITION BY run, rank ORDER BY start, task ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), totals AS (
  SELECT run, rank, max(finish) - min(start) AS kernel_time,
    sum(CASE WHEN start <= busy_until THEN greatest(finish - busy_until, 0) ELSE finish - start END) AS busy_time,
    coalesce(sum(CASE WHEN start <= computing_until THEN greatest(finish - computing_until, 0) ELSE finish - start END)
      FILTER (WHERE class = 'COMPUTATION'), 0) AS compute_time
  FROM merged
  GROUP BY run, rank
)
SELECT run, rank, kernel_time - busy_time AS idle_time, compute_time, busy_time - compute_time AS non_compute_time, kernel_time,
  round(100.0 * (kernel_time - busy_time) / nullif(kernel_time, 0), 2) AS idle_percent,
  round(100.0 * compute_time / nullif(kernel_time, 0), 2) AS compute_percent,
  round(100.0 * (busy_time - compute_time) / nullif(kernel_time, 0), 2) AS non_compute_percent
FROM totals
ORDER BY rank, run
