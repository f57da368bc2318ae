-- title: Where the time went, by path of nested names
-- topic: tasks
-- needs: tasks
--
-- The stacks that took most of all runs together, so that each stands beside itself in the others.
SELECT run, stack, tasks, total_time, self_time
FROM (SELECT run, stack, count AS tasks, total_time, self_time, sum(self_time) OVER (PARTITION BY stack) AS of_stack FROM call_tree(program_tasks))
QUALIFY dense_rank() OVER (ORDER BY of_stack DESC, stack) <= 30
ORDER BY of_stack DESC, stack, run
LIMIT 300
