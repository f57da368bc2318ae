-- title: How unevenly messages are spread over PEs: quartiles of the messages that each sends and receives
-- topic: communication
-- needs: messages, locations.kind=pe
--
SELECT run, kind, direction, min(messages) AS least, percentile_cont(messages, 0.25) AS q1, percentile_cont(messages, 0.5) AS median,
  percentile_cont(messages, 0.75) AS q3, max(messages) AS most, round(avg(messages), 6) AS mean, sum(messages) AS total,
  round(imbalance(messages), 6) AS max_over_mean
FROM actorprof.totals
GROUP BY run, kind, direction
ORDER BY kind, direction DESC, run
