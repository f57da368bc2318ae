//! Which result columns are times: arithmetic and functions keep what is known about their arguments.

use tq_udfs::ticks::{is_mean_time, is_time};

use crate::slt::{answer, session};

/// Columns named `is_…` must be times, columns named `no_…` must not.
#[tokio::test]
async fn times_stay_times() {
    let sql = "
        SELECT
            finish - start AS is_difference,
            finish + 5 AS is_later,
            2 * (finish - start) AS is_product,
            -start AS is_negative,
            us(5) AS is_folded,
            us(five) AS is_converted,
            sum(finish - start) OVER () AS is_running_sum,
            busy(start, finish) OVER () AS is_running_busy,
            sum(five) OVER () AS no_sum,
            five + five AS no_number,
            (finish - start) * (finish - start) AS no_square,
            to_us(start) AS no_double,
            time_text(start) AS no_text
        FROM (VALUES (1, 5, 5), (2, 9, 5)) AS tasks(start, finish, five)";
    check(sql).await;
    let sql = "
        SELECT five AS no_key, sum(finish - start) AS is_sum, busy(start, finish) AS is_busy, count(*) AS no_count,
            imbalance(finish) AS no_ratio, sum(five) AS no_sum,
            max(finish) - min(start) AS is_makespan, max(finish) AS is_last,
            max(five) AS no_max, median(finish - start) AS is_median, avg(finish - start) AS is_mean,
            stddev(finish - start) AS is_deviation, stddev_pop(finish - start) AS is_deviation_of_all, var(finish - start) AS no_square,
            percentile_cont(0.9) WITHIN GROUP (ORDER BY finish - start) AS is_ninetieth,
            approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY finish - start) AS is_about_ninetieth,
            approx_median(finish - start) AS is_about_median, avg(to_us(start)) AS no_mean, avg(five) AS no_other_mean
        FROM (VALUES (1, 5, 5), (2, 9, 5)) AS tasks(start, finish, five) GROUP BY five";
    check(sql).await;
    let sql = "
        SELECT max(is_mean) AS is_longest, is_mean / 2 AS no_half, avg(is_mean) OVER () AS is_running_mean
        FROM (SELECT five, avg(finish - start) AS is_mean FROM (VALUES (1, 5, 5), (2, 9, 5)) AS tasks(start, finish, five) GROUP BY five)
        GROUP BY is_mean";
    check(sql).await;
    // Through a subquery, a CTE, a union and a sort.
    let sql = "
        WITH spans AS (SELECT finish - start AS is_length FROM (VALUES (1, 5)) AS tasks(start, finish))
        SELECT is_length FROM (SELECT is_length FROM spans UNION ALL SELECT is_length + 1 FROM spans) ORDER BY is_length";
    check(sql).await;
}

async fn check(sql: &str) {
    let (schema, _) = answer(&session(), sql).await.expect(sql);
    for field in schema.fields() {
        assert_eq!(is_time(field) || is_mean_time(field), field.name().starts_with("is_"), "{field:?}");
    }
}
