//! Clusters: every fixture, function, saved query and golden query has the same answer with workers as with none.
//!
//! The workers are threads of the test: what they get and give goes through sockets all the same.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use datafusion::catalog::MemorySchemaProvider;
use datafusion::prelude::SessionContext;
use tokio::runtime::{Builder, Runtime};
use tq_engine::cluster::{Address, Fragments, Serving, Workers, join, serve};
use tq_engine::open::OpenOptions;
use tq_engine::queries::{Library, library};
use tq_engine::session::Session;
use tq_engine::tables::TABLES;
use tq_tests::wait;

use crate::slt::{play, run};
use crate::store::{CONDITIONS, FIXTURES, at, bag, folder, import, noted, options, saved};

const COUNTS: [usize; 3] = [1, 2, 4];

/// Traces of several formats as one store.
const MANY: &str = "tfprof/wavefront_40.tfp tfprof/fib_36.json chrome/kineto_tiny.json chrome/nccl_ranks \
    nsys/two_streams.sqlite actorprof/triangle_range daisen/queue_v49.sqlite3.zst parsec/chol8-1r";

/// Queries of all kinds.
const QUERIES: [&str; 36] = [
    "SELECT count(*) FROM tasks",
    "SELECT * FROM tasks",
    "SELECT run, count(*), min(start), max(finish) FROM tasks GROUP BY run",
    "SELECT name, count(*) AS n, sum(duration) AS d FROM tasks GROUP BY name",
    "SELECT run, location, busy(start, finish) FROM tasks GROUP BY run, location",
    "SELECT run, max_concurrency(start, finish) FROM tasks GROUP BY run",
    "SELECT occupancy(start, finish, 4, 0, 100000) FROM tasks WHERE run LIKE 'wave%'",
    "SELECT avg(duration), stddev(duration), median(duration) FROM tasks",
    "SELECT cv(duration), imbalance(duration) FROM tasks",
    "SELECT run, percentile_cont(0.9) WITHIN GROUP (ORDER BY duration) FROM tasks GROUP BY run",
    "SELECT run, percentile_cont(0.9) WITHIN GROUP (ORDER BY start DESC) FROM self_time(tasks) GROUP BY run",
    "SELECT count(DISTINCT name), count(DISTINCT location) FROM tasks",
    "SELECT name FROM tasks WHERE duration > us(10) AND name IS NOT NULL",
    "SELECT run, name, to_us(duration) FROM tasks ORDER BY duration DESC, run, task LIMIT 10",
    "SELECT name, duration FROM tasks ORDER BY name, start LIMIT 7 OFFSET 3",
    "SELECT task, name FROM tasks LIMIT 5",
    "SELECT c.name, p.name AS parent, count(*) FROM tasks c JOIN tasks p ON c.run = p.run AND c.parent = p.task GROUP BY c.name, p.name",
    "SELECT l.kind, count(*), sum(t.start - s.finish) FROM links l JOIN tasks s ON l.run = s.run AND l.source = s.task \
     JOIN tasks t ON l.run = t.run AND l.target = t.task GROUP BY l.kind",
    "SELECT t.name FROM tasks t LEFT JOIN links l ON t.run = l.run AND t.task = l.target WHERE l.source IS NULL",
    "SELECT run, name, row_number() OVER (PARTITION BY run ORDER BY duration DESC, task) AS r FROM tasks QUALIFY r = 1",
    "SELECT run, task, lag(finish) OVER (PARTITION BY run, location ORDER BY start, task) FROM tasks",
    "WITH long AS (SELECT * FROM tasks WHERE duration > 1000) SELECT run, count(*) FROM long GROUP BY run",
    "SELECT name FROM tasks WHERE run LIKE 'fib%' UNION SELECT kind FROM locations",
    "SELECT 'task' AS what, count(*) FROM tasks UNION ALL SELECT 'link', count(*) FROM links",
    "SELECT name, duration FROM tasks WHERE duration = (SELECT max(duration) FROM tasks)",
    "SELECT run, count(*) FROM tasks t WHERE EXISTS (SELECT 1 FROM links l WHERE l.run = t.run AND l.source = t.task) GROUP BY run",
    "SELECT run, count(*) FROM critical_path() GROUP BY run",
    "SELECT run, step, name, duration FROM critical_path()",
    "SELECT run, name, sum(self_time) FROM self_time(tasks) GROUP BY run, name",
    "SELECT * FROM timeline(tasks, 4)",
    "SELECT * FROM timeline(tasks, 3, 0, 1000000)",
    "SELECT run, task, row FROM floating_rows(tasks)",
    "SELECT array_agg(name ORDER BY name) FROM (SELECT DISTINCT name FROM tasks WHERE run LIKE 'wave%')",
    "SELECT coalesce(name, '?') AS n, CASE WHEN duration > 1000 THEN 'long' ELSE 'short' END AS l, count(*) FROM tasks GROUP BY 1, 2",
    "SELECT a.run, a.n, l.n FROM (SELECT run, count(*) AS n FROM tasks GROUP BY run) a \
     JOIN (SELECT run, count(*) AS n FROM locations GROUP BY run) l ON a.run = l.run",
    "SELECT * FROM compare_runs(base => 'wavefront_40', new => 'fib_36')",
];

