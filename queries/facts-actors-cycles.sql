-- title: In a sentence: what the PEs spend their cycles on, and which of them communicate most and least
-- topic: facts
-- needs: counters.name=T_COMM, locations.kind=pe
--
-- T_COMM is the time of sends and of waiting for what others send, without the handlers that run meanwhile.
SELECT 'Sending, and waiting for what others send (T_COMM), took '
  || string_agg(round(100 * communication / cycles, 1) || ' % of the cycles'
    || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || s.run ELSE ' of the PEs' END
    || CASE WHEN least_share < most_share THEN ', from ' || round(100 * least_share, 1) || ' % in ' || least_communicating || ' to '
      || round(100 * most_share, 1) || ' % in ' || most_communicating ELSE '' END
    || ', handlers of messages ' || round(100 * handlers / cycles, 1) || ' %', '; ' ORDER BY run_number) || '.' AS fact
FROM actorprof.cycles s JOIN runs r ON r.run = s.run
WHERE run_number < 3
HAVING count(*) > 0
