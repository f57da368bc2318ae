-- title: Collectives across ranks: how long early ranks wait for the last one, and how long the transfer itself takes
-- topic: gpu
-- needs: collectives
-- chart: stacked x=rank y=total_time color=part panel=run
--
-- The k-th collective of a name and process group on each rank is the same one. Clocks of hosts may differ: a skew beyond the
-- wait of every rank is theirs.
WITH totals AS (
  SELECT run, rank, count(*) AS collectives, sum(wait_time) AS skew_time,
    sum(transfer_time) AS transfer_time
  FROM collectives
  GROUP BY run, rank
), parts AS (
  SELECT run, rank, collectives, unnest(make_array(named_struct('part', 'skew', 'time', skew_time),
    named_struct('part', 'transfer', 'time', transfer_time))) AS part
  FROM totals
)
SELECT run, rank, part['part'] AS part, part['time'] AS total_time, collectives
FROM parts
ORDER BY rank, part, run
