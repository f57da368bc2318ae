//! Folded stacks: the tables of the fixtures, the books, and lines that are none.

use std::path::Path;

use datafusion::arrow::util::display::array_value_to_string;
use tq_engine::importers::examine::examine;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_tests::fixture;
use tq_udfs::ticks::Tick;

const FIXTURES: [&str; 2] = ["solver.folded", "in_time_order.folded"];

fn open(path: &Path, unit: Option<&str>) -> Session {
    let mut open = OpenOptions::new(1 << 30, 2);
    open.traces.push(TraceSpec { name: None, path: path.to_owned() });
    open.import.extend(unit.map(|unit| ("folded.unit".to_owned(), unit.to_owned())));
    Session::open(&open).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A text as a trace.
fn open_text(text: &str, unit: Option<&str>) -> Session {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, text).unwrap();
    open(&path, unit)
}

/// The answer, a line per row, cells separated by blanks; NULL is `-`.
fn rows(session: &Session, sql: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let batches = runtime.block_on(async { session.sql(sql).await.unwrap().collect().await.unwrap() });
    let cell = |column: &datafusion::arrow::array::ArrayRef, row| match column.is_null(row) {
        true => "-".to_owned(),
        false => array_value_to_string(column, row).unwrap(),
    };
    let line = |batch: &datafusion::arrow::array::RecordBatch, row| -> String {
        batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| line(batch, row)).collect::<Vec<_>>()).collect()
}

const TASKS: &str = "SELECT name, kind, start, finish, depth, parent & 1023 AS parent FROM tasks ORDER BY task";
const FOUND: &str = "SELECT what, severity, count FROM import_stats WHERE what <> 'records_read' ORDER BY what";

//     0    5  8      25 29 31   40        160   191  197
// 0   [solver                                       )
// 1        [main                                    )
// 2           [read_input)[solve                )[w )
// 3           [getline)[k)   [axpy)[gemm        )
// 4                                    [pack    )
#[test]
fn a_sorted_file_is_its_flame_graph() {
    let session = open(&fixture("folded/solver.folded"), None);
    let expected = [
        "solver frame 0 197 0 -",
        "main frame 5 197 1 0",
        "read_input frame 8 29 2 1",
        "std::getline<char, std::allocator> frame 8 25 3 2",
        "vfs_read os_kernel 25 29 3 2",
        "solve frame 29 191 2 1",
        "axpy inlined 31 40 3 5",
        "gemm frame 40 191 3 5",
        "pack frame 160 191 4 7",
        "write frame 191 197 2 1",
    ];
    assert_eq!(rows(&session, TASKS), expected);
    assert_eq!(rows(&session, FOUND), ["stack_lines info 9", "weights_as_ticks info 9"]);
    assert_eq!(rows(&session, "SELECT location, kind FROM locations"), ["stacks thread"]);
    // What was read comes back.
    let folded = rows(
        &session,
        "SELECT stack || ' ' || sum(self_time) FROM call_tree(tasks) WHERE self_time > 0 GROUP BY stack ORDER BY stack",
    );
    assert!(folded.contains(&"solver;main;solve;gemm 120".to_owned()), "{folded:?}");
    assert_eq!(folded.len(), 9);
}

#[test]
fn neighbours_share_and_others_do_not() {
    let session = open(&fixture("folded/in_time_order.folded"), None);
    let expected = [
        "worker frame 0 17 0 -",
        "poll frame 0 12 1 0",
        "epoll_wait os_kernel 2 12 2 1",
        "run frame 12 16 1 0",
        "job frame 12 16 2 3",
        "poll frame 16 17 1 0",
        "epoll_wait os_kernel 17 17 2 5",
    ];
    assert_eq!(rows(&session, TASKS), expected);
    assert_eq!(rows(&session, FOUND), ["rounded info 1", "stack_lines info 5", "weights_as_ticks info 5"]);
}

#[test]
fn a_unit_makes_times_of_weights() {
    let session = open_text("a;b 1.5\na;c 2\n", Some("us"));
    assert_eq!(rows(&session, "SELECT name, duration FROM tasks ORDER BY task"), ["a 3500", "b 1500", "c 2000"]);
    assert_eq!(rows(&session, FOUND), ["stack_lines info 2"]);
    assert_eq!(session.tick(), Tick::Nanosecond);
    // Without one they are none, and are not shown as nanoseconds.
    let weights = open_text("a;b 1500\na;c 2\n", None);
    assert_eq!(weights.tick(), Tick::Weight);
    assert_eq!(rows(&weights, "SELECT time_text(duration) FROM tasks WHERE name = 'b'"), ["1500 weights"]);
    let mut open = OpenOptions::new(1 << 30, 1);
    open.traces.push(TraceSpec { name: None, path: fixture("folded/solver.folded") });
    open.import.insert("folded.unit".to_owned(), "h".to_owned());
    let error = Session::open(&open).err().unwrap().to_string();
    assert_eq!(error, "import option `folded.unit=h`: one of ns, us, ms, s is needed");
}

#[test]
fn lines_that_are_no_stacks_are_counted() {
    // What follows the first 64 KiB is not looked at when a file is recognised.
    let good = "main;work;here 1\n".repeat(4096);
    let long = format!("{};b 1\n", "a".repeat(3 << 20));
    let text = format!("{good}no weight\nmain;x -3\nmain;x 1e99\n{long}main;y 5");
    let session = open_text(&text, None);
    assert_eq!(
        rows(&session, FOUND),
        ["bad_lines lost 4", "no_line_end info 1", "stack_lines info 4097", "weights_as_ticks info 4097"]
    );
    // The books: what became tasks and what was left out is what was read.
    let books = rows(&session, "SELECT count, example FROM import_stats WHERE what = 'records_read'");
    assert_eq!(books, ["4101 4097 became rows"]);
    let expected = ["main 0 4101", "work 0 4096", "here 0 4096", "y 4096 4101"];
    assert_eq!(rows(&session, "SELECT name, start, finish FROM tasks ORDER BY task"), expected);
}

#[test]
fn every_prefix_and_flipped_bytes_are_answers_that_are_sound() {
    for name in FIXTURES {
        let bytes = std::fs::read(fixture("folded").join(name)).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(examine("folded", &bytes[..end]), Vec::<String>::new(), "{name} up to {end}");
            for bit in [0, 3, 6, 7] {
                let mut flipped = bytes.clone();
                flipped[end] ^= 1 << bit;
                assert_eq!(examine("folded", &flipped), Vec::<String>::new(), "{name}, bit {bit} of byte {end}");
            }
        }
    }
}
