//! Layouts and damage: files made here byte by byte, in every layout, cut everywhere and flipped.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::execution::memory_pool::GreedyMemoryPool;

use super::*;
use crate::importers::ImportOptions;
use crate::tables::Table;
use crate::trace::{Run, Severity};

const BLOCK: usize = 1024;
const TASK: &str = "dc_key{uint64_t};priority{int32_t};dc_dataid{uint32_t};tcid{uint32_t};trc{int32_t};k{int32_t}";

/// How a file is written.
#[derive(Debug, Clone, Copy)]
struct Layout {
    big_endian: bool,
    has_world: bool,
}

const LAYOUTS: [Layout; 4] = [
    Layout { big_endian: false, has_world: false },
    Layout { big_endian: true, has_world: false },
    Layout { big_endian: false, has_world: true },
    Layout { big_endian: true, has_world: true },
];

impl Layout {
    fn number(self, value: u64, bytes: usize) -> Vec<u8> {
        let mut number = value.to_le_bytes()[..bytes].to_vec();
        if self.big_endian {
            number.reverse();
        }
        number
    }

    fn i64(self, value: i64) -> Vec<u8> {
        self.number(value as u64, 8)
    }

    fn i32(self, value: i32) -> Vec<u8> {
        self.number(u64::from(value as u32), 4)
    }

    fn text(text: &str, bytes: usize) -> Vec<u8> {
        let mut text = text.as_bytes().to_vec();
        text.resize(bytes, 0);
        text
    }

    fn block(self, file: &mut Vec<u8>, kind: u8, next: i64, records: i64, payload: &[u8]) -> i64 {
        let at = file.len() as i64;
        file.extend([self.i64(at), self.i64(next), self.i64(records)].concat());
        file.push(kind);
        file.extend_from_slice(payload);
        assert!(payload.len() <= BLOCK - 25, "the block is full");
        file.resize(at as usize + BLOCK, 0);
        at
    }

    fn entry(self, name: &str, convertor: &str, info_bytes: i32) -> Vec<u8> {
        [
            Layout::text(name, 64),
            Layout::text("fill:#FF0000", 128),
            self.i32(convertor.len() as i32),
            self.i32(info_bytes),
            convertor.as_bytes().to_vec(),
            vec![0; 3],
        ]
        .concat()
    }

    fn event(self, key: u16, taskpool: u32, id: u64, time: i64, info: &[u8]) -> Vec<u8> {
        let flags = u64::from(!info.is_empty());
        [
            self.number(u64::from(key), 2),
            self.number(flags, 2),
            self.number(u64::from(taskpool), 4),
            self.number(id, 8),
            self.i64(time),
            info.to_vec(),
        ]
        .concat()
    }

    fn task_info(self, k: i32) -> Vec<u8> {
        [self.i64(0x7000), self.i32(5), self.i32(9), self.i32(3), self.i32(0), self.i32(k)].concat()
    }

    fn stream(self, name: &str, events: i64, first: i64) -> Vec<u8> {
        let infos = [self.i32(5), self.i32(1), b"th_id0".to_vec(), vec![0; 3]].concat();
        [self.i64(0), self.i64(events), Layout::text(name, 128), self.i64(first), self.i32(1), infos].concat()
    }

