//! Damage: every cut and many flipped bytes of the small fixtures end in an error with a place or in counted findings.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

use super::*;
use crate::trace::{Run, Severity};

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
    assert!(Tfprof.is_companion(&siblings[2], &siblings));
    assert!(!Tfprof.is_companion(&siblings[0], &siblings));
    assert!(!Tfprof.is_companion(&siblings[2], &siblings[2..]));
}
