-- title: In a sentence: that the trace has no tasks
-- topic: facts
-- needs: runs, no tasks, no messages
--
SELECT CASE WHEN count(*) = 1 THEN 'The trace holds no tasks.' ELSE 'The traces hold no tasks.' END AS fact FROM runs
