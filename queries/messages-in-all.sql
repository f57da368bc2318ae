-- title: How many messages and bytes were sent in all, and what most of them went between
-- topic: communication
-- needs: messages
--
-- Each message once: `messages_by_pair` says how. Of the pairs with most messages, the first one is shown, `pairs_alike` have as many.
WITH pairs AS (
  SELECT run, source, target, messages, sum(messages) OVER (PARTITION BY run) AS all_messages, sum(bytes) OVER (PARTITION BY run) AS all_bytes,
    count(*) OVER (PARTITION BY run) AS pairs, count(*) OVER (PARTITION BY run, messages) AS pairs_alike
  FROM messages_by_pair
)
SELECT p.run, p.all_messages AS messages, p.all_bytes AS bytes, p.pairs, p.source AS busiest_source, p.target AS busiest_target,
  p.messages AS busiest_messages, p.pairs_alike
FROM pairs p JOIN runs r ON r.run = p.run
QUALIFY row_number() OVER (PARTITION BY p.run ORDER BY p.messages DESC, p.source, p.target) = 1
ORDER BY r.run_number
