-- title: In a sentence: that much of a trace was lost, or that it ends in the middle
-- topic: facts
-- needs: runs
--
-- Much is a tenth of the records or tasks that are there, or more, and five at least; a recording that ends in the middle may lack any number of them.
WITH lost AS (
  SELECT run, sum(count) FILTER (WHERE severity = 'lost') AS records,
    count(*) FILTER (WHERE severity = 'lost' AND what IN ('truncated', 'dot_truncated')) > 0 AS ends,
    coalesce(max(count) FILTER (WHERE what = 'records_read'), 0) AS records_read
  FROM import_stats
  GROUP BY run
), damaged AS (
  SELECT r.run, r.tasks, l.records, l.ends, row_number() OVER (ORDER BY l.ends DESC, l.records DESC, r.run) AS place, count(*) OVER () AS runs
  FROM lost l
  JOIN runs r ON r.run = l.run
  WHERE l.records > 0 AND (l.ends OR l.records >= 5 AND 10 * l.records >= greatest(r.tasks, l.records_read))
)
SELECT CASE WHEN ends THEN 'The recording' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END
         || ' ends in the middle: what came after is not in it, and all figures are about the '
       ELSE 'Much' || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE ' of the trace' END || ' was lost: '
         || CASE records WHEN 1 THEN '1 record or a part of one' ELSE records || ' records or parts of them' END || ' could not be used, and all figures are about the '
  END
  || CASE tasks WHEN 1 THEN 'one task that is there' ELSE tasks || ' tasks that are there' END
  || CASE runs WHEN 1 THEN '' WHEN 2 THEN '; much of another run was lost, too' ELSE '; much of ' || (runs - 1) || ' other runs was lost, too' END
  || ' (see Is the trace sound).' AS fact
FROM damaged
WHERE place = 1
