-- title: Collectives across ranks: how long early ranks wait for the last one, and how long the transfer itself takes
-- topic: gpu
-- needs: tasks
-- chart: stacked x=rank y=time color=part relative=true panel=run
--
WITH collectives AS (
  -- The k-th collective of a name and process group on each rank is the same one. Clocks of hosts may differ: a skew beyond the
  -- wait of every rank is theirs.
  SELECT t.run, coalesce(d.process, l.process) AS rank, t.start, t.finish, t.name,
    coalesce(t.args->>'Process Group Name', '') AS process_group,
    row_number() OVER (PARTITION BY t.run, coalesce(d.process, l.process), t.name, coalesce(t.args->>'Process Group Name', '')
      ORDER BY t.start, t.task) AS number
  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location
  LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock
  WHERE t.finish IS NOT NULL AND ((t.kind = 'kernel' AND t.role = 'communication') OR t.name LIKE 'gloo:%')
), matched AS (
  SELECT *, max(start) OVER same AS last_start, count(*) OVER same AS ranks FROM collectives
  WINDOW same AS (PARTITION BY run, name, process_group, number)
), totals AS (
  SELECT run, rank, count(*) AS collectives, sum(least(last_start, finish) - start) AS skew_time,
    sum(greatest(finish - last_start, 0)) AS transfer_time
  FROM matched
  WHERE ranks > 1
  GROUP BY run, rank
), parts AS (
  SELECT run, rank, collectives, unnest(make_array(named_struct('part', 'skew', 'time', skew_time),
    named_struct('part', 'transfer', 'time', transfer_time))) AS part
  FROM totals
)
SELECT run, rank, part['part'] AS part, part['time'] AS time, collectives
FROM parts
ORDER BY rank, part, run
