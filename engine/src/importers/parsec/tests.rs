//! Layouts and damage: files made here byte by byte, in every layout, truncated at every byte and with bytes flipped.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::execution::memory_pool::GreedyMemoryPool;

use super::*;
use crate::importers::importer::ImportOptions;
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

    fn stream(self, name: &str, thread: usize, events: i64, first: i64) -> Vec<u8> {
        let info = |text: String| [self.i32(5), self.i32(1), text.into_bytes(), vec![0; 3]].concat();
        let infos = [info(format!("th_id{thread}")), info("vp_id0".to_owned())].concat();
        [self.i64(0), self.i64(events), Layout::text(name, 128), self.i64(first), self.i32(2), infos].concat()
    }

    /// Number and first block of the dictionary, the infos and the streams.
    fn header(self, rank: i32, [dictionary, infos, streams]: [(i32, i64); 3]) -> Vec<u8> {
        let mut header = vec![0; 8];
        header.extend_from_slice(MAGIC);
        header.resize(40, 0);
        header.extend(self.i64(0x0123_4567_89ab_cdef));
        header.extend(self.i32(BLOCK as i32));
        header.extend(Layout::text("tiny", 128));
        header.extend([self.i32(dictionary.0), self.i64(dictionary.1), self.i32(infos.0), self.i32(0)].concat());
        header.extend([self.i64(infos.1), self.i32(rank)].concat());
        if self.has_world {
            header.extend([self.i32(2), self.i32(streams.0), self.i32(0), self.i64(streams.1)].concat());
        } else {
            header.extend([self.i32(streams.0), self.i64(streams.1)].concat());
        }
        header
    }

    /// A file of these types, whose keys count from 2, and of workers, whose events fit into a block.
    fn profile(self, rank: i32, types: &[(&str, &str, i32)], workers: &[Vec<Vec<u8>>]) -> Vec<u8> {
        let mut file = vec![0; BLOCK];
        let dictionary = self.block(&mut file, 2, 2 * BLOCK as i64, 1, &self.entry("N/A", "", 0));
        for (number, (name, convertor, info_bytes)) in types.iter().enumerate() {
            let next = if number + 1 < types.len() { (file.len() + BLOCK) as i64 } else { -1 };
            self.block(&mut file, 2, next, 1, &self.entry(name, convertor, *info_bytes));
        }
        let mut records = Vec::new();
        for (number, events) in workers.iter().enumerate() {
            let first = self.block(&mut file, 1, -1, events.len() as i64, &events.concat());
            let name = format!("PaRSEC Thread {number} of VP 0 Bound on 0x1");
            records.push(self.stream(&name, number, events.len() as i64, first));
        }
        let streams = match records.len() {
            0 => -1,
            count => self.block(&mut file, 3, -1, count as i64, &records.concat()),
        };
        let types = (types.len() as i32 + 1, dictionary);
        let header = self.header(rank, [types, (0, -1), (records.len() as i32, streams)]);
        file[..header.len()].copy_from_slice(&header);
        file
    }

    /// Start and end of a task of the first type, in taskpool 2.
    fn task(self, id: u64, from: i64, to: i64, k: i32) -> Vec<Vec<u8>> {
        vec![self.event(2, 2, id, from, &[]), self.event(3, 2, id, to, &self.task_info(k))]
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
            [self.stream("PaRSEC Thread 0 of VP 0 Bound on 0x1", 0, 5, one), self.stream("Comm thread", 1, 2, two)]
                .concat();
        let streams = self.block(&mut file, 3, -1, 2, &records);

        let header = self.header(1, [(3, dictionary), (2, infos), (2, streams)]);
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

/// Imports files as if they were those of a directory.
fn import_all(files: &[(&str, Vec<u8>)]) -> Vec<Run> {
    let folder = tempfile::tempdir().expect("a folder");
    let written = files.iter().map(|(name, bytes)| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("room");
        path
    });
    // An empty file is no source.
    let written: Vec<PathBuf> = written.collect();
    let opened = written.iter().filter_map(|path| Source::open(path, None).ok());
    let sources: Vec<Source> = opened.filter(|source| Parsec.recognise(source)).collect();
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(8 << 20));
    let options = ImportOptions::new();
    let mut context = ImportContext::new(&options, 2, pool, 0);
    let imported = match sources.as_slice() {
        [source] if !Parsec.is_one_run(&sources) => Parsec.import(source, &mut context),
        sources => Parsec.import_directory(folder.path(), sources, &mut context),
    };
    imported.expect("runs");
    context.into_runs()
}

