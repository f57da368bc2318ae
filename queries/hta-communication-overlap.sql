-- title: HTA's communication/computation overlap: the share of each rank's communication that runs beside computation
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=overlap_percent y=rank color=run
--
WITH merged AS (
  SELECT run, rank, class, start, finish,
    max(finish) FILTER (WHERE class = 'COMMUNICATION') OVER before AS communicating_until
  FROM hta.device_spans
  WINDOW before AS (PARTITION BY run, rank ORDER BY start, task ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), totals AS (
  -- What two unions share is what their lengths exceed that of the union of both by.
  SELECT run, rank,
    coalesce(sum(CASE WHEN start <= communicating_until THEN greatest(finish - communicating_until, 0) ELSE finish - start END)
      FILTER (WHERE class = 'COMMUNICATION'), 0) AS communication_time,
    coalesce(busy(start, finish) FILTER (WHERE class = 'COMMUNICATION'), 0)
      + coalesce(busy(start, finish) FILTER (WHERE class = 'COMPUTATION'), 0)
      - coalesce(busy(start, finish) FILTER (WHERE class IN ('COMMUNICATION', 'COMPUTATION')), 0) AS overlap_time
  FROM merged
  GROUP BY run, rank
)
-- A rank without work of a device has a row too.
SELECT r.run, r.rank, coalesce(t.communication_time, 0) AS communication_time, coalesce(t.overlap_time, 0) AS overlap_time,
  round(100.0 * t.overlap_time / nullif(t.communication_time, 0), 2) AS overlap_percent
FROM (SELECT DISTINCT run, rank FROM hta.spans) r LEFT JOIN totals t ON t.run = r.run AND t.rank = r.rank
ORDER BY r.rank, r.run
