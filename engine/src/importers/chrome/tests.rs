//! Damage: every cut and many flipped bytes of small texts end in an error with a place or in counted findings, and what
//! is left is valid. And what belongs together is joined as a naive search does.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::importers::importer::ImportOptions;
use crate::tables::Table;
use crate::trace::Run;

/// Enough for any of the texts here, far too little for a count that somebody believes.
const MEMORY_BYTES: usize = 8 << 20;

const FIXTURES: [&str; 3] = ["phases.json", "kineto_tiny.json", "damaged.json"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/chrome").join(name)
}

fn import(bytes: &[u8], threads: usize) -> Result<Run, ImportError> {
    import_in_blocks(bytes, bytes.len() + 1, threads)
}

fn import_in_blocks(bytes: &[u8], block_bytes: usize, threads: usize) -> Result<Run, ImportError> {
    let source = Source::of_bytes(bytes)?.in_blocks_of(block_bytes);
    read_with(threads, |context| Chrome.import(&source, context))
}

fn read_with(
    threads: usize,
    read: impl FnOnce(&mut ImportContext<'_>) -> Result<(), ImportError>,
) -> Result<Run, ImportError> {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    let options = ImportOptions::new();
    let mut context = ImportContext::new(&options, threads, pool, 0);
    read(&mut context)?;
    Ok(context.into_runs().remove(0))
}

fn batches(run: &Run, table: Table) -> &[RecordBatch] {
    run.tables.get(&table).map(Vec::as_slice).unwrap_or_default()
}

fn names(run: &Run) -> Vec<String> {
    let tasks = batches(run, Table::Tasks).iter();
    let column = tasks.flat_map(|batch| {
        let names = batch["name"].as_dictionary::<Int32Type>();
        let words = names.values().as_string::<i32>();
        names.keys().iter().flatten().map(|key| words.value(key as usize).to_owned()).collect::<Vec<_>>()
    });
    column.collect()
}

fn count(run: &Run, what: &str) -> u64 {
    run.stats.iter().filter(|stat| stat.finding.what == what).map(|stat| stat.count).sum()
}

/// The books balance, and all arguments are JSON.
fn assert_sound(result: &Result<Run, ImportError>, what: &str) {
    let run = match result {
        Ok(run) => run,
        Err(ImportError::Damaged { place, .. }) => return assert!(!place.is_empty(), "{what}"),
        Err(ImportError::Empty { .. }) => return,
        Err(other) => panic!("{what}: {other}"),
    };
    assert_eq!(count(run, "unaccounted"), 0, "{what}: {:?}", run.stats);
    for table in [Table::Tasks, Table::Events, Table::Locations] {
        for batch in batches(run, table) {
            for args in batch["args"].as_string::<i32>().iter().flatten() {
                let parsed = serde_json::from_str::<serde_json::Value>(args);
                assert!(parsed.is_ok(), "{what}: {args}");
            }
        }
    }
}

#[test]
fn every_cut_keeps_the_tasks_before_it() {
    for name in FIXTURES {
        let bytes = std::fs::read(fixture(name)).expect(name);
        let whole = names(&import(&bytes, 1).expect(name));
        let mut last = 0;
        for length in 0..bytes.len() {
            let what = format!("{name} cut at {length}");
            let cut = import(&bytes[..length], 1);
            assert_sound(&cut, &what);
            let Ok(cut) = cut else { continue };
            let kept = names(&cut);
            // The name of a damaged event may read otherwise when less of it is there; its neighbours' do not.
            assert!(whole.starts_with(&kept), "{what}: {kept:?}");
            assert!(kept.len() >= last, "{what}");
            last = kept.len();
            // Only line ends follow the last bracket.
            let is_whole = bytes[length..].trim_ascii().is_empty() && name != "damaged.json";
            let array_may_end = name == "damaged.json";
            assert!(array_may_end || count(&cut, "truncated") == u64::from(!is_whole), "{what}: {:?}", cut.stats);
        }
        assert_eq!(last, whole.len(), "{name}");
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit as u64) as usize
    }
}

