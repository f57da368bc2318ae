-- title: How large a graph of tasks without times is: tasks, names, dependencies, the longest chain, and how many could run at once
-- topic: dependencies
-- needs: tasks, no tasks.start, no executions
--
-- Every task counts as one step: `tasks_per_step` is how many could run at once on average, were all equally long, however many locations there are.
SELECT run, tasks, names, dependencies, steps AS longest_chain_steps, round(1.0 * tasks / steps, 1) AS tasks_per_step
FROM graph.sizes
ORDER BY run_number
