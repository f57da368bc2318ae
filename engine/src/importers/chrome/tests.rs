//! Damage: every cut and many flipped bytes of small texts end in an error with a place or in counted findings, and what
//! is left is valid.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

use super::*;
use crate::importers::ImportOptions;
use crate::tables::Table;
use crate::trace::Run;

/// Enough for any of the texts here, far too little for a count that somebody believes.
const MEMORY_BYTES: usize = 8 << 20;

const FIXTURES: [&str; 3] = ["phases.json", "kineto_tiny.json", "damaged.json"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/chrome").join(name)
}

fn import(bytes: &[u8], threads: usize) -> Result<Run, ImportError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room");
    let source = Source::open(file.path(), None)?;
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    let options = ImportOptions::new();
    let mut context = ImportContext::new(&options, threads, pool, 0);
    Chrome.import(&source, &mut context)?;
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

/// What is no UTF-8 becomes another number of bytes; places are those of the file all the same.
#[test]
fn places_are_those_of_the_file() {
    let mut text = b"[{\"ph\":\"X\",\"name\":\"".to_vec();
    text.extend_from_slice(&[0xff; 40]);
    text.extend_from_slice(b"\",\"ts\":1,\"dur\":1},\n");
    let bad = text.len();
    text.extend_from_slice(b"{\"ph\":\"X\",\"name\":\"b\",\"ts\":\"now\",\"dur\":1}]");
    let run = import(&text, 1).expect("readable");
    let example = run.stats.iter().find(|stat| stat.finding.what == "bad_time").map(|stat| stat.example.clone());
    assert!(example.as_deref().is_some_and(|example| example.starts_with(&format!("byte {bad}:"))), "{example:?}");
}
