-- title: How many messages each PE sends and receives: the numbers behind the violins
-- topic: communication
-- needs: messages, locations.kind=pe
-- chart: box x=violin y=messages
--
SELECT run, kind, direction, pe, messages, kind || ' ' || direction AS violin
FROM actorprof.totals
ORDER BY run, kind, direction DESC, sort_index
