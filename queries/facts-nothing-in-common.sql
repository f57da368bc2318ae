-- title: In sentences: that base and new have no name of task in common, so that they are no two runs of one program
-- topic: facts
-- needs: runs.run=base, runs.run=new, tasks
--
SELECT 'base and new have no name of task in common (' || base_names || CASE base_names WHEN 1 THEN ' name and ' ELSE ' names and ' END || new_names
  || '): they do not look like two runs of one program, and what follows compares two different things.' AS fact
FROM changed.names
WHERE common_names = 0 AND base_names > 0 AND new_names > 0
UNION ALL
SELECT 'base took ' || time_text(base_makespan) || ' and new took ' || time_text(new_makespan) || '; `tq report TRACE` describes each by itself.' AS fact
FROM changed.names
CROSS JOIN (
  SELECT min(makespan) FILTER (WHERE run = 'base') AS base_makespan, min(makespan) FILTER (WHERE run = 'new') AS new_makespan FROM runs
) makespans
WHERE common_names = 0 AND base_names > 0 AND new_names > 0 AND base_makespan IS NOT NULL AND new_makespan IS NOT NULL
  AND (SELECT count(*) FROM runs WHERE time_unit = 'weights') = 0