#[test]
fn flipped_bytes_are_an_answer_or_an_error() {
    const SEED: u64 = 0x5eed;
    let mut random = Random(SEED);
    for name in FIXTURES {
        let bytes = std::fs::read(fixture(name)).expect(name);
        for round in 0..1_000 {
            let mut flipped = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(flipped.len());
                flipped[at] = match random.below(3) {
                    0 => b"\"\\{}[],:0"[random.below(9)],
                    1 => flipped[at] ^ (1 << random.below(8)),
                    _ => random.below(256) as u8,
                };
            }
            assert_sound(&import(&flipped, 1 + round % 2), &format!("{name}, seed {SEED:#x}, round {round}"));
        }
    }
}

/// One unescaped quote costs one event, wherever it stands among others.
#[test]
fn an_unescaped_quote_costs_one_event() {
    let good = |name: &str| {
        format!(
            r#"{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":1,"dur":1,"args":{{"grid":[1,2],"inner":[{{"a":1}},{{"b":2}}]}}}}"#
        )
    };
    let bad = good(r#"x = Library("a", "b")"#);
    for place in 0..4 {
        for (form, end) in [
            ("[", "]"),
            ("[", ""),
            ("{\"traceEvents\":[", "],\"traceName\":\"t\"}"),
            ("{\"traceEvents\":[", "\n  ]\n}"),
        ] {
            let mut events = [good("a"), good("b"), good("c")].to_vec();
            events.insert(place, bad.clone());
            let text = format!("{form}{}{end}", events.join(",\n"));
            let run = import(text.as_bytes(), 1).expect("readable");
            assert_eq!(names(&run), ["a", "b", "c"], "{text}");
            // Without an end, a bad last event cannot be told from one that breaks off.
            let lost = count(&run, "bad_event") + count(&run, "truncated");
            assert_eq!(lost, 1, "{text}: {:?}", run.stats);
        }
    }
}

/// A complete event, whose name may be one that makes it unreadable.
fn complete(name: &str) -> String {
    format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":1,"dur":1,"args":{{"k":[{{"a":1}}]}}}}"#)
}

const BAD_NAME: &str = r#"x = L("a", "b")"#;

/// Every event is read but these, wherever blocks end; each is counted.
#[test]
fn damage_at_the_end_of_a_block_costs_the_damaged_events() {
    let is_bad = |at: &usize| [3, 7, 8, 9, 20].contains(at);
    let name = |at: usize| if is_bad(&at) { BAD_NAME.to_owned() } else { format!("e{at}") };
    let events: Vec<String> = (0..24).map(|at| complete(&name(at))).collect();
    let good: Vec<String> = (0..24).filter(|at| !is_bad(at)).map(name).collect();
    for (begin, end) in [("[", "]"), ("{\"traceEvents\":[", "],\"traceName\":\"t\"}"), ("{\"traceEvents\":[", "\n]}\n")]
    {
        let text = format!("{begin}{}{end}", events.join(",\n"));
        for block_bytes in (40..900).step_by(3) {
            let run = import_in_blocks(text.as_bytes(), block_bytes, 1 + block_bytes % 2).expect("readable");
            assert_eq!(names(&run), good, "{block_bytes}");
            assert_eq!((count(&run, "bad_event"), count(&run, "truncated")), (5, 0), "{block_bytes}");
            assert_eq!(count(&run, "unaccounted"), 0, "{block_bytes}");
        }
    }
}

/// Each damaged event is counted on its own, and takes no neighbour with it.
#[test]
fn neighbours_of_damage_are_kept() {
    let [a, b] = ["a", "b"].map(complete);
    let bad = complete(BAD_NAME);
    let check = |middle: &str, bad_events: u64, commas: u64| {
        for text in [format!("[{a}{middle}{b}]"), format!("{{\"traceEvents\":[{a}{middle}{b}],\"x\":1}}")] {
            let run = import(text.as_bytes(), 1).expect("readable");
            assert_eq!(names(&run), ["a", "b"], "{text}: {:?}", run.stats);
            assert_eq!((count(&run, "bad_event"), count(&run, "comma_missing")), (bad_events, commas), "{text}");
            assert_eq!(count(&run, "truncated") + count(&run, "broken_container"), 0, "{text}: {:?}", run.stats);
        }
    };
    check(&format!(",{bad},{bad},{bad},"), 3, 0);
    check("$", 0, 1);
    check("}", 0, 1);
    // A missing bracket, one that is another character, one that is missing at the beginning.
    check(&format!(",{},", &bad.replace(BAD_NAME, "c")[..bad.len() - BAD_NAME.len()]), 1, 0);
    check(",{\"ph\":\"X\",\"args\":{\"name\":\"p\"}y,", 1, 0);
    check(",\"ph\":\"X\",\"name\":\"c\",\"ts\":5},", 1, 0);
    // A quote that is missing in front of a bracket, in members and in arguments.
    check(",{\"ph\":\"X\",\"name\":\"z\",\"ts\":5,\"dur*:1},\n", 1, 0);
    check(",{\"ph\":\"X\",\"args\":{\"External id\":1,\"Sequ649\n  }\n },\n ", 1, 0);
    // What looks like an event in arguments is none.
    check(",{\"ph\":\"X\" \"args\":{\"ph\":\"X\",\"k\":[{\"ph\":\"X\",\"ts\":1}]}},", 1, 0);
}

/// Tens of thousands of damaged events take no longer than their bytes.
#[test]
fn much_damage_is_read_in_linear_time() {
    let text = format!("[{},{}]", complete("a"), vec![complete(BAD_NAME); 20_000].join(",\n"));
    for block_bytes in [4_000, 100_000, 8 << 20] {
        let run = import_in_blocks(text.as_bytes(), block_bytes, 2).expect("readable");
        assert_eq!((names(&run).len(), count(&run, "bad_event")), (1, 20_000), "{block_bytes}");
    }
    // Brackets that open and never close, and objects that are no events.
    for debris in ["{\"a\":[1,", "[", "{\"ph\":", "{\"a\":{\"b\":1}},"] {
        let text = format!("[{},{} {},{}]", complete("a"), complete(BAD_NAME), debris.repeat(30_000), complete("b"));
        let run = import_in_blocks(text.as_bytes(), 50_000, 2).expect("readable");
        assert!(!names(&run).is_empty(), "{debris}");
    }
}

#[test]
fn what_follows_the_end_is_read_or_counted() {
    let [a, b] = ["a", "b"].map(complete);
    let check = |text: String, expected: &[&str], what: &str| {
        for block_bytes in [50, 1_000] {
            let run = import_in_blocks(text.as_bytes(), block_bytes, 1).expect("readable");
            assert_eq!(names(&run), expected, "{text}");
            assert_eq!(count(&run, what), 1, "{text}: {:?}", run.stats);
        }
    };
    check(format!("[{a}]\n[{b}]\n"), &["a", "b"], "several_containers");
    check(format!("[{a}],{b}]"), &["a", "b"], "several_containers");
    check(format!("{{\"traceEvents\":[{a}]}}\n{{\"traceEvents\":[{b}]}}"), &["a", "b"], "several_containers");
    check(format!("[{a}] and so on"), &["a"], "broken_container");
    check(format!("{{\"traceEvents\":[{a}]}}]"), &["a"], "broken_container");
    let run = import(format!("[{}]", format!("[{a}]").repeat(100)).replace("[[", "[").as_bytes(), 1).expect("readable");
    assert_eq!((names(&run).len(), count(&run, "broken_container")), (64, 1));
}

/// A damaged last event ends with its array, not at a bracket in its arguments nor in the next array.
#[test]
fn a_damaged_last_event_hides_nothing() {
    let [a, b, c] = ["a", "b", "c"].map(complete);
    let bad = complete(BAD_NAME);
    for between in ["", "\"displayTimeUnit\":\"ms\",\"traceName\":\"n\","] {
        let text =
            format!("{{\"traceEvents\":[{a},{bad}],{between}\"traceEvents\":[{b},{c}],\"baseTimeNanoseconds\":5}}");
        for block_bytes in [60, 5_000] {
            let run = import_in_blocks(text.as_bytes(), block_bytes, 1).expect("readable");
            assert_eq!(names(&run), ["a", "b", "c"], "{text}");
            assert_eq!(count(&run, "bad_event"), 1, "{text}: {:?}", run.stats);
            assert!(run.info.args.contains_key("baseTimeNanoseconds"), "{text}");
        }
    }
}

/// Files of a directory, by name and text.
fn directory(files: &[(&str, String)]) -> (tempfile::TempDir, Vec<Source>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = |(name, text): &(&str, String)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("room");
        Source::open(&path, None).expect("it was just written")
    };
    let sources = files.iter().map(open).collect();
    (folder, sources)
}

