-- title: Where the time went, by path of nested names
-- topic: tasks
-- needs: tasks
--
SELECT run, stack, count AS tasks, total_time, self_time
FROM call_tree(program_tasks)
QUALIFY row_number() OVER (PARTITION BY run ORDER BY self_time DESC, stack) <= 30
ORDER BY run, self_time DESC, stack
LIMIT 300
