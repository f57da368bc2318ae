-- title: For which rank each rank waited in collectives: how long, and how many times it was the last one
-- topic: gpu
-- needs: collectives
--
-- `late_rank` began a collective last; the others waited in it until then.
SELECT n.run, n.rank, l.rank AS late_rank, sum(n.wait_time) AS wait_time, count(*) AS collectives
FROM collectives n
JOIN collectives l ON l.task = n.last_task
JOIN runs r ON r.run = n.run
WHERE l.rank <> n.rank
GROUP BY n.run, r.run_number, n.rank, l.rank
ORDER BY r.run_number, wait_time DESC, n.rank, late_rank
LIMIT 20
