-- title: In a sentence: what the PEs spend their cycles on, and which of them communicate most and least
-- topic: facts
-- needs: counters.name=T_COMM, locations.kind=pe
--
-- T_COMM is the time of sends and of waiting for what others send, without the handlers that run meanwhile.
WITH parts AS (
  SELECT c.run, c.location AS pe, l.sort_index,
    sum(c.value) FILTER (WHERE c.name = 'T_MAIN') AS main, sum(c.value) FILTER (WHERE c.name = 'T_COMM') AS communication,
    sum(c.value) FILTER (WHERE c.name = 'T_PROC') AS handlers
  FROM counters c JOIN program_locations l ON l.run = c.run AND l.location = c.location
  WHERE c.kind = 'total' AND c.name IN ('T_MAIN', 'T_COMM', 'T_PROC')
  GROUP BY c.run, c.location, l.sort_index
), shares AS (
  -- Clocks that contradict each other give parts below 0.
  SELECT *, communication / (main + communication + handlers) AS share FROM parts
  WHERE main >= 0 AND communication >= 0 AND handlers >= 0 AND main + communication + handlers > 0
), runs_of AS (
  SELECT run, sum(communication) AS communication, sum(handlers) AS handlers, sum(main) AS main, count(*) AS pes,
    first_value(pe ORDER BY share DESC, sort_index) AS most_pe, max(share) AS most, first_value(pe ORDER BY share, sort_index) AS least_pe, min(share) AS least
  FROM shares
  GROUP BY run
)
SELECT 'Sending, and waiting for what others send (T_COMM), took '
  || string_agg(round(100 * communication / (communication + handlers + main), 1) || ' % of the cycles'
    || CASE WHEN (SELECT count(*) FROM runs) > 1 THEN ' of ' || s.run ELSE ' of the PEs' END
    || CASE WHEN least < most THEN ', from ' || round(100 * least, 1) || ' % in ' || least_pe || ' to ' || round(100 * most, 1) || ' % in ' || most_pe ELSE '' END
    || ', handlers of messages ' || round(100 * handlers / (communication + handlers + main), 1) || ' %', '; ' ORDER BY run_number) || '.' AS fact
FROM runs_of s JOIN runs r ON r.run = s.run
WHERE run_number < 3
HAVING count(*) > 0
