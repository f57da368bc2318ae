-- title: How many messages each PE sends and receives
-- topic: communication
-- needs: messages, locations.kind=pe
-- chart: box x=messages_of y=messages color=run
--
SELECT run, kind, direction, pe, messages, kind || ' ' || direction || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || run ELSE '' END AS messages_of
FROM actorprof.totals
ORDER BY kind, direction DESC, run, sort_index