/// Where workers run; they end with the tests. As many threads as a worker has to talk, or unoptimised planning keeps all of them from answering.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let threads = Builder::new_multi_thread().worker_threads(8).thread_stack_size(8 << 20).enable_all().build();
    threads.unwrap()
});

/// So many workers, who do the smallest parts.
fn workers(count: usize) -> Workers {
    let worker = || {
        let serving = Serving {
            token: None,
            identity: None,
            allowed: None,
            memory_limit: 1 << 30,
            fragments: Arc::new(Fragments::new(2, || ())),
            bytes_used: || None,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = Address::of(listener.local_addr().unwrap().to_string());
        let _entered = RUNTIME.enter();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        RUNTIME.spawn(serve(listener, serving));
        address
    };
    let addresses = std::iter::repeat_with(worker).take(count).collect();
    Workers { addresses, token: None, authority: None, least_bytes: 0 }
}

/// Sessions over a store: one that is alone, and one with each number of workers.
fn sessions(traces: &str, store: &Path, helpers: &[Workers]) -> (Session, Vec<Session>) {
    // Each sort of a plan sets 10 MB aside, and on one thread all of a hundred may have begun.
    let options = OpenOptions { memory_limit: 4 << 30, ..options(at(store)) };
    let open = || Session::open(&options).unwrap_or_else(|error| panic!("{traces}: {error}"));
    let joined = helpers.iter().map(|workers| {
        let session = open();
        join(&session, &options.traces, None, &[], workers).unwrap();
        session
    });
    (open(), joined.collect())
}

/// Those of which all functions and conditions are asked: planning them takes long.
const ASKED_IN_FULL: [&str; 2] = [
    "base=tfprof/wavefront_40.tfp new=tfprof/wavefront_41.tfp",
    "ns=tfprof/wavefront_40.tfp ps=daisen/queue_v49.sqlite3.zst",
];

/// What is asked of a store.
fn questions(session: &Session, in_full: bool) -> Vec<String> {
    let tables = TABLES.iter().map(|table| table.name.to_owned());
    let conditions = CONDITIONS.iter().map(|&condition| condition.to_owned());
    let functions = session.relation_functions().into_iter().map(|function| format!("{}()", function.name()));
    let in_full = conditions.chain(functions).filter(|_| in_full);
    let all = tables.chain(in_full).map(|relation| format!("SELECT * FROM {relation}"));
    let more = [
        "SELECT run, name, count(*), min(start), max(finish), sum(duration) FROM tasks GROUP BY run, name",
        "SELECT run, location, busy(start, finish), max_concurrency(start, finish) FROM tasks GROUP BY run, location",
        "SELECT name, median(duration), imbalance(duration) FROM tasks GROUP BY name",
        "SELECT kind, count(*), sum(bytes) FROM messages GROUP BY kind",
    ];
    all.chain(more.map(str::to_owned)).collect()
}

#[test]
fn every_fixture_answers_the_same_from_workers() {
    let helpers = COUNTS.map(workers);
    let work = Mutex::new(FIXTURES.iter());
    let next = || work.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| std::iter::from_fn(next).for_each(|traces| compare(traces, &helpers)));
        }
    });
}

fn compare(traces: &str, helpers: &[Workers]) {
    let (_folder, store) = folder();
    import(&store, traces);
    let in_full = ASKED_IN_FULL.contains(&traces);
    // Four of them find what fewer do; all counts are asked where there is most to find.
    let helpers = if in_full { helpers } else { &helpers[COUNTS.len() - 1..] };
    let (alone, joined) = sessions(traces, &store, helpers);
    for session in &joined {
        let plan = bag(session, "EXPLAIN SELECT * FROM tasks").unwrap();
        let is_shared = plan.iter().any(|line| line.contains("Stage 1"));
        let is_empty = bag(&alone, "SELECT task FROM tasks LIMIT 1").unwrap().is_empty();
        assert!(is_shared != is_empty, "{traces}: {plan:?}");
    }
    for sql in questions(&alone, in_full) {
        let expected = bag(&alone, &sql);
        for (session, count) in joined.iter().zip(&COUNTS[COUNTS.len() - joined.len()..]) {
            assert_eq!(bag(session, &sql), expected, "{traces}, {count} workers: {sql}");
        }
    }
}

/// Runs are divided as their order in answers needs, and what is said of all of them is put together.
#[test]
fn functions_give_their_rows_in_the_same_order_and_say_the_same() {
    let (_folder, store) = folder();
    import(&store, MANY);
    let (alone, joined) = sessions(MANY, &store, &COUNTS.map(workers));
    let functions = alone.relation_functions().into_iter().map(|function| format!("{}()", function.name()));
    let mut said = 0;
    for relation in functions.chain(["tasks".to_owned(), "links".to_owned()]) {
        let sql = format!("SELECT * FROM {relation}");
        let sorted = |sql: &str, session| {
            noted(session, sql).map(|(rows, mut notes)| {
                notes.sort();
                (rows, notes)
            })
        };
        let expected = sorted(&sql, &alone);
        said += expected.as_ref().map_or(0, |(_, notes)| notes.len());
        for session in &joined {
            assert_eq!(sorted(&sql, session), expected, "{sql}");
        }
    }
    assert!(said > 3, "{said} notes");
}

