-- title: Shares of all PEs' cycles in the main part, communication and processing, and the PEs that communicate most and least
-- topic: communication
-- needs: counters.name=T_COMM, locations.kind=pe
--
-- In per cent of the three parts together; T_COMM is the time of sends and of waiting for what others send, without the handlers that run
-- meanwhile (T_PROC). PEs whose clocks contradict each other (a part below 0) are left out.
SELECT s.run, pes, round(100 * main / cycles, 1) AS main_percent, round(100 * communication / cycles, 1) AS communication_percent,
  round(100 * handlers / cycles, 1) AS handlers_percent, most_communicating, round(100 * most_share, 1) AS most_percent,
  least_communicating, round(100 * least_share, 1) AS least_percent
FROM actorprof.cycles s JOIN runs r ON r.run = s.run
ORDER BY r.run_number
