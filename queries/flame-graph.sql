-- title: Where the time went, as a flame graph of nested names
-- topic: tasks
-- needs: tasks
-- chart: flame stack=stack value=self_time
--
-- Of several runs each is a frame at the bottom.
SELECT run, CASE WHEN (SELECT count(*) FROM runs) > 1 THEN run || ';' ELSE '' END || stack AS stack, sum(self_time) AS self_time
FROM call_tree(program_tasks)
GROUP BY run, stack
HAVING sum(self_time) > 0
ORDER BY self_time DESC, stack
