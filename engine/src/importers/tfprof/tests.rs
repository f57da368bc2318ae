//! Damage: every cut and many flipped bytes of the small fixtures end in an error with a place or in counted findings.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

use super::*;
use crate::tables::Table;
use crate::trace::{Budget, Run, Severity, Spill};

/// Enough for any of the fixtures, far too little for a count that somebody believes.
const MEMORY_BYTES: usize = 8 << 20;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tfprof").join(name)
}

fn import_file(path: &Path) -> Result<Run, ImportError> {
    let source = Source::open(path, None)?;
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    let options = ImportOptions::new();
    let mut context = ImportContext::new(&options, 2, pool, 0);
    Tfprof.import(&source, &mut context)?;
    Ok(context.into_runs().remove(0))
}

/// Imports bytes as if they were a file with a name of their own (so that no graph lies beside it).
fn import(bytes: &[u8]) -> Result<Run, ImportError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room");
    import_file(file.path())
}

fn tasks(run: &Run) -> usize {
    run.tables.get(&Table::Tasks).map_or(0, |batches| batches.iter().map(|batch| batch.num_rows()).sum())
}

fn has_lost(run: &Run) -> bool {
    run.stats.iter().any(|stat| stat.finding.severity == Severity::Lost)
}

fn assert_clear(result: &Result<Run, ImportError>, what: &str) {
    match result {
        Ok(run) => {
            assert!(run.stats.iter().all(|stat| stat.finding.what != "unaccounted"), "{what}: {:?}", run.stats);
        }
        Err(ImportError::Damaged { place, .. }) => assert!(!place.is_empty(), "{what}"),
        Err(ImportError::Empty { .. }) => {}
        Err(other) => panic!("{what}: {other}"),
    }
}

const SMALL: [&str; 17] = [
    "zero_40.tfp",
    "zero_40.json",
    "zero_25.json",
    "zero_41.tfp",
    "execs_40.tfp",
    "execs_40.json",
    "execs_41.tfp",
    "nested_40.tfp",
    "nested_40.json",
    "nested_40.dot",
    "nested_41.tfp",
    "nested_25.json",
    "names_40.tfp",
    "names_40.json",
    "names_41.tfp",
    "loop_30_tfprofpy.tfp",
    "loop_41_named.json",
];

#[test]
fn every_prefix_is_an_error_or_says_what_is_missing() {
    for name in SMALL {
        let bytes = std::fs::read(fixture(name)).expect(name);
        let whole = import(&bytes).expect(name);
        assert!(!has_lost(&whole) || name.ends_with(".dot"), "{name}: {:?}", whole.stats);
        for length in 0..bytes.len() {
            let cut = import(&bytes[..length]);
            assert_clear(&cut, &format!("{name} cut at {length}"));
            // Less than all of it must not look like all of it.
            if let Ok(run) = cut {
                assert!(tasks(&run) == tasks(&whole) || has_lost(&run), "{name} cut at {length}: {:?}", run.stats);
            }
        }
    }
}

#[test]
fn flipped_bytes_are_an_error_or_other_tables() {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    for name in SMALL {
        let bytes = std::fs::read(fixture(name)).expect(name);
        for round in 0..300 {
            let mut damaged = bytes.clone();
            let flips = 1 + round % 4;
            for _ in 0..flips {
                let at = next(damaged.len());
                damaged[at] ^= 1 << next(8);
            }
            assert_clear(&import(&damaged), &format!("{name}, round {round}: {damaged:?}"));
        }
    }
}

