-- title: How the tasks of each name changed from base to new: number, total and mean duration, busy time
-- topic: comparison
-- needs: tasks.run=base, tasks.run=new
--
-- What matters most stands at both ends: a narrow terminal leaves out columns from the middle.
SELECT key AS name, base_total, new_total, base_median, new_median, base_busy, new_busy, matched, base_count, new_count, change, round(change_percent, 1) AS change_percent
FROM compare_runs(program_tasks, base => 'base', new => 'new', by => 'name')
ORDER BY greatest(change, -change) DESC, name
LIMIT 50
