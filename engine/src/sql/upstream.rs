//! What DataFusion itself answers wrongly or not at all. Each fault has a workaround here; a test below fails as soon as the
//! one it stands for is mended there, and says which module may go.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};

/// DataFusion without anything of ours: the rows of an answer, or the beginning of an error.
async fn answer(sql: &str) -> String {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let batches = match context.sql(sql).await {
        Ok(frame) => frame.collect().await,
        Err(error) => Err(error),
    };
    let batches = match batches {
        Ok(batches) => batches,
        Err(error) => return format!("error: {error}"),
    };
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" ")),
        );
    }
    rows.join("; ")
}

/// Every statement with DataFusion's own wrong answer, and the module that mends it.
const FAULTS: &[(&str, &str, &str)] = &[
    ("using", "SELECT sum(a) FROM (VALUES (1), (3)) t(a) FULL JOIN (VALUES (2), (5)) u(a) USING (a)", "4"),
    ("subqueries", "SELECT (SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 2) t WHERE x > 5) IS NULL", "false"),
    (
        "subqueries",
        "SELECT x FROM (VALUES (1), (2)) t(x) WHERE EXISTS (SELECT max(y) FROM (VALUES (1)) u(y) WHERE y > x)",
        "error: ",
    ),
    ("subqueries", "SELECT x FROM (VALUES (1), (2)) t(x) WHERE NULL NOT IN (SELECT 5)", "1; 2"),
    ("set_operations", "SELECT x FROM (VALUES (1), (1), (2)) t(x) EXCEPT ALL SELECT 1", "2"),
    (
        "keys",
        "SELECT count(*) FROM (VALUES (1, NULL), (2, 7)) a(x, y) JOIN (VALUES (1, NULL), (2, 7)) b(x, y)
           ON a.x IS NOT DISTINCT FROM b.x WHERE a.y = b.y",
        "2",
    ),
    (
        "dependencies",
        "SELECT count(*) FROM (SELECT d.b, count(DISTINCT s) FROM (SELECT DISTINCT b FROM (VALUES (1), (1)) v(b)) d
           CROSS JOIN (VALUES (10, 'x'), (20, 'y')) t(c, s) GROUP BY t.c, d.b)",
        "1",
    ),
    (
        "nullable",
        "SELECT DISTINCT CASE WHEN a >= b THEN a ELSE 1 END FROM (VALUES (CAST(5 AS BIGINT), 2), (NULL, 3)) t(a, b)",
        "error: Internal error: Physical input schema should be the same as the one converted from logical input schema.",
    ),
    (
        "names",
        "SELECT avg(CAST(x AS BIGINT)), avg(x) FROM (VALUES (1.5), (2.5)) t(x)",
        "error: Error during planning: Projections require unique expression names",
    ),
    (
        "dependent",
        "SELECT (SELECT max(y) FILTER (WHERE y > 1) FROM (VALUES (1), (2)) u(y) WHERE y >= x) FROM (VALUES (1)) t(x)",
        "error: ",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_still_there() {
    let mut mended = vec![];
    for (module, sql, wrong) in FAULTS {
        let answer = answer(sql).await;
        let is_there = if wrong.starts_with("error: ") { answer.starts_with(wrong) } else { answer == *wrong };
        if !is_there {
            mended.push(format!("`{module}` may not be needed any more: {sql}\n  answers {answer}, not {wrong}"));
        }
    }
    assert!(mended.is_empty(), "{}", mended.join("\n"));
}
