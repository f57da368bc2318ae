-- title: Shares of all PEs' cycles in the main part, communication and processing, and the PEs that communicate most and least
-- topic: communication
-- needs: counters.name=T_COMM, locations.kind=pe
--
-- In per cent of the three parts together; T_COMM is the time of sends and of waiting for what others send, without the handlers that run
-- meanwhile (T_PROC). PEs whose clocks contradict each other (a part below 0) are left out.
WITH parts AS (
  SELECT c.run, c.location AS pe, l.sort_index,
    sum(c.value) FILTER (WHERE c.name = 'T_MAIN') AS main, sum(c.value) FILTER (WHERE c.name = 'T_COMM') AS communication,
    sum(c.value) FILTER (WHERE c.name = 'T_PROC') AS handlers
  FROM counters c JOIN program_locations l ON l.run = c.run AND l.location = c.location
  WHERE c.kind = 'total' AND c.name IN ('T_MAIN', 'T_COMM', 'T_PROC')
  GROUP BY c.run, c.location, l.sort_index
), shares AS (
  SELECT *, main + communication + handlers AS cycles, communication / (main + communication + handlers) AS share
  FROM parts
  WHERE main >= 0 AND communication >= 0 AND handlers >= 0 AND main + communication + handlers > 0
)
SELECT s.run, count(*) AS pes, round(100 * sum(main) / sum(cycles), 1) AS main_percent, round(100 * sum(communication) / sum(cycles), 1) AS communication_percent,
  round(100 * sum(handlers) / sum(cycles), 1) AS handlers_percent, first_value(pe ORDER BY share DESC, sort_index) AS most_communicating,
  round(100 * max(share), 1) AS most_percent, first_value(pe ORDER BY share, sort_index) AS least_communicating, round(100 * min(share), 1) AS least_percent
FROM shares s JOIN runs r ON r.run = s.run
GROUP BY s.run, r.run_number
ORDER BY r.run_number
