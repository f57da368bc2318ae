//! Every saved query runs on every fixture that holds what it needs, and answers rows on one at least, unless it
//! expects none: then it must find none in any sound one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::queries::{Expectation, Library, library};
use tq_engine::session::Session;

/// Traces of `fixtures/`: `name=path`, several opened together are apart by blanks. Add the ones of a new format here.
const FIXTURES: &[&str] = &[
    "tfprof/wavefront_40.tfp",
    "tfprof/nested_40.tfp",
    "tfprof/zero_40.tfp",
    "chrome/kineto_tiny.json",
    "chrome/addmm_twice.json",
    "chrome/torch215_cpu.json.gz",
    "chrome/nccl_ranks",
    "chrome/slow_step.json",
    "nsys/two_streams.sqlite",
    "table/render_log.csv",
    "tfprof/fib_36.json",
    "actorprof/triangle_range",
    "actorprof/quirks",
    "pascal/regions.json",
    "pascal/repetitions_3.json",
    "pascal/above_one.json",
    "pascal/csv/sperf_whole.csv",
    "daisen/queue_v49.sqlite3.zst",
    "daisen/virtualmem_v5.sqlite3.zst",
    "parsec/chol24-4r",
    "parsec/async-1r",
    "parsec/synth-1r",
    "parsec/graph_only.dot",
    "table/halo.csv",
    "folded/solver.folded",
    "base=tfprof/wavefront_40.tfp new=tfprof/wavefront_41.tfp",
    "base=tfprof/wavefront_40.tfp new=table/render_log.csv",
    "chrome/ddp_gloo",
    "chrome/damaged.json",
    "base=pascal/regions.json new=pascal/repetitions_3.json",
    "base=pascal/regions.json new=pascal/regions.json",
    "base=folded/solver.folded new=folded/in_time_order.folded",
];

fn open(fixture: &str) -> Session {
    let mut options = OpenOptions::new(1 << 30, 2);
    for trace in fixture.split(' ') {
        let (name, path) = trace.split_once('=').map_or((None, trace), |(name, path)| (Some(name.to_owned()), path));
        options.traces.push(TraceSpec { name, path: tq_tests::fixture(path) });
    }
    Session::open(&options).unwrap_or_else(|error| panic!("{fixture}: {error}"))
}

/// The picture of what is busy over time reaches from the first start to the last finish, whatever begins and ends there: its mean
/// is that of the shares of the makespan. In the nsys fixture the last work ends 40 µs before the last range does.
#[test]
fn occupancy_over_time_is_that_of_the_makespan() {
    let library = Library::default();
    let saved = |name: &str| library.find(name).unwrap().unwrap().statement.text.clone();
    for fixture in ["nsys/two_streams.sqlite", "tfprof/wavefront_40.tfp", "chrome/ddp_gloo"] {
        let session = open(fixture);
        let (occupancy, shares) = (saved("occupancy-over-time"), saved("busy-locations"));
        let of_picture = tq_tests::rows(&session, &format!("SELECT DISTINCT mean_occupancy FROM ({occupancy})"));
        let of_shares = tq_tests::rows(
            &session,
            &format!("SELECT round(sum(1.0 * busy_time) / max(makespan) / count(*), 4) FROM ({shares})"),
        );
        assert_eq!(of_picture, of_shares, "{fixture}");
        let running = saved("concurrency-over-time");
        for sql in [occupancy, running] {
            let sql = format!("SELECT max(bin_start) / (SELECT 0.97 * makespan FROM runs) >= 1 FROM ({sql})");
            assert_eq!(tq_tests::rows(&session, &sql), ["true"], "{fixture}: {sql}");
        }
    }
}