/// The one run of these files.
fn run_of(files: &[(&str, Vec<u8>)]) -> Run {
    let mut runs = import_all(files);
    assert_eq!(runs.len(), 1);
    let run = Ok(runs.remove(0));
    assert_clear(&run, "the books");
    let Ok(run) = run else { unreachable!("it was one") };
    run
}

/// Columns of a table, a line for each row.
fn cells(run: &Run, table: Table, columns: &[&str]) -> Vec<String> {
    let mut cells = Vec::new();
    for batch in run.tables.get(&table).into_iter().flatten() {
        for row in 0..batch.num_rows() {
            let cell = |column: &&str| array_value_to_string(&batch[*column], row).expect("printable");
            cells.push(columns.iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    cells
}

/// Links by the ids and starts of their tasks.
fn links(run: &Run) -> Vec<String> {
    let tasks = cells(run, Table::Tasks, &["id", "start"]);
    let end = |position: &str| tasks[position.parse::<usize>().expect("a position")].clone();
    let rows = cells(run, Table::Links, &["source", "target", "name"]);
    let shown = rows.iter().map(|row| {
        let parts: Vec<&str> = row.split(' ').collect();
        format!("{} -> {} {}", end(parts[0]), end(parts[1]), parts[2])
    });
    shown.collect()
}

fn stat(run: &Run, what: &str) -> u64 {
    run.stats.iter().filter(|stat| stat.finding.what == what).map(|stat| stat.count).sum()
}

/// A node of class number 3 in taskpool 2, as the tasks of [`Layout::task`] are.
fn node(name: &str, class: &str, id: u64, thread: u32) -> String {
    format!(
        "{name} [shape=\"polygon\",label=\"<{thread}/0> {class}(0)[0]<0> keys = {{0}} {{tp: 2}}\",tooltip=\"tpid=2:tcid=3:tcname={class}:tid={id}\"];\n"
    )
}

fn edge(source: &str, target: &str) -> String {
    format!("{source} -> {target} [label=\"X=>Y\",color=\"#00FF00\",style=\"dashed\"]\n")
}

fn graph(statements: &[String]) -> Vec<u8> {
    format!("digraph G {{\n{}}}\n", statements.concat()).into_bytes()
}

const L: Layout = LAYOUTS[0];
const T: &[(&str, &str, i32)] = &[("c::T", TASK, 28)];

#[test]
fn a_rank_cut_in_its_header_stays_with_its_run() {
    let whole = L.profile(0, T, &[L.task(5, 10, 20, 0)]);
    let (profile, cut) = (("x-0.prof", whole.clone()), ("x-1.prof", whole[..100].to_vec()));
    let with_graph = run_of(&[profile.clone(), cut.clone(), ("x-0.dot", graph(&[node("T_2_0", "T", 5, 0)]))]);
    for (run, id) in [(with_graph, "T_2_0"), (run_of(&[profile, cut]), "2:3:5")] {
        assert_eq!(cells(&run, Table::Tasks, &["id", "start"]), [format!("{id} 10")]);
        assert_eq!(stat(&run, "file_not_read"), 1);
    }
}

#[test]
fn streams_behind_the_cut_are_found_by_their_chains() {
    let bytes = L.file();
    // The list has the first of two streams.
    let run = import(&bytes[..bytes.len() - BLOCK + 25 + 200]).expect("events are there");
    assert_eq!(tasks(&run), tasks(&import(&bytes).expect("whole")));
    assert_eq!(cells(&run, Table::Locations, &["name"])[1..], ["PaRSEC Thread 0 of VP 0 Bound on 0x1", ""]);
    assert_eq!(stat(&run, "streams_lost"), 1);
}

#[test]
fn tasks_of_a_rank_without_graph_are_found_by_their_numbers() {
    let types = [T[0], ("D", TASK, 28)];
    // The first type is learned from rank 0; the other, of DTD, has its id in its names.
    let rank_1 = [
        L.task(6, 30, 40, 1),
        L.task(7, 50, 60, 2),
        vec![L.event(4, 2, 9, 70, &[]), L.event(5, 2, 9, 80, &L.task_info(4))],
    ];
    let statements = [node("T_2_0", "T", 5, 0), edge("T_2_1", "T_2_0"), edge("D_2_9", "T_2_0"), edge("T_2_8", "T_2_0")];
    let run = run_of(&[
        ("x-0.prof", L.profile(0, &types, &[L.task(5, 100, 120, 0)])),
        ("x-0.dot", graph(&statements)),
        ("x-1.prof", L.profile(1, &types, &[rank_1.concat()])),
    ]);
    assert_eq!(
        cells(&run, Table::Tasks, &["id", "location", "start"]),
        [
            "T_2_0 rank 0/stream 0 100",
            "T_2_1 rank 1/stream 0 30",
            "2:3:7 rank 1/stream 0 50",
            "D_2_9 rank 1/stream 0 70",
            "T_2_8  ",
        ]
    );
    assert_eq!(links(&run)[..2], ["T_2_1 30 -> T_2_0 100 X=>Y", "D_2_9 70 -> T_2_0 100 X=>Y"]);
    assert_eq!((stat(&run, "dot_undeclared_found"), stat(&run, "dot_undeclared"), stat(&run, "not_in_dot")), (2, 1, 1));
}

#[test]
fn a_node_whose_line_was_cut_is_found_by_its_numbers() {
    let mut killed = graph(&[node("T_2_0", "T", 5, 0), edge("T_2_0", "T_2_1"), node("T_2_1", "T", 6, 0)]);
    killed.truncate(killed.len() - 40);
    let events = [L.task(5, 10, 20, 0), L.task(6, 30, 40, 1)].concat();
    let run = run_of(&[("x-0.prof", L.profile(0, T, &[events])), ("x-0.dot", killed)]);
    assert_eq!(cells(&run, Table::Tasks, &["id"]), ["T_2_0", "T_2_1"]);
    assert_eq!(links(&run), ["T_2_0 10 -> T_2_1 30 X=>Y"]);
}

#[test]
fn a_name_means_the_node_of_its_own_file() {
    // Ranks number their taskpools themselves.
    let statements = [node("T_2_0", "T", 0, 0), edge("T_2_0", "T_2_1"), node("T_2_1", "T", 1, 0)];
    let rank = |rank: i32, from: i64| {
        L.profile(rank, T, &[[L.task(0, from, from + 5, 0), L.task(1, from + 10, from + 15, 1)].concat()])
    };
    let run = run_of(&[
        ("x-0.prof", rank(0, 100)),
        ("x-0.dot", graph(&statements)),
        ("x-1.prof", rank(1, 200)),
        ("x-1.dot", graph(&statements)),
    ]);
    assert_eq!(links(&run), ["T_2_0 100 -> T_2_1 110 X=>Y", "T_2_0 200 -> T_2_1 210 X=>Y"]);
    assert_eq!((stat(&run, "dot_nodes_joined"), stat(&run, "dot_name_shared")), (4, 2));
}

#[test]
fn a_rank_without_profile_is_missing_and_has_no_workers() {
    let run = run_of(&[
        ("x-0.prof", L.profile(0, T, &[L.task(5, 10, 20, 0)])),
        ("x-0.dot", graph(&[node("T_2_0", "T", 5, 0)])),
        ("x-1.dot", graph(&[node("T_2_1", "T", 6, 1)])),
    ]);
    assert_eq!(
        cells(&run, Table::Locations, &["location", "kind"]),
        ["rank 0 process", "rank 0/stream 0 worker", "rank 1 process", "rank 1/VP 0/thread 1 thread"]
    );
    let missing = run.stats.iter().find(|stat| stat.finding.what == "rank_missing").expect("rank 1");
    assert_eq!((missing.count, &missing.example[..18]), (1, "rank 1 has a graph"));
}

#[test]
fn links_begin_at_the_execution_that_ends_last() {
    let workers = [L.task(5, 100, 1000, 0), L.task(5, 300, 400, 0), L.task(6, 1200, 1300, 1)];
    let run = run_of(&[
        ("x-0.prof", L.profile(0, T, &workers)),
        ("x-0.dot", graph(&[node("T_2_0", "T", 5, 0), edge("T_2_0", "T_2_1"), node("T_2_1", "T", 6, 2)])),
    ]);
    assert_eq!(links(&run), ["T_2_0 100 -> T_2_1 1200 X=>Y", "T_2_0 100 -> T_2_0 300 again"]);
}

#[test]
fn nodes_of_one_id_share_its_executions() {
    // By number, as T_2_2 tells that it is k.
    let workers = [[L.task(7, 300, 450, 1), L.task(8, 500, 600, 2)].concat(), L.task(7, 100, 200, 0)];
    let statements = [
        node("T_2_0", "T", 7, 0),
        edge("T_2_0", "T_2_1"),
        node("T_2_1", "T", 7, 0),
        edge("T_2_1", "T_2_2"),
        node("T_2_2", "T", 8, 0),
        node("T_2_5", "T", 7, 0),
    ];
    let run = run_of(&[("x-0.prof", L.profile(0, T, &workers)), ("x-0.dot", graph(&statements))]);
    assert_eq!(cells(&run, Table::Tasks, &["id", "start"]), ["T_2_1 300", "T_2_2 500", "T_2_0 100", "T_2_5 "]);
    assert_eq!(links(&run), ["T_2_0 100 -> T_2_1 300 X=>Y", "T_2_1 300 -> T_2_2 500 X=>Y"]);
    assert_eq!((stat(&run, "dot_nodes_of_one_id"), stat(&run, "dot_only"), stat(&run, "executed_again")), (3, 1, 0));
    // By thread, where names have no numbers.
    let statements = [node("T_2_a", "T", 7, 1), node("T_2_b", "T", 7, 0)];
    let workers = [L.task(7, 300, 450, 1), L.task(7, 100, 200, 0)];
    let run = run_of(&[("x-0.prof", L.profile(0, T, &workers)), ("x-0.dot", graph(&statements))]);
    assert_eq!(cells(&run, Table::Tasks, &["id", "start"]), ["T_2_b 300", "T_2_a 100"]);
}

#[test]
fn starts_that_share_an_end_both_give_back() {
    let taken = |id: u64, time: i64, size: i64| L.event(2, u32::MAX, id, time, &L.i64(size));
    let given = |id: u64, time: i64| L.event(3, u32::MAX, id, time, &[]);
    let events =
        vec![taken(1, 100, 64), taken(1, 110, 32), taken(2, 120, 8), given(1, 130), given(2, 140), given(1, 150)];
    let run = run_of(&[("x-0.prof", L.profile(0, &[("TASK_MEMORY", "size{int64_t}", 8)], &[events]))]);
    let values = cells(&run, Table::Counters, &["value"]);
    let sum: f64 = values.iter().map(|value| value.parse::<f64>().expect("a number")).sum();
    assert_eq!((values.len(), sum), (6, 0.0));
}

#[test]
fn counters_that_types_of_readings_share_are_told_apart() {
    let types =
        [("PINS_PAPI_S0_C0_F1t_0", "INS{int64_t}", 8), ("PINS_PAPI_S0_C0_F10ms_1", "INS{int64_t};X{int64_t}", 16)];
    let both = vec![
        L.event(2, 0, 45, 100, &L.i64(10)),
        L.event(4, 0, 45, 150, &[L.i64(7), L.i64(1)].concat()),
        L.event(3, 0, 45, 200, &L.i64(20)),
    ];
    let one = vec![L.event(2, 0, 45, 300, &L.i64(30))];
    let run = run_of(&[("x-0.prof", L.profile(0, &types, &[both, one]))]);
    assert_eq!(
        cells(&run, Table::Counters, &["name", "value"]),
        [
            "PINS_PAPI_S0_C0_F1t_0/INS 10.0",
            "PINS_PAPI_S0_C0_F10ms_1/INS 7.0",
            "X 1.0",
            "PINS_PAPI_S0_C0_F1t_0/INS 20.0",
            "INS 30.0"
        ]
    );
}

#[test]
fn a_clock_that_steps_back_loses_nothing() {
    let events = [L.task(5, 100, 200, 0), L.task(6, 150, 160, 1)].concat();
    let run = run_of(&[("x-0.prof", L.profile(0, T, &[events]))]);
    assert_eq!(cells(&run, Table::Tasks, &["start"]), ["100", "150"]);
    let back = run.stats.iter().find(|stat| stat.finding.what == "clock_stepped_back").expect("a note");
    assert!(back.example.contains("PaRSEC's own reader leaves these out"), "{}", back.example);
}

#[test]
fn the_layout_of_a_file_without_streams_is_the_possible_one() {
    let layout = LAYOUTS[2];
    let mut empty = layout.profile(0, T, &[]);
    // What the writer leaves between the number of streams and their offset.
    empty[220..224].copy_from_slice(&[1, 2, 3, 4]);
    let run = import(&empty).expect("no streams");
    assert!(!has_lost(&run), "{:?}", run.stats);
    assert_eq!(stat(&run, "rank_missing"), 1);
    let mut cut = layout.file()[..6 * BLOCK].to_vec();
    cut[212] = 9;
    cut[220..224].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(stat(&import(&cut).expect("events are there"), "streams_lost"), 2);
}

#[test]
fn a_profile_that_is_none_any_more_is_lost() {
    let whole = ("x-0.prof", L.profile(0, T, &[L.task(5, 10, 20, 0)]));
    for stranger in [Vec::new(), b"garbage".to_vec()] {
        let run = run_of(&[whole.clone(), ("x-1.prof", stranger), ("y-1.prof", b"of another run".to_vec())]);
        assert_eq!((stat(&run, "file_not_read"), stat(&run, "other_ranks_beside")), (1, 0));
    }
    assert_eq!(stat(&run_of(&[whole]), "file_not_read"), 0);
}

#[test]
fn a_graph_of_another_program_is_not_joined() {
    let run = run_of(&[
        ("x-0.prof", L.profile(0, T, &[L.task(5, 10, 20, 0)])),
        ("x-0.dot", graph(&[node("LU_2_0", "LU", 5, 0)])),
    ]);
    assert_eq!(cells(&run, Table::Tasks, &["id", "name"]), ["2:3:5 c::T", "LU_2_0 LU"]);
    assert_eq!((stat(&run, "dot_class_mismatch"), stat(&run, "dot_nodes_joined")), (1, 0));
}

#[test]
fn classes_may_end_in_a_number() {
    let run = run_of(&[
        ("x-0.prof", L.profile(0, &[("c::potrf_2", TASK, 28)], &[L.task(5, 10, 20, 1)])),
        ("x-0.dot", graph(&[node("potrf_2_2_1", "potrf_2", 5, 0), edge("potrf_2_2_0", "potrf_2_2_1")])),
    ]);
    assert_eq!(cells(&run, Table::Tasks, &["id", "name"]), ["potrf_2_2_1 c::potrf_2", "potrf_2_2_0 c::potrf_2"]);
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
