-- title: Where the time goes on the tiles of the matrix: work by the parameters m, n and k of the tasks
-- topic: parsec
-- needs: tasks
-- chart: heatmap x=tile_column y=tile_row value=work_time panel=run
--
WITH
-- The parameters of a task class are its coordinates: m is the row, n the column, and k stands for the one that a class
-- lacks, so POTRF(k) is the tile (k, k), TRSM(m, k) is (m, k), GEMM(m, n, k) is (m, n). Other programs have other letters.
parameters AS (
  SELECT run, duration, json_get_int(args, 'm') AS m, json_get_int(args, 'n') AS n, json_get_int(args, 'k') AS k
  FROM program_tasks WHERE kind = 'task' AND role = 'work'),
tiles AS (SELECT run, coalesce(m, k) AS tile_row, coalesce(n, k) AS tile_column, duration FROM parameters)
SELECT run, tile_row, tile_column, count(*) AS tasks, sum(duration) AS work_time
FROM tiles
WHERE tile_row IS NOT NULL AND tile_column IS NOT NULL
GROUP BY run, tile_row, tile_column
ORDER BY tile_row, tile_column, run
