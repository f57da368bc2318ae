-- title: HTA's kernel types: for how long each combination of kernel types runs at once, over all ranks
-- topic: gpu
-- needs: tasks.kind=kernel|mtia_ccp_events
-- chart: bar x=total_time y=kernel_type color=run
--
WITH ordered AS (
  SELECT run, rank, class, task, start, finish,
    max(finish) OVER (PARTITION BY run, rank, class ORDER BY start, task ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until
  FROM hta.device_spans
  WHERE class <> 'OTHER'
), numbered AS (
  SELECT *, count(*) FILTER (WHERE until IS NULL OR start > until)
    OVER (PARTITION BY run, rank, class ORDER BY start, task ROWS UNBOUNDED PRECEDING) AS stretch
  FROM ordered
), unions AS (
  -- Each class's own union of spans, with a bit for the class.
  SELECT run, rank, CASE class WHEN 'COMPUTATION' THEN 1 WHEN 'COMMUNICATION' THEN 2 ELSE 4 END AS bit,
    min(start) AS start, max(finish) AS finish
  FROM numbered
  GROUP BY run, rank, class, stretch
), edges AS (
  SELECT run, rank, start AS time, bit FROM unions
  UNION ALL
  SELECT run, rank, finish AS time, -bit FROM unions
), sweep AS (
  -- Which classes run from here to the next edge. A span that ends before it starts confuses the bits, as in HTA.
  -- At the same time: computation before communication before memory, and a start before an end. So classes that only touch have a row.
  SELECT run, sum(bit) OVER (in_turn ROWS UNBOUNDED PRECEDING) AS running, lead(time) OVER in_turn - time AS duration
  FROM edges
  WINDOW in_turn AS (PARTITION BY run, rank ORDER BY time, abs(bit), bit DESC)
), totals AS (
  SELECT run, running, sum(duration) AS total_time FROM sweep WHERE running > 0 AND duration IS NOT NULL GROUP BY run, running
)
SELECT run, kernel_type, total_time, round(100.0 * total_time / sum(total_time) OVER (PARTITION BY run), 1) AS percent
FROM (SELECT run, total_time, array_to_string(array_remove_all(make_array(
      CASE WHEN running & 1 > 0 THEN 'COMPUTATION' ELSE '' END, CASE WHEN running & 2 > 0 THEN 'COMMUNICATION' ELSE '' END,
      CASE WHEN running & 4 > 0 THEN 'MEMORY' ELSE '' END), ''), ' overlapping ') AS kernel_type
  FROM totals)
ORDER BY sum(total_time) OVER (PARTITION BY kernel_type) DESC, kernel_type, run
