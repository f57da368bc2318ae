//! Rows come in the same order, however the partitions race; and nobody waits for somebody who waits.
//!
//! The table `t` is cut into many small batches of different sizes, and a source may be a few kilobytes ahead only.

use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::sql;
use crate::sql::tests::answer;

const ROWS: i64 = 4_000;

/// `id` counts, `k` has few values, `v` many with ties, `w` is text.
fn batch(from: i64, to: i64) -> RecordBatch {
    let integer = |name: &str| Field::new(name, DataType::Int64, true);
    let schema = Schema::new(vec![integer("id"), integer("k"), integer("v"), Field::new("w", DataType::Utf8, true)]);
    let column = |of: &dyn Fn(i64) -> i64| Arc::new(Int64Array::from_iter_values((from..to).map(of)));
    let words = StringArray::from_iter_values((from..to).map(|id| format!("w{}", id * 31 % 97)));
    let columns: Vec<Arc<dyn datafusion::arrow::array::Array>> =
        vec![column(&|id| id), column(&|id| id * 7 % 13), column(&|id| id * 7919 % 501), Arc::new(words)];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn context(threads: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(threads).with_batch_size(128);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    let context = SessionContext::new_with_state(sql::configure(builder).build());
    let mut batches = vec![];
    let mut from = 0;
    while from < ROWS {
        let to = (from + 20 + from * 13 % 230).min(ROWS);
        batches.push(batch(from, to));
        from = to;
    }
    let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    context
}

/// Statements whose rows come as the table has them, on any number of threads.
const AS_THE_TABLE: &[&str] = &[
    "SELECT * FROM t",
    "SELECT id, v + 1 AS more FROM t WHERE v % 3 = 0",
    "SELECT id FROM t LIMIT 10",
    "SELECT id FROM t LIMIT 10 OFFSET 2500",
    "SELECT id FROM t WHERE v > 400 LIMIT 10",
    "SELECT count(*), max(id) FROM (SELECT id FROM t WHERE k = 5 LIMIT 100)",
    "SELECT id FROM t WHERE k = 1 UNION ALL SELECT id FROM t WHERE k = 2 UNION ALL SELECT id FROM t LIMIT 5000",
    "SELECT * FROM (SELECT id, k FROM t LIMIT 500) WHERE k < 3",
    "SELECT t.id, s.name FROM t JOIN (VALUES (1, 'one'), (2, 'two'), (3, 'three')) AS s(k, name) ON t.k = s.k",
    "SELECT id FROM t WHERE k IN (SELECT column1 FROM (VALUES (1), (4)))",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM (VALUES (1), (4)) AS s(x) WHERE s.x = t.k)",
    "SELECT t.id, s.x FROM t CROSS JOIN (VALUES (1), (2)) AS s(x)",
    "SELECT t.id, s.x FROM t JOIN (VALUES (100), (200)) AS s(x) ON t.v < s.x",
    "SELECT id, row_number() OVER () AS position FROM t",
    "SELECT id, unnest([id, k]) AS part FROM t",
    "SELECT array_agg(id) FROM t WHERE k = 3",
    "SELECT first_value(id), last_value(id), string_agg(w, ',') FROM t WHERE v < 100",
    "SELECT k, array_agg(id) AS ids FROM t GROUP BY k ORDER BY k",
    "SELECT k, first_value(w) AS first, string_agg(w, '') AS words FROM t WHERE v < 90 GROUP BY k ORDER BY k",
    "SELECT id, v FROM t ORDER BY v LIMIT 100",
    "SELECT id, v FROM t ORDER BY v DESC LIMIT 100",
    "SELECT id, k FROM t ORDER BY k LIMIT 1000",
    "SELECT id, k, w FROM t ORDER BY k, w",
    "SELECT id, k, w FROM t ORDER BY w DESC, k LIMIT 77",
    "SELECT * FROM (SELECT id, v FROM t WHERE k < 6) ORDER BY v LIMIT 50 OFFSET 20",
    "SELECT x.id FROM (SELECT id, v FROM t ORDER BY v LIMIT 40) AS x WHERE x.v > 1",
];

