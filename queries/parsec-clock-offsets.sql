-- title: How far apart the clocks of the ranks are, as bounded by messages
-- topic: parsec
-- needs: messages, locations
--
SELECT run, clock, other, messages, messages_back, impossible, lower AS lower_time, upper AS upper_time, estimate AS estimate_time
FROM clock_offsets((SELECT * FROM messages WHERE kind = 'mpi' AND send_time IS NOT NULL AND receive_time IS NOT NULL), locations)
ORDER BY clock, other, run