#[test]
fn ranks_are_known_whatever_the_order_of_keys() {
    let event = r#"{"dur":5,"ts":1,"tid":1,"pid":1,"name":"a","cat":"cpu_op","ph":"X"}"#;
    let huge = format!(r#""log":["{}"]"#, "x".repeat(300_000));
    let rank = |rank: i64| format!(r#""distributedInfo":{{"rank":{rank}}},"schemaVersion":1"#);
    let texts = [
        format!(r#"{{{},"traceEvents":[{event}]}}"#, rank(1)),
        format!(r#"{{"traceEvents":[{event}],{}}}"#, rank(2)),
        format!(r#"{{{huge},{},"traceEvents":[{event}]}}"#, rank(3)),
        format!(r#"{{"traceEvents":[{event}],{},{huge}}}"#, rank(4)),
    ];
    // What a file says of itself goes before its name.
    let names = ["worker4.json", "worker3.json", "b.json", "a.json"];
    let files: Vec<_> = names.into_iter().zip(texts).collect();
    let (_folder, sources) = directory(&files);
    assert_eq!(sources.iter().map(|source| header::place(source).rank).collect::<Vec<_>>(), [1, 2, 3, 4].map(Some));
    assert!(Chrome.is_one_run(&sources));
}

#[test]
fn clocks_with_and_without_a_base_are_not_mixed() {
    let text = |more: &str| format!(r#"{{"schemaVersion":1{more},"traceEvents":[{}]}}"#, complete("a"));
    let base = r#","baseTimeNanoseconds":1700000000000000000"#;
    for (second, missing) in [("", 1), (base, 0)] {
        let (folder, sources) = directory(&[("rank0.json", text(base)), ("rank1.json", text(second))]);
        let run = read_with(1, |context| Chrome.import_directory(folder.path(), &sources, context)).expect("readable");
        assert_eq!(count(&run, "base_time_missing"), missing);
        let starts = batches(&run, Table::Tasks).iter().flat_map(|batch| {
            batch["start"].as_primitive::<datafusion::arrow::datatypes::Int64Type>().values().to_vec()
        });
        assert_eq!(starts.collect::<Vec<_>>(), [0, 0]);
    }
}

#[test]
fn pythons_ids_count_within_a_process() {
    let function = |pid: u32, id: u32, parent: &str, ts: u32| {
        format!(
            r#"{{"ph":"X","cat":"python_function","name":"f","pid":{pid},"tid":1,"ts":{ts},"dur":1,"args":{{"Python id":{id},"Python parent id":{parent}}}}}"#
        )
    };
    let parents = |functions: &[String]| {
        let run = import(format!("[{}]", functions.join(",")).as_bytes(), 1).expect("readable");
        let columns = batches(&run, Table::Tasks).iter().filter_map(|batch| batch.column_by_name("parent"));
        let of = |column: &Arc<dyn datafusion::arrow::array::Array>| {
            column.as_primitive::<datafusion::arrow::datatypes::Int64Type>().iter().collect::<Vec<_>>()
        };
        let parents: Vec<Option<i64>> = columns.flat_map(of).collect();
        (parents, count(&run, "python_parent_cycle"), count(&run, "python_parent_unknown"))
    };
    let two = [function(1, 1, "null", 1), function(1, 2, "1", 3), function(2, 1, "null", 1), function(2, 2, "1", 3)];
    assert_eq!(parents(&two), (vec![None, Some(0), None, Some(2)], 0, 0));
    let circle = [function(1, 1, "2", 1), function(1, 2, "1", 3), function(1, 3, "99", 5), function(1, 4, "3", 7)];
    assert_eq!(parents(&circle), (vec![None, None, None, Some(2)], 2, 1));
}

#[test]
fn functions_of_python_that_wait_are_no_work() {
    let task = |category: &str, name: &str| {
        format!(r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":1,"ts":1,"dur":1}}"#)
    };
    let wait = "threading.py(359): wait";
    let tasks = [task("python_function", "run.py(3): run"), task("python_function", wait), task("cpu_op", wait)];
    let run = import(format!("[{}]", tasks.join(",")).as_bytes(), 1).expect("readable");
    let roles = batches(&run, Table::Tasks).iter().flat_map(|batch| {
        let roles = batch["role"].as_dictionary::<datafusion::arrow::datatypes::Int32Type>();
        let words = roles.values().as_string::<i32>();
        roles.keys().iter().flatten().map(|key| words.value(key as usize).to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(roles.collect::<Vec<_>>(), ["work", "wait", "work"]);
}

/// In traces that a tool merged, correlations of several processes collide.
#[test]
fn launches_of_several_processes_are_told_to_be_ambiguous() {
    let task = |cat: &str, pid: u32| {
        format!(
            r#"{{"ph":"X","cat":"{cat}","name":"n","pid":{pid},"tid":1,"ts":1,"dur":1,"args":{{"correlation":5}}}}"#
        )
    };
    let check = |pids: [u32; 2], expected: u64| {
        let calls = pids.map(|pid| task("cuda_runtime", pid)).join(",");
        let text = format!("[{calls},{},{}]", task("kernel", 0), task("kernel", 1));
        assert_eq!(count(&import(text.as_bytes(), 1).expect("readable"), "launch_ambiguous"), expected);
    };
    check([7, 8], 2);
    check([7, 7], 0);
}

#[test]
fn events_are_recognised_behind_much_else() {
    let recognises = |text: &str| Chrome.recognise(&Source::of_bytes(text.as_bytes()).expect("bytes"));
    let long = "x".repeat(70_000);
    let event = complete("a");
    for text in [
        format!(r#"[{{"args":{{"s":"{long}"}},"ph":"X","name":"a"}}]"#),
        format!(r#"[{{"qh":"X","name":"a"}},{event}]"#),
        format!(r#"{{"f":"{long}","INFO":"a "quoted" word","traceEvents":[{event}]}}"#),
        format!("[{}{event}]", "{},".repeat(40_000)),
        format!(r#"[{{"name":"x "q"","ph":"X"}},{event}]"#),
        "[]".to_owned(),
    ] {
        assert!(recognises(&text), "{}", &text[..text.len().min(60)]);
    }
    for text in [
        r#"[{"a":1},{"b":2}]"#.to_owned(),
        r#"[{"pH":"7"}]"#.to_owned(),
        format!(r#"{{"a":{{"ph":"7"}},"b":"{long}"}}"#),
        r#"{"a":{"ph":"7"}"#.to_owned(),
        "[1,2]".to_owned(),
    ] {
        assert!(!recognises(&text), "{}", &text[..text.len().min(60)]);
    }
}

#[test]
fn values_that_cannot_be_kept_are_counted() {
    let text = r#"[{"ph":"C","name":"c","pid":1,"ts":1.0005,"args":{"v":9007199254740993}},
        {"ph":"C","name":"c","pid":1,"ts":2,"args":{"v":1e999,"w":"1e999"}},
        {"ph":"s","name":"f","id":1,"ts":1,"args":{"bytes":77}},{"ph":"f","name":"f","id":1,"ts":1}]"#;
    let run = import(text.as_bytes(), 1).expect("readable");
    let counts = ["rounded", "value_rounded", "bad_counter", "flow_args_left_out"].map(|what| count(&run, what));
    assert_eq!(counts, [1, 1, 2, 1]);
    assert_eq!(count(&run, "unaccounted"), 0);
}

#[test]
fn odd_members_join_the_arguments() {
    let text = r#"[{"ph":"X","name":"a","ts":1,"dur":1,"caf\u00e9":6,"my\"key":5},
        {"\u0070h":"\u0058","name":"b","ts":1,"dur":1,"tts":.5,"tdur":+3}]"#;
    let run = import(text.as_bytes(), 1).expect("readable");
    let args: Vec<String> = batches(&run, Table::Tasks)
        .iter()
        .flat_map(|batch| batch["args"].as_string::<i32>().iter().flatten().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert_eq!(args, ["{\"caf\u{e9}\":6,\"my\\\"key\":5}", r#"{"tts":0.5,"tdur":3}"#]);
}

/// Threads that are called like asynchronous lanes, and names with the separator of keys, are locations of their own.
#[test]
fn locations_do_not_collide() {
    let text = r#"[{"ph":"X","name":"t","pid":1,"tid":"async foo","ts":0,"dur":10},
        {"ph":"b","name":"foo","id":1,"pid":1,"ts":1},{"ph":"e","name":"foo","id":1,"pid":1,"ts":2},
        {"ph":"b","cat":"a\u0001b","name":"c","id":2,"pid":1,"ts":3},{"ph":"b","cat":"a","name":"b","id":2,"pid":1,"ts":3}]"#;
    let run = import(text.as_bytes(), 1).expect("readable");
    let locations: BTreeSet<String> = batches(&run, Table::Tasks)
        .iter()
        .flat_map(|batch| {
            let column = batch["location"].as_dictionary::<Int32Type>();
            let words = column.values().as_string::<i32>();
            column.keys().iter().flatten().map(|key| words.value(key as usize).to_owned()).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(locations.len(), 4, "{locations:?}");
}

#[test]
fn memory_does_not_follow_sizes_that_the_text_claims() {
    let deep = format!(
        "[{{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{}1{}}}]",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert_eq!(names(&import(deep.as_bytes(), 1).expect("readable")), ["a"]);
    let digits = format!("[{{\"ph\":\"X\",\"name\":\"a\",\"ts\":{},\"dur\":1}}]", "9".repeat(4_000));
    assert_eq!(count(&import(digits.as_bytes(), 1).expect("readable"), "bad_time"), 1);
}

/// A byte order mark is not read, and what is no UTF-8 becomes another number of bytes; places are those of the file all
/// the same.
#[test]
fn places_are_those_of_the_file() {
    let mut text = b"\xef\xbb\xbf[{\"ph\":\"X\",\"name\":\"".to_vec();
    text.extend_from_slice(&[0xff; 40]);
    text.extend_from_slice(b"\",\"ts\":1,\"dur\":1},\n");
    let bad = text.len();
    text.extend_from_slice(b"{\"ph\":\"X\",\"name\":\"b\",\"ts\":\"now\",\"dur\":1}]");
    let run = import(&text, 1).expect("readable");
    let example = run.stats.iter().find(|stat| stat.finding.what == "bad_time").map(|stat| stat.example.clone());
    assert!(example.as_deref().is_some_and(|example| example.starts_with(&format!("byte {bad}:"))), "{example:?}");
}

/// A flow finds the task around it behind any number of tasks that overlap each other.
#[test]
fn flows_are_bound_among_tasks_that_overlap() {
    let task = |name: &str, tid: u32, ts: u32, dur: u32| {
        format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#)
    };
    let mut events = vec![task("around", 1, 0, 10_000), task("target", 2, 6_000, 10)];
    events.extend((0..100).map(|at| task("overlaps", 1, 10 + at, 200)));
    for (phase, tid, ts) in [("s", 1, 5_000), ("f", 2, 5_000)] {
        events.push(format!(r#"{{"ph":"{phase}","name":"f","id":1,"pid":1,"tid":{tid},"ts":{ts}}}"#));
    }
    let run = import(format!("[{}]", events.join(",")).as_bytes(), 1).expect("readable");
    assert_eq!((count(&run, "overlap"), count(&run, "flow_unbound")), (99, 0));
}

/// An event of PyTorch's profiler. Ids below 1 are none.
#[derive(Debug, Clone)]
struct Profiled {
    category: &'static str,
    process: u8,
    start: i64,
    correlation: i64,
    external: i64,
}

impl Profiled {
    fn event(&self) -> String {
        let Profiled { category, process, start, correlation, external } = self;
        let name = if *category == "cuda_sync" { "Nothing" } else { category };
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":{process},"tid":1,"ts":{start},"dur":3,"args":{{"correlation":{correlation},"External id":{external}}}}}"#
        )
    }

    fn is_call(&self) -> bool {
        self.category == "cuda_runtime"
    }

    fn is_work(&self) -> bool {
        matches!(self.category, "kernel" | "gpu_memcpy")
    }
}

/// Kind, source and target of what belongs together, found by looking at all events for each.
fn naive_links(events: &[Profiled]) -> Vec<(String, i64, i64)> {
    let mut links = Vec::new();
    for (target, event) in events.iter().enumerate() {
        let is_sync = event.category == "cuda_sync";
        let mut calls: Vec<usize> = (0..events.len())
            .filter(|place| events[*place].is_call() && events[*place].correlation == event.correlation)
            .collect();
        calls.sort_by_key(|place| (events[*place].start, *place));
        let begun = calls.iter().rfind(|place| events[**place].start <= event.start);
        let call = begun.or(calls.first()).filter(|_| (is_sync || event.is_work()) && event.correlation > 0);
        if let Some(call) = call {
            links.push((if is_sync { "sync" } else { "launch" }.to_owned(), *call as i64, target as i64));
        }
        let mut operators = (0..events.len())
            .filter(|place| events[*place].category == "cpu_op" && events[*place].external == event.external);
        if event.is_work() && event.external > 0 {
            let first = operators.clone().next();
            let own = call.and_then(|call| operators.find(|place| events[*place].process == events[*call].process));
            links.extend(own.or(first).map(|operator| ("operator".to_owned(), operator as i64, target as i64)));
        }
    }
    links.sort();
    links
}

fn links(run: &Run) -> Vec<(String, i64, i64)> {
    let mut links = Vec::new();
    for batch in batches(run, Table::Links) {
        let kinds = batch["kind"].as_dictionary::<Int32Type>();
        let words = kinds.values().as_string::<i32>();
        let ends = |name: &str| batch[name].as_primitive::<Int64Type>().values().to_vec();
        for (key, (source, target)) in kinds.keys().values().iter().zip(ends("source").into_iter().zip(ends("target")))
        {
            links.push((words.value(*key as usize).to_owned(), source, target));
        }
    }
    links.sort();
    links
}

fn profiled() -> impl Strategy<Value = Profiled> {
    let categories = ["cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "cuda_sync"];
    let ids = || prop_oneof![-1..4i64, 0..30i64];
    (proptest::sample::select(categories.to_vec()), 1..4u8, 0..40i64, ids(), ids()).prop_map(
        |(category, process, start, correlation, external)| Profiled {
            category,
            process,
            start,
            correlation,
            external,
        },
    )
}

proptest! {
    /// Repeated ids, ids of several processes, any order: from calls to what they launched, from operators to their work.
    #[test]
    fn launches_and_operators_equal_a_naive_join(events in vec(profiled(), 1..60), threads in 1..3usize) {
        let texts: Vec<String> = events.iter().map(Profiled::event).collect();
        let trace = format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, texts.join(","));
        let run = import_in_blocks(trace.as_bytes(), 512, threads).expect("a trace");
        prop_assert_eq!(links(&run), naive_links(&events));
    }
}