fn damage(result: Result<Run, ImportError>) -> (String, String) {
    match result {
        Err(ImportError::Damaged { place, what, .. }) => (place, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn counts_that_no_file_can_hold_are_refused() {
    let count = import_file(&fixture("bad_count_40.tfp"));
    let (place, what) = damage(count);
    assert_eq!(place, "byte 24");
    assert_eq!(what, "executor 0 says it has 1152921504606846976 workers; 718 bytes follow");
    let mut tasks = std::fs::read(fixture("execs_40.tfp")).expect("a fixture");
    // 8 executors, 24 head, 3 × 8 idle workers, 8 levels: here is the number of tasks.
    tasks[64..72].copy_from_slice(&(1u64 << 50).to_le_bytes());
    let (place, what) = damage(import(&tasks));
    assert_eq!(place, "byte 64");
    assert_eq!(what, "level 0 of worker 3 of executor 0 says it has 1125899906842624 tasks");
}

#[test]
fn versions_and_garbage_are_refused_with_their_place() {
    let (place, what) = damage(import_file(&fixture("bad_version_41.tfp")));
    assert_eq!((place.as_str(), what.as_str()), ("byte 4", "TFPX version 9; version 1 is known"));
    for name in ["execs_40.tfp", "execs_41.tfp", "execs_40.json"] {
        let mut bytes = std::fs::read(fixture(name)).expect(name);
        let end = bytes.len();
        bytes.extend_from_slice(b"{garbage");
        let (place, _) = damage(import(&bytes));
        assert_eq!(place, format!("byte {end}"), "{name}");
    }
}

#[test]
fn truncated_compressed_files_keep_what_is_whole() {
    let bytes = std::fs::read(fixture("wavefront_40.tfp")).expect("a fixture");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&bytes).expect("memory");
    let packed = packer.finish().expect("memory");
    let run = import(&packed[..packed.len() / 2]).expect("some tasks are whole");
    assert!(has_lost(&run) && (1..576).contains(&tasks(&run)), "{:?}", run.stats);
    // The tasks are whole, the checksum behind them is not.
    let run = import(&packed[..packed.len() - 3]).expect("all tasks are whole");
    assert!(has_lost(&run) && tasks(&run) == 576, "{:?}", run.stats);
    let run = import(&packed).expect("whole");
    assert!(!has_lost(&run) && tasks(&run) == 576);
}

#[test]
fn a_graph_is_recognised_as_companion_by_content() {
    let siblings = ["wavefront_40.tfp", "wavefront_40.json", "wavefront_40.dot"].map(fixture).to_vec();
    assert_eq!(Tfprof.companions_among(&siblings), [siblings[2].clone()]);
    assert!(Tfprof.companions_among(&siblings[2..]).is_empty());
}

fn count(run: &Run, what: &str) -> u64 {
    run.stats.iter().filter(|stat| stat.finding.what == what).map(|stat| stat.count).sum()
}

fn nested() -> (String, usize) {
    let path = fixture("nested_40.json");
    let whole = tasks(&import_file(&path).expect("a fixture"));
    (std::fs::read_to_string(path).expect("text"), whole)
}

/// Whether more is said than that the file was read.
fn is_told(run: &Run) -> bool {
    run.stats.iter().any(|stat| stat.finding.severity != Severity::Info)
}

#[test]
fn no_damaged_byte_loses_a_task_untold() {
    let (text, whole) = nested();
    let check = |damaged: &[u8], what: String| {
        let result = import(damaged);
        assert_clear(&result, &what);
        if let Ok(run) = result {
            assert!(tasks(&run) == whole || is_told(&run), "{what}: {} tasks, {:?}", tasks(&run), run.stats);
        }
    };
    // Every fifth place is enough: keys, names and types are longer.
    for at in (0..text.len()).step_by(5) {
        for flip in [1, 0x20] {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= flip;
            check(&damaged, format!("byte {at} ^ {flip}"));
        }
        let rest = text.get(at + 19..).unwrap_or_default();
        check(format!("{}{rest}", &text[..at]).as_bytes(), format!("19 bytes gone at {at}"));
    }
}

#[test]
fn a_name_that_runs_over_a_worker_says_so() {
    let (text, whole) = nested();
    let at = text.find("\"}]},{\"worker\"").expect("a second lane");
    let run = import(format!("{}\u{2}{}", &text[..at], &text[at + 1..]).as_bytes()).expect("some tasks");
    assert_eq!((tasks(&run), count(&run, "task_in_name"), count(&run, "worker_in_name")), (whole - 1, 1, 1));
    assert!(has_lost(&run));
}

#[test]
fn keys_that_are_damaged_or_foreign_are_counted() {
    let (text, whole) = nested();
    let (before, last) = text.split_at(text.rfind("\"level\"").expect("levels"));
    let without_data = import(format!("{before}{}", last.replacen("\"data\"", "\"da4a\"", 1)).as_bytes());
    let run = without_data.expect("the other lanes are whole");
    assert!(tasks(&run) < whole && has_lost(&run));
    assert_eq!((count(&run, "worker_without_data"), count(&run, "foreign_key")), (1, 1));
    let without_level = import(format!("{before}{}", last.replacen("\"level\"", "\"leve1\"", 1)).as_bytes());
    let run = without_level.expect("all tasks are whole");
    assert_eq!((tasks(&run), count(&run, "worker_without_level")), (whole, 1));
    let several = std::fs::read_to_string(fixture("execs_40.json")).expect("text");
    let (before, last) = several.split_at(several.rfind("\"executor\"").expect("executors"));
    let last = last.replacen("\"data\"", "\"da4a\"", 1).replacen("\"executor\"", "\"execut0r\"", 1);
    let run = import(format!("{before}{last}").as_bytes()).expect("the other executors are whole");
    assert_eq!((has_lost(&run), count(&run, "executor_without_data")), (true, 1));
    let in_tasks = text.replace("{\"span\"", "{\"v\":[{}],\"span\"");
    let run = import(in_tasks.as_bytes()).expect("JSON");
    assert_eq!((tasks(&run), count(&run, "foreign_key")), (whole, whole as u64));
    assert!(!is_told(&run), "{:?}", run.stats);
}

/// Other keys may stand before, between and behind ours, and be longer than what is looked at first.
#[test]
fn foreign_keys_do_not_hide_a_trace() {
    let (text, whole) = nested();
    let long = format!("[{}0]", "{\"a\":\"}]\\\"\"},".repeat(20_000));
    let options = ImportOptions::new();
    for value in ["1", long.as_str()] {
        for (ours, anew) in [
            ("{\"executor\":", format!("{{\"v\":{value},\"executor\":")),
            (",\"data\":[{\"worker\"", format!(",\"v\":{value},\"data\":[{{\"worker\"")),
            ("{\"worker\":0", format!("{{\"v\":{value},\"worker\":0")),
            ("{\"executor\":\"0\",\"data\":[{\"worker\":0", format!("{{\"data\":[{{\"v\":{value},\"worker\":0")),
        ] {
            assert!(text.contains(ours), "{ours}");
            let bytes = text.replacen(ours, &anew, 1).into_bytes();
            let run = import(&bytes).unwrap_or_else(|error| panic!("{ours}: {error}"));
            assert_eq!((tasks(&run), count(&run, "foreign_key")), (whole, 1), "{ours}");
            assert!(!is_told(&run), "{ours}: {:?}", run.stats);
            let source = Source::of_bytes(bytes).expect("bytes");
            let format = crate::importers::recognise(crate::importers::importers(), &source, &options, true)
                .map(|importer| importer.doc().name);
            assert_eq!(format, Some("tfprof"), "{ours}");
        }
    }
}

#[test]
fn a_disk_that_takes_no_blocks_is_an_error_that_names_its_folder() {
    let source = Source::open(&fixture("nested_40.tfp"), None).expect("a fixture");
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    let budget = Budget::from(Arc::clone(&pool)).spilling(Spill::new(PathBuf::from("/nowhere"), &pool, 0));
    let options = ImportOptions::new();
    let error = Tfprof.import(&source, &mut ImportContext::new(&options, 1, budget, 0)).expect_err("no such folder");
    let error = error.to_string();
    assert!(error.starts_with("/nowhere: rows that wait on disk"), "{error}");
}