/// The part of a plan that workers do.
fn at_workers(session: &Session, sql: &str) -> String {
    let (plan, _) = noted(session, &format!("EXPLAIN {sql}")).unwrap();
    let plan = plan.join("\n");
    let (_, stages) = plan.split_once("Stage 1 ──").unwrap_or_else(|| panic!("{plan}"));
    stages.to_owned()
}

#[test]
fn workers_send_the_first_rows_alone() {
    let (_folder, store) = folder();
    import(&store, MANY);
    let (alone, joined) = sessions(MANY, &store, &[workers(2)]);
    // Rows that are equal stand in the order of the table.
    for sql in [
        "SELECT run, task, duration FROM tasks ORDER BY duration DESC LIMIT 20",
        "SELECT run, task, name FROM tasks WHERE duration > 0 ORDER BY name NULLS FIRST LIMIT 30",
        "SELECT run, task FROM tasks ORDER BY start % 3, run LIMIT 50 OFFSET 7",
    ] {
        let stages = at_workers(&joined[0], sql);
        assert!(stages.contains("TopK"), "{stages}");
        assert_eq!(noted(&joined[0], sql), noted(&alone, sql), "{sql}");
    }
}

/// Sums and differences of times, doubles, texts: what is computed of rows is computed where they are read.
#[test]
fn workers_compute_what_groups_are_of() {
    let (_folder, store) = folder();
    import(&store, MANY);
    let (alone, joined) = sessions(MANY, &store, &[workers(2)]);
    for value in [
        "sum(finish - start)",
        "max(start + 2 * duration)",
        "min(-start)",
        "sum(duration / 3)",
        "max(to_us(duration))",
        "avg(sqrt(duration) / 2.0)",
        "max(name || run)",
        "count(*) FILTER (WHERE us(1) + duration > 5000)",
        "max(duration % 7) FILTER (WHERE name LIKE '%a%')",
        "max(CASE WHEN name LIKE 'k%' THEN duration % 7 END)",
        "imbalance(duration - 1)",
    ] {
        let sql = format!("SELECT run, location, {value} FROM tasks GROUP BY run, location");
        let stages = at_workers(&joined[0], &sql);
        assert!(stages.contains("AggregateExec"), "{value}: {stages}");
        assert_eq!(bag(&joined[0], &sql), bag(&alone, &sql), "{value}");
    }
    let times = "SELECT run, start - duration AS before FROM tasks WHERE duration + 1 > 5";
    assert_eq!(bag(&joined[0], times), bag(&alone, times));
}

#[test]
fn queries_answer_the_same_from_workers() {
    let (_folder, store) = folder();
    import(&store, MANY);
    let (alone, joined) = sessions(MANY, &store, &COUNTS.map(workers));
    for sql in QUERIES {
        let expected = bag(&alone, sql);
        assert!(expected.is_ok(), "{sql}: {expected:?}");
        for (session, count) in joined.iter().zip(COUNTS) {
            assert_eq!(bag(session, sql), expected, "{count} workers: {sql}");
        }
    }
}

#[test]
fn saved_queries_answer_the_same_from_workers() {
    let (_folder, store) = folder();
    import(&store, MANY);
    let (alone, joined) = sessions(MANY, &store, &COUNTS.map(workers));
    let [one, two, four] = joined.as_slice() else { panic!("one session for each number of workers") };
    let mut answered = 0;
    // Planning hundreds of stages takes long: four workers answer all of them, one and two every other one.
    for (name, fewer) in library::built_in_names().zip([(one, 1), (two, 2)].into_iter().cycle()) {
        let query = Library::default().find(name).unwrap().unwrap();
        let has_answer = |session| wait(query.unmet(session)).unwrap().is_empty();
        let expected = has_answer(&alone).then(|| saved(&alone, name));
        for (session, count) in [fewer, (four, 4)] {
            assert_eq!(has_answer(session).then(|| saved(session, name)), expected, "{count} workers: {name}");
        }
        answered += usize::from(expected.is_some());
    }
    assert!(answered > 100, "{answered} saved queries have an answer");
}

/// Their tables are in a schema of their own; those of the store stand beside them. Plans say who does them.
#[test]
fn golden_queries_answer_the_same_beside_workers() {
    let (_folder, store) = folder();
    import(&store, "tfprof/wavefront_40.tfp");
    for helpers in COUNTS.map(workers) {
        let session = || -> SessionContext {
            let (_, mut joined) = sessions("golden", &store, std::slice::from_ref(&helpers));
            let context = joined.remove(0).context().clone();
            let catalog = context.catalog("tq").unwrap();
            catalog.register_schema("golden", Arc::new(MemorySchemaProvider::new())).unwrap();
            context.state_ref().write().config_mut().options_mut().catalog.default_schema = "golden".to_owned();
            context
        };
        play(|file| run(file, false, Some("workers"), session));
    }
}
