-- title: Which regions took longer than the program that they are part of: their times cannot be right
-- topic: scalability
-- needs: executions
-- expect no rows
-- param method: TEXT = 'median_of_ratios' -- how repetitions become one efficiency; or 'ratio_of_medians'
--
-- Up to a hundredth is noise. pascal-weakest-region leaves the sizes out at which that happened on any number of cores. The row shows the worst case.
WITH cells AS (
  SELECT * FROM efficiency_diffs(executions, method => $method) WHERE time IS NOT NULL
), both_times AS (
  SELECT w.run, r.region, w.argument, w.cores, r.time AS region_time, w.time AS program_time, 1.0 * r.time / nullif(w.time, 0) AS times_program
  FROM cells w
  JOIN cells r ON (r.run IS NOT DISTINCT FROM w.run) AND (r.argument IS NOT DISTINCT FROM w.argument) AND r.cores = w.cores
  WHERE w.region = '' AND r.region <> ''
)
SELECT run, region, count(DISTINCT coalesce(argument, '')) FILTER (WHERE times_program > 1.01) AS sizes_left_out,
  count(DISTINCT coalesce(argument, '')) AS sizes, first_value(argument ORDER BY times_program DESC, cores) AS argument,
  first_value(cores ORDER BY times_program DESC, cores) AS cores, first_value(region_time ORDER BY times_program DESC, cores) AS region_time,
  first_value(program_time ORDER BY times_program DESC, cores) AS program_time, round(max(times_program), 2) AS times_program
FROM both_times
GROUP BY run, region
HAVING max(times_program) > 1.01
ORDER BY max(times_program) DESC, run, region