    /// Two streams: three tasks, of which the third never ends, in two blocks; a task of the runtime.
    fn file(self) -> Vec<u8> {
        let mut file = vec![0; BLOCK];
        let first = [self.entry("N/A", "", 0), self.entry("c::T", TASK, 28)].concat();
        let second = self.entry("PARSEC RUNTIME::PREPARE_INPUT", "", 0);
        let dictionary = self.block(&mut file, 2, 2 * BLOCK as i64, 2, &first);
        self.block(&mut file, 2, -1, 1, &second);
        let events =
            [self.event(2, 7, 1, 10, &[]), self.event(3, 7, 1, 20, &self.task_info(-1)), self.event(2, 7, 2, 30, &[])]
                .concat();
        let one = self.block(&mut file, 1, 4 * BLOCK as i64, 3, &events);
        let events = [self.event(3, 7, 2, 45, &self.task_info(2)), self.event(2, 7, 3, 50, &[])].concat();
        self.block(&mut file, 1, -1, 2, &events);
        let events = [self.event(4, u32::MAX, 0, 1, &[]), self.event(5, u32::MAX, 0, 9, &[])].concat();
        let two = self.block(&mut file, 1, -1, 2, &events);
        let long: String = std::iter::repeat_n("abcdefghij", 120).collect();
        let value = long.as_bytes();
        let head = [self.i32(4), self.i32(value.len() as i32), b"LONG".to_vec()].concat();
        // The writer counts 3 bytes more than it uses: so much of the value fits in front of the end.
        let here = BLOCK - 25 - head.len() - 3;
        let at = file.len() as i64;
        let infos = self.block(&mut file, 4, at + BLOCK as i64, 1, &[head, value[..here].to_vec()].concat());
        let second =
            [value[here..].to_vec(), self.i32(2), self.i32(3), b"np".to_vec(), b"abc".to_vec(), vec![0; 3]].concat();
        self.block(&mut file, 4, -1, 1, &second);
        let records =
            [self.stream("PaRSEC Thread 0 of VP 0 Bound on 0x1", 5, one), self.stream("Comm thread", 2, two)].concat();
        let streams = self.block(&mut file, 3, -1, 2, &records);

        let mut header = vec![0; 8];
        header.extend_from_slice(MAGIC);
        header.resize(40, 0);
        header.extend(self.i64(0x0123_4567_89ab_cdef));
        header.extend(self.i32(BLOCK as i32));
        header.extend(Layout::text("tiny", 128));
        header.extend(
            [self.i32(3), self.i64(dictionary), self.i32(2), self.i32(0), self.i64(infos), self.i32(1)].concat(),
        );
        if self.has_world {
            header.extend([self.i32(2), self.i32(2), self.i32(0), self.i64(streams)].concat());
        } else {
            header.extend([self.i32(2), self.i64(streams)].concat());
        }
        file[..header.len()].copy_from_slice(&header);
        file
    }
}

const MAGIC: &[u8] = file::MAGICS[0];

/// Imports bytes as if they were a file with a name of their own.
fn import(bytes: &[u8]) -> Result<Run, ImportError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room");
    let source = Source::open(file.path(), None)?;
    // Far too little for a count that somebody believes.
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(8 << 20));
    let options = ImportOptions::new();
    let mut context = ImportContext::new(&options, 2, pool, 0);
    Parsec.import(&source, &mut context)?;
    Ok(context.into_runs().remove(0))
}

