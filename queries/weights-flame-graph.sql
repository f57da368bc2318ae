-- title: Where the weight of folded stacks is, as a flame graph of nested names
-- topic: tasks
-- needs: tasks, runs.time_unit=weights
-- chart: flame stack=stack value=self_weight
--
-- Of several runs each is a frame at the bottom.
SELECT run, CASE WHEN (SELECT count(*) FROM runs) > 1 THEN run || ';' ELSE '' END || stack AS stack, sum(self_time) AS self_weight
FROM call_tree(program_tasks)
GROUP BY run, stack
HAVING sum(self_time) > 0
ORDER BY self_weight DESC, stack