#[test]
fn saved_queries_answer_on_the_fixtures_that_hold_what_they_need() {
    let library = Library::default();
    let mut without_rows: BTreeSet<&str> = library::built_in_names().collect();
    assert!(without_rows.len() > 10, "the queries are built in");
    // Thousands of plans: side by side.
    let fixtures = Mutex::new(FIXTURES.iter());
    let next = || fixtures.lock().unwrap().next();
    let answered = std::thread::scope(|scope| {
        let work = || std::iter::from_fn(next).flat_map(|fixture| answered_on(fixture, &library)).collect::<Vec<_>>();
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    for name in answered.iter().flatten() {
        without_rows.remove(name);
    }
    assert!(without_rows.is_empty(), "no rows on any fixture: {without_rows:?}");
}

/// The queries that have rows on a fixture, or find defects and have none.
fn answered_on(fixture: &str, library: &Library) -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let session = open(fixture);
    let (mut answered, mut faults) = (Vec::new(), Vec::new());
    for name in library::built_in_names() {
        let query = library.find(name).unwrap_or_else(|error| panic!("{error}")).unwrap();
        let rows = runtime.block_on(async {
            if !query.unmet(&session).await.unwrap().is_empty() {
                return 0;
            }
            let values = query.bind(&[], session.tick()).unwrap_or_else(|error| panic!("{error}"));
            let params = (!values.is_empty()).then(|| values.into());
            let answered = session.execute(&query.statement, params).await;
            let frame = answered.unwrap_or_else(|error| panic!("{name} on {fixture}: {error}"));
            let columns: Vec<String> = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
            for column in header_columns(&query.header) {
                assert!(columns.contains(&column), "{name}: its header names `{column}`, its answer has {columns:?}");
            }
            let mut rows = frame.start().await.unwrap_or_else(|error| panic!("{name} on {fixture}: {error}"));
            faults.extend(pairs_all(rows.plan()).map(|operator| format!("{name} on {fixture}: {operator}")));
            let batches = rows.rest().await.unwrap_or_else(|error| panic!("{name} on {fixture}: {error}"));
            batches.iter().map(|batch| batch.num_rows()).sum()
        });
        let finds_defects = query.header.expects.iter().any(|expect| expect.what == Expectation::NoRows);
        let is_sound = !["actorprof/quirks", "chrome/damaged.json"].contains(&fixture);
        assert!(!finds_defects || !is_sound || rows == 0, "{name} on {fixture}: {rows} rows, and it expects none");
        if rows > 0 || finds_defects {
            answered.push(name);
        }
    }
    assert_eq!(faults, [""; 0], "plans");
    answered
}

/// An operator that sets each row of one side against each of the other: such a query takes hours on a large trace. Rows may be
/// set beside a single one.
fn pairs_all(plan: &Arc<dyn ExecutionPlan>) -> Option<&str> {
    let is_fault = match plan.name() {
        "NestedLoopJoinExec" => true,
        "CrossJoinExec" => !plan.children().into_iter().any(has_one_row_at_most),
        _ => false,
    };
    if is_fault { Some(plan.name()) } else { plan.children().into_iter().find_map(pairs_all) }
}

fn has_one_row_at_most(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let makes_no_more = match plan.cardinality_effect() {
        CardinalityEffect::Equal | CardinalityEffect::LowerEqual => !plan.children().is_empty(),
        CardinalityEffect::Unknown | CardinalityEffect::GreaterEqual => plan.name() == "CrossJoinExec",
    };
    plan.name() == "PlaceholderRowExec"
        || plan.fetch().is_some_and(|rows| rows <= 1)
        || plan.downcast_ref::<AggregateExec>().is_some_and(|grouped| grouped.group_expr().is_empty())
        || makes_no_more && plan.children().into_iter().all(has_one_row_at_most)
}

#[test]
fn plans_that_pair_all_rows_are_told_from_those_that_do_not() {
    let session = open("tfprof/wavefront_40.tfp");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let pairs = |sql: &str| {
        let rows = runtime.block_on(async { session.sql(sql).await.unwrap().start().await.unwrap() });
        pairs_all(rows.plan()).map(str::to_owned)
    };
    for (from, expected) in [
        ("tasks t CROSS JOIN (SELECT max(finish) AS last FROM tasks)", None),
        ("tasks t CROSS JOIN (SELECT finish AS last FROM tasks ORDER BY finish LIMIT 1)", None),
        ("tasks t CROSS JOIN (SELECT 5 AS last)", None),
        ("tasks t JOIN tasks u ON u.task = t.parent", None),
        ("tasks t CROSS JOIN (SELECT max(finish) AS last FROM tasks GROUP BY name)", Some("CrossJoinExec")),
        ("tasks t JOIN tasks u ON u.start < t.start", Some("NestedLoopJoinExec")),
    ] {
        assert_eq!(pairs(&format!("SELECT * FROM {from}")).as_deref(), expected, "{from}");
    }
}

/// The columns of the answer that metrics name.
fn header_columns(header: &tq_engine::queries::Header) -> Vec<String> {
    header.metrics.iter().flat_map(|metric| metric.by.iter().chain([&metric.column])).cloned().collect()
}
