-- title: The messages that took longest from being sent to being received
-- topic: communication
-- needs: messages
--
SELECT run, message, source, target, kind, bytes, send_time, receive_time, receive_time - send_time AS latency_time
FROM messages
WHERE send_time IS NOT NULL AND receive_time IS NOT NULL
ORDER BY latency_time DESC, message
LIMIT 20