fn tasks(run: &Run) -> Vec<String> {
    let mut tasks = Vec::new();
    for batch in run.tables.get(&Table::Tasks).into_iter().flatten() {
        let word = |column: &str, row| {
            let words =
                batch[column].as_dictionary::<Int32Type>().downcast_dict::<datafusion::arrow::array::StringArray>();
            words.and_then(|words| words.into_iter().nth(row).flatten().map(str::to_owned)).unwrap_or_default()
        };
        let text = |column: &str, row| {
            let texts = batch[column].as_string::<i32>();
            if texts.is_valid(row) { texts.value(row).to_owned() } else { "-".to_owned() }
        };
        let time = |column: &str, row| {
            let times = batch[column].as_primitive::<Int64Type>();
            times.is_valid(row).then(|| times.value(row)).map_or_else(|| "-".to_owned(), |time| time.to_string())
        };
        for row in 0..batch.num_rows() {
            tasks.push(format!(
                "{} {} {} {} {}..{} {}",
                word("location", row),
                word("name", row),
                word("role", row),
                text("id", row),
                time("start", row),
                time("finish", row),
                text("args", row)
            ));
        }
    }
    tasks
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

#[test]
fn every_layout_says_the_same() {
    for layout in LAYOUTS {
        let run = import(&layout.file()).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
        assert_eq!(
            tasks(&run),
            [
                r#"rank 1/stream 0 c::T work 7:3:1 10..20 {"taskpool_id":7,"tid":1,"dc_key":28672,"priority":5,"dc_dataid":9,"tcid":3,"trc":0,"k":-1}"#,
                r#"rank 1/stream 0 c::T work 7:3:2 30..45 {"taskpool_id":7,"tid":2,"dc_key":28672,"priority":5,"dc_dataid":9,"tcid":3,"trc":0,"k":2}"#,
                r#"rank 1/stream 0 c::T work 7:3:3 50..- {"taskpool_id":7,"tid":3}"#,
                "rank 1/stream 1 PARSEC RUNTIME::PREPARE_INPUT runtime - 1..9 -",
            ],
            "{layout:?}"
        );
        let args = &run.info.args;
        assert_eq!((args["LONG"].as_str().map(str::len), args["np"].as_str()), (Some(1200), Some("abc")), "{layout:?}");
        assert_eq!(run.info.program.as_deref(), Some("tiny"));
        let found: Vec<(&str, u64)> = run.stats.iter().map(|stat| (stat.finding.what, stat.count)).collect();
        assert_eq!(
            found,
            [("end_events", 3), ("rank_missing", 1), ("records_read", 7), ("unmatched_start", 1)],
            "{layout:?}"
        );
    }
}

#[test]
fn a_run_without_events_is_empty() {
    let layout = LAYOUTS[0];
    let mut file = layout.file();
    file[212..216].fill(0);
    file[216..224].copy_from_slice(&layout.i64(-3));
    let run = import(&file).expect("no streams");
    assert!(tasks(&run).is_empty() && !has_lost(&run), "{:?}", run.stats);
}

#[test]
fn every_prefix_is_an_error_or_says_what_is_missing() {
    for layout in [LAYOUTS[0], LAYOUTS[3]] {
        let bytes = layout.file();
        let whole = tasks(&import(&bytes).expect("whole"));
        for length in 0..bytes.len() {
            // Shorter than its magic it is nobody's file: the session says so.
            if length >= 33 {
                let cut = import(&bytes[..length]);
                assert_clear(&cut, &format!("{layout:?} cut at {length}"));
                if let Ok(run) = cut {
                    assert!(tasks(&run) == whole || has_lost(&run), "{layout:?} cut at {length}: {:?}", run.stats);
                }
            }
        }
    }
}

#[test]
fn a_cut_file_gives_its_chains_back() {
    let bytes = LAYOUTS[0].file();
    // Without infos and streams; the blocks of events are whole.
    let run = import(&bytes[..6 * BLOCK]).expect("events are there");
    assert_eq!(tasks(&run).len(), 4, "{:?}", run.stats);
    let lost: Vec<&str> =
        run.stats.iter().filter(|stat| stat.finding.severity == Severity::Lost).map(|stat| stat.finding.what).collect();
    assert_eq!(lost, ["chain_broken", "infos_missing", "streams_lost"]);
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
    let graph = b"digraph G {\nA_2_0 [shape=\"polygon\",label=\"<0/0> A(0)[0]<0> keys = {*} {tp: 2}\",tooltip=\"tpid=2:tcid=0:tcname=A:tid=0\"];\n\
                  A_2_0 -> A_2_1 [label=\"X=>X\",color=\"#00FF00\",style=\"dotted\"]\n}\n";
    for bytes in [LAYOUTS[0].file(), LAYOUTS[3].file(), graph.to_vec()] {
        for round in 0..1500 {
            let mut damaged = bytes.clone();
            for _ in 0..=round % 4 {
                // Most of a file is payload that nothing can be wrong with: aim at heads as often.
                let at = if round % 2 == 0 {
                    next(damaged.len())
                } else {
                    next(damaged.len() / BLOCK + 1) * BLOCK + next(64)
                };
                let bit = 1 << next(8);
                if let Some(byte) = damaged.get_mut(at) {
                    *byte ^= bit;
                }
            }
            if damaged.first() == Some(&b'd') || file::recognise(&damaged).is_some() {
                assert_clear(&import(&damaged), &format!("round {round}"));
            }
        }
    }
}

#[test]
fn what_is_no_finished_profile_is_told_apart() {
    let what = |bytes: &[u8]| match import(bytes) {
        Err(ImportError::Damaged { what, place, .. }) => format!("{place}: {what}"),
        other => panic!("{:?}", other.map(|run| run.stats)),
    };
    let whole = LAYOUTS[0].file();
    let mut killed = whole.clone();
    killed[8..33].fill(0);
    assert!(what(&killed).starts_with("byte 8: an unfinished trace: the run was killed"), "{}", what(&killed));
    assert!(
        what(&whole[..100]).starts_with("byte 100: it ends after 100 bytes, inside of the header"),
        "{}",
        what(&whole[..100])
    );
    let mut swapped = whole.clone();
    swapped[40..48].reverse();
    assert!(
        what(&swapped).contains("read as big endian, which the byte order mark (byte 40) asks for"),
        "{}",
        what(&swapped)
    );
    let mut cycle = whole;
    cycle[4 * BLOCK + 8..4 * BLOCK + 16].copy_from_slice(&LAYOUTS[0].i64(3 * BLOCK as i64));
    let run = import(&cycle).expect("each block once");
    assert!(run.stats.iter().any(|stat| stat.finding.what == "chain_cycle"), "{:?}", run.stats);
}

#[test]
fn ranks_stand_at_the_end_of_names() {
    let check = |stem, base, rank| assert_eq!(base_and_rank(stem), (base, rank), "{stem}");
    check("chol16-1", "chol16", Some(1));
    check("run-2-13", "run-2", Some(13));
    check("byte-order", "byte-order", None);
    check("plain", "plain", None);
    check("-1", "-1", None);
    check("x-99999999999999999999", "x-99999999999999999999", None);
}

/// Files that profile2h5 has converted: none can be made here, so a recorded one is damaged.
#[cfg(feature = "hdf5")]
mod converted {
    use super::*;

    fn recorded() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/parsec/chol8-1r/chol8.ptt-v2.h5.zst");
        zstd::decode_all(std::fs::File::open(path).expect("a fixture")).expect("zstd")
    }

    fn import(bytes: Vec<u8>) -> Result<Run, ImportError> {
        let source = Source::of_bytes(bytes)?;
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
        let options = ImportOptions::new();
        let mut context = ImportContext::new(&options, 1, pool, 0);
        Parsec.import(&source, &mut context)?;
        Ok(context.into_runs().remove(0))
    }

    fn assert_sound(result: &Result<Run, ImportError>, what: &str) {
        // A filter that nobody has, values that are objects, a shape that is too large.
        if !matches!(result, Err(ImportError::Unusable { .. } | ImportError::Memory { .. })) {
            assert_clear(result, what);
        }
        if let Ok(run) = result {
            assert_eq!(crate::trace::faults(run), Vec::<String>::new(), "{what}");
        }
    }

    /// The length that the superblock tells.
    fn mend(bytes: &mut [u8]) {
        let length = bytes.len() as u64;
        bytes[40..48].copy_from_slice(&length.to_le_bytes());
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let whole = recorded();
        let rows = tasks(&import(whole.clone()).expect("whole"));
        assert_eq!(rows.len(), 510);
        for step in 1..40 {
            let length = whole.len() * step / 40 + step;
            let mut cut = whole[..length.min(whole.len() - 1)].to_vec();
            match import(cut.clone()) {
                Err(ImportError::Damaged { what, place, .. }) => {
                    assert_eq!(
                        (what, place),
                        (
                            format!("it ends after {} of its {} bytes", cut.len(), whole.len()),
                            format!("byte {}", cut.len())
                        )
                    );
                }
                other => panic!("{length}: {:?}", other.map(|run| run.stats)),
            }
            mend(&mut cut);
            let mended = import(cut);
            assert_sound(&mended, &format!("mended at {length}"));
            if let Ok(run) = &mended {
                assert!(tasks(run) == rows || has_lost(run), "mended at {length}: {:?}", run.stats);
            }
        }
    }

    #[test]
    fn flipped_bytes_are_an_error_or_other_tables() {
        let whole = recorded();
        // Nearly all of it is room that was never used.
        let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) as usize % below
        };
        for round in 0..60 {
            let mut damaged = whole.clone();
            for _ in 0..=round % 4 {
                let at = (used[next(used.len())] + next(3)).min(whole.len() - 1);
                damaged[at] = if round % 2 == 0 { damaged[at] ^ 1 << next(8) } else { next(256) as u8 };
            }
            if Source::of_bytes(damaged.clone()).is_ok_and(|source| Content::of(&source) == Some(Content::Ptt)) {
                assert_sound(&import(damaged), &format!("round {round}"));
            }
        }
    }
}