/// Statements whose rows have an order of their own, the same each time.
const THE_SAME_EACH_TIME: &[&str] = &[
    "SELECT k, count(*) FROM t GROUP BY k",
    "SELECT w, v, sum(id) FROM t GROUP BY w, v",
    "SELECT DISTINCT w FROM t",
    "SELECT DISTINCT w FROM t LIMIT 5",
    "SELECT id, count(*) FROM t GROUP BY id LIMIT 20",
    "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON a.v = b.v WHERE a.k = 1 AND b.k = 2",
    "SELECT a.id, b.id AS other FROM t AS a LEFT JOIN t AS b ON a.id = b.v",
    "SELECT a.id, b.id AS other FROM t AS a FULL JOIN t AS b ON a.id = b.v + 2000",
    "SELECT a.id FROM t AS a WHERE a.v IN (SELECT b.id FROM t AS b WHERE b.k < 4)",
    "SELECT a.id FROM t AS a WHERE a.v NOT IN (SELECT b.id FROM t AS b WHERE b.k < 4)",
    "SELECT s.x, t.id FROM (VALUES (1), (2), (7777)) AS s(x) LEFT JOIN t ON s.x = t.id",
    "SELECT s.x, t.id FROM (VALUES (1), (2), (7777)) AS s(x) FULL JOIN t ON s.x = t.id",
    "SELECT s.x, t.id FROM (VALUES (1), (2), (-7)) AS s(x) LEFT JOIN t ON s.x > t.id",
    "SELECT s.x FROM (VALUES (1), (2), (7777)) AS s(x) WHERE EXISTS (SELECT 1 FROM t WHERE t.id = s.x)",
    "SELECT w FROM t UNION SELECT CAST(k AS VARCHAR) FROM t",
    "SELECT w FROM t EXCEPT SELECT w FROM t WHERE k < 3",
    "SELECT k, count(*) FROM t GROUP BY k UNION ALL SELECT v, count(*) FROM t GROUP BY v",
    "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) FROM t",
    "SELECT id, rank() OVER (PARTITION BY k ORDER BY v) FROM t",
    "SELECT id, v FROM t ORDER BY v",
    "SELECT k, w, count(*) AS n FROM t GROUP BY k, w ORDER BY n LIMIT 10",
    "SELECT count(*) AS n, w FROM t GROUP BY w ORDER BY n DESC",
    "SELECT a.k, count(*) FROM t AS a JOIN t AS b ON a.v = b.v JOIN t AS c ON b.id = c.id GROUP BY a.k",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.v = b.id JOIN t AS c ON b.v = c.id JOIN t AS d ON c.k = d.id LIMIT 3000",
    "SELECT array_agg(n) FROM (SELECT w, count(*) AS n FROM t GROUP BY w)",
    "WITH RECURSIVE r(x) AS (SELECT id FROM t WHERE id < 5 UNION ALL SELECT t.v + 500 FROM r JOIN t ON t.id = r.x WHERE r.x < 900) SELECT x FROM r LIMIT 100",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_come_as_the_table_has_them_on_any_number_of_threads() {
    let contexts = [1, 2, 7].map(context);
    for text in AS_THE_TABLE {
        let expected = answer(&contexts[0], text).await;
        for context in &contexts {
            for _ in 0..3 {
                same(&answer(context, text).await, &expected, text, context).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_lose_the_order_of_the_table_have_the_same_each_time() {
    for threads in [2, 5] {
        let context = context(threads);
        for text in THE_SAME_EACH_TIME {
            let expected = answer(&context, text).await;
            for _ in 0..5 {
                same(&answer(&context, text).await, &expected, text, &context).await;
            }
        }
    }
}

/// Both lists hold what they hold on one thread, where no operator of ours takes part.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_row_is_lost_and_none_comes_twice() {
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let (one, many) = (context(1), context(6));
    // A LIMIT without an order of its own may take others.
    let whole = THE_SAME_EACH_TIME.iter().filter(|text| !text.contains("LIMIT") && !text.contains("array_agg"));
    for text in whole {
        assert_eq!(sorted(answer(&many, text).await), sorted(answer(&one, text).await), "{text}");
    }
}

#[tokio::test]
async fn the_first_rows_cost_no_more_than_they_have_to() {
    let context = context(4);
    let frame = sql::execute(&context, &sql::parse("SELECT id FROM t LIMIT 3").unwrap()[0], None).await.unwrap();
    let plan = frame.into_frame().create_physical_plan().await.unwrap();
    let rows = datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    let text = displayable(plan.as_ref()).indent(true).to_string();
    assert!(text.contains("InOrderExec: turns=partitions, fetch=3"), "{text}");
}

async fn plan(context: &SessionContext, text: &str) -> String {
    let frame = sql::execute(context, &sql::parse(text).unwrap()[0], None).await.unwrap();
    displayable(frame.into_frame().create_physical_plan().await.unwrap().as_ref()).indent(true).to_string()
}

/// Answers are long: of two that differ, the first row that does is shown.
async fn same(found: &str, expected: &str, text: &str, context: &SessionContext) {
    if found != expected {
        let rows = found.lines().zip(expected.lines()).enumerate().find(|(_, (found, expected))| found != expected);
        panic!("{text}: line, (found, expected): {rows:?}\n{}", plan(context, text).await);
    }
}
