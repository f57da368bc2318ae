//! What stands beside the events: who wrote the trace, when, on which machine, as which rank.
//!
//! ```text
//! "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100", …}], "distributedInfo": {"rank": 3, …},
//! "baseTimeNanoseconds": 1719853884000000000     Kineto: add it to ts for wall-clock time
//! "beginningOfTime": 1795226099528086            clang: the same in µs
//! "displayTimeUnit": "ns"                        a hint for viewers; ts stays in µs
//! ```
//! Values of moderate size also go to `runs.args` under their own keys.

use std::collections::HashSet;
use std::io::{self, Read};

use serde_json::{Map, Value};

use super::chunk::UNFINISHED;
use super::container::{Beside, Container, Form};
use super::event;
use super::file::{Recording, Shared};
use super::lanes::{LaneKind, Lanes};
use crate::error::ImportError;
use crate::trace::{RunBuilder, Source, findings};

/// Unix times between 2001 and 2096, in ns: a clock that shows one is the wall clock.
const WALL_CLOCK: std::ops::Range<i64> = 1_000_000_000_000_000_000..4_000_000_000_000_000_000;

/// The program that wrote a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Kineto,
    VizTracer,
    Clang,
    Xprof,
    Bazel,
    Chrome,
    Other,
}

impl Dialect {
    pub(super) fn of(beside: &[Beside], shared: &Shared) -> Dialect {
        let has = |key: &str| beside.iter().any(|beside| beside.key == key);
        let inside = |key: &str, inner: &str| value(beside, key).is_some_and(|value| value.get(inner).is_some());
        let has_kind = |kind: &str| shared.kinds.find(kind).is_some();
        if has("viztracer_metadata") {
            Dialect::VizTracer
        } else if has(CLANG_BEGIN) {
            Dialect::Clang
        } else if inside("metadata", "highres-ticks") {
            Dialect::Xprof
        } else if inside("otherData", "build_id") || inside("otherData", "bazel_version") {
            Dialect::Bazel
        } else if has("schemaVersion")
            || has("deviceProperties")
            || ["cpu_op", "cuda_runtime", "kernel"].iter().any(|kind| has_kind(kind))
        {
            Dialect::Kineto
        } else if inside("metadata", "product-version") || inside("metadata", "source") {
            Dialect::Chrome
        } else if shared
            .lanes
            .all
            .iter()
            .any(|lane| lane.lane_kind == LaneKind::Process && lane.name.as_deref().is_some_and(is_clang))
        {
            Dialect::Clang
        } else {
            Dialect::Other
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Dialect::Kineto => Some("kineto"),
            Dialect::VizTracer => Some("viztracer"),
            Dialect::Clang => Some("clang"),
            Dialect::Xprof => Some("xprof"),
            Dialect::Bazel => Some("bazel"),
            Dialect::Chrome => Some("chrome"),
            Dialect::Other => None,
        }
    }
}

/// The parsed value of a key beside the events.
fn value(beside: &[Beside], key: &str) -> Option<Value> {
    let found = beside.iter().rev().find(|beside| beside.key == key)?;
    serde_json::from_slice(&found.json).ok()
}

/// The values beside the events that were kept, by key.
fn values(beside: &[Beside]) -> impl Iterator<Item = (String, Value)> {
    beside.iter().filter(|beside| !beside.json.is_empty()).map(|beside| {
        let text = || Value::from(String::from_utf8_lossy(&beside.json));
        (beside.key.clone(), serde_json::from_slice(&beside.json).unwrap_or_else(|_| text()))
    })
}

/// What to add to the file's times to get wall-clock ns, where the file says so.
fn base(beside: &[Beside]) -> Option<i64> {
    let kineto = value(beside, "baseTimeNanoseconds").and_then(|base| base.as_i64());
    let clang = || value(beside, "beginningOfTime").and_then(|begin| begin.as_i64()?.checked_mul(1_000));
    // Added to a time within reach, it must fit.
    kineto.or_else(clang).filter(|base| base.unsigned_abs() <= 1 << 61)
}

/// Counts the times of each file from its own base, so that files of several ranks share an origin. Where some have a base
/// and others have none, their offset is unknown: then all times stay as they are.
pub(super) fn to_common_clock(recordings: &mut [Recording]) -> Result<(), ImportError> {
    let has_base = |recording: &Recording| base(&recording.beside).is_some();
    if recordings.iter().any(has_base) && !recordings.iter().all(has_base) {
        for recording in recordings.iter_mut().filter(|recording| !has_base(recording)) {
            let path = recording.source.path().display().to_string();
            recording
                .stats
                .note(findings::BASE_TIME_MISSING, 1, || format!("{path} has no base time; clocks are not compared"));
        }
        return Ok(());
    }
    recordings.iter_mut().try_for_each(add_base)
}

fn add_base(recording: &mut Recording) -> Result<(), ImportError> {
    let Some(base) = base(&recording.beside).filter(|base| *base != 0) else { return Ok(()) };
    let add = |time: &mut i64| *time = time.saturating_add(base);
    for piece in &mut recording.pieces {
        piece.starts.change(|starts| starts.iter_mut().for_each(add))?;
        piece.finishes.change(|finishes| {
            finishes.iter_mut().filter(|finish| **finish != UNFINISHED).for_each(add);
        })?;
    }
    recording.base = base;
    Ok(())
}

/// Fills what `runs` says of the trace.
pub(super) fn describe(
    recordings: &[Recording],
    shared: &mut Shared,
    origin: Option<i64>,
    several: bool,
    builder: &mut RunBuilder,
) {
    builder.info.time_unit = "us";
    builder.info.origin = origin;
    builder.info.tick = recordings.first().map(|first| first.origin.written.tick());
    let Some(first) = recordings.first() else { return };
    // The clocks of several files were put on their bases already.
    let base = if several { None } else { base(&first.beside) };
    builder.info.started_at = match (origin, base) {
        (Some(origin), Some(base)) => origin.checked_add(base).filter(|time| WALL_CLOCK.contains(time)),
        (Some(origin), None) => Some(origin).filter(|time| WALL_CLOCK.contains(time)),
        (None, _) => None,
    };
    for recording in recordings {
        for Beside { key, json, bytes } in &recording.beside {
            if json.is_empty() {
                builder.stats.note(findings::HEADER_LEFT_OUT, 1, || format!("`{key}` has {bytes} bytes"));
            }
        }
        // What a rank says of itself stands at its location.
        if several && let Some(rank) = recording.origin.rank {
            let lane = shared.lanes.rank(rank) as usize;
            let facts = &mut shared.lanes.all[lane].facts;
            facts.extend(values(&recording.beside));
            tell_first_phase(recording, facts);
        }
    }
    let args = &mut builder.info.args;
    if let Some(told) = first.origin.written.args() {
        args.extend(told);
        return;
    }
    args.extend(values(&first.beside));
    let dialect = Dialect::of(&first.beside, shared);
    if let Some(name) = dialect.name() {
        args.insert("dialect".to_owned(), name.into());
    }
    if dialect == Dialect::Kineto && !several {
        tell_first_phase(first, args);
    }
    if several {
        let ranks: Vec<Value> =
            recordings.iter().filter_map(|recording| recording.origin.rank).map(Value::from).collect();
        args.insert("ranks".to_owned(), ranks.into());
    }
}

/// What a file of Kineto begins with: HTA takes the first event for the launch of a kernel that has none, if it is a task. A
/// file that we wrote says it of the trace that it was.
fn tell_first_phase(recording: &Recording, facts: &mut Map<String, Value>) {
    if let Some(phase) = recording.lists.first_phase {
        facts.entry("first_phase").or_insert_with(|| char::from(phase).to_string().into());
    }
}

/// clang draws totals as tasks on lanes of their own: `{"ts":0,"name":"Total Source","args":{"count":12,"avg ms":3}}`. Under
/// a kind of their own they do not count twice. Releases 9 to 11 say who they are only by the name of the process; a task of
/// any other program that is called `Total loss` is work.
pub(super) fn mark_summaries(recording: &mut Recording, shared: &mut Shared) -> Result<(), ImportError> {
    let is_total: Vec<bool> =
        (0..shared.names.len() as i32).map(|name| shared.names.word(name).starts_with("Total ")).collect();
    // What `tq` wrote has its kind already.
    if !is_total.contains(&true) || recording.origin.written.is_ours() {
        return Ok(());
    }
    let by_release_12 = has(&recording.beside, CLANG_BEGIN);
    let processes: HashSet<i32> = clangs(recording).collect();
    let lanes = &shared.lanes.all;
    let of_clang = |lane: i32| {
        let process = lanes.get(lane as usize).and_then(|lane| lane.parent);
        by_release_12 || process.is_some_and(|process| processes.contains(&process))
    };
    let summary = shared.kinds.intern("summary");
    for piece in &mut recording.pieces {
        let mut summaries = Vec::new();
        for (row, name) in piece.names.values()?.iter().enumerate() {
            if !is_total[*name as usize] {
                continue;
            }
            let args = piece.args.get(row)?;
            let args = event::members(&args);
            let has = |key: &str| args.iter().any(|(name, _)| *name == key);
            let is_summary = has("count") && has("avg ms") && args.len() == 2;
            if is_summary || (of_clang(piece.lanes.get(row)?) && piece.starts.get(row)? == 0) {
                summaries.push(row);
            }
        }
        if !summaries.is_empty() {
            piece.kinds.change(|kinds| summaries.iter().for_each(|row| kinds[*row] = summary))?;
        }
    }
    Ok(())
}

/// What clang from release 12 on writes beside the events.
const CLANG_BEGIN: &str = "beginningOfTime";

/// Whether a process is called as clang calls itself: `clang`, `clang-11`, `clang++`.
fn is_clang(process: &str) -> bool {
    let rest = process.rsplit(['/', '\\']).next().and_then(|file| file.strip_prefix("clang"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '+', '.']))
}

/// The processes of a file that clang was.
fn clangs(recording: &Recording) -> impl Iterator<Item = i32> {
    let names = recording.lists.facts.iter().filter(|fact| fact.what == "process_name");
    let named = |args: &str| event::get(args, "name").and_then(event::string_value);
    names.filter(move |fact| named(&fact.args).is_some_and(|name| is_clang(&name))).map(|fact| fact.lane)
}

fn has(beside: &[Beside], key: &str) -> bool {
    beside.iter().any(|beside| beside.key == key)
}

/// What the head of a file tells about its place among several.
pub(super) struct Place {
    /// The rank that it says it is.
    pub(super) rank: Option<i64>,
    /// Whether Kineto wrote it.
    pub(super) is_kineto: bool,
}

/// Looks for what a file says of itself, wherever that stands, else at its name.
pub(super) fn place(source: &Source) -> Place {
    let mut container = Container::new(source.head(), 0);
    // Memory does not fail.
    let opened = container.open().ok().flatten();
    let _ = container.next_events();
    let has = |key: &str| container.beside.iter().any(|beside| beside.key == key);
    let has_header = ["schemaVersion", "deviceProperties", RANK_INFO].iter().any(|key| has(key));
    let is_kineto = opened.is_some() && (has_header || memchr::memmem::find(source.head(), b"\"kernel\"").is_some());
    let said = value(&container.beside, RANK_INFO).and_then(|info| info.get("rank")?.as_i64());
    let place = match said {
        Some(rank) => Place { rank: Some(rank), is_kineto },
        // Nothing stands beside an array.
        None if opened == Some(Form::Array) => Place { rank: None, is_kineto: is_kineto || has_marks(source.head()) },
        // A file that cannot be read to its end says nothing more than its head does.
        None => source.reader().ok().and_then(|reader| search(reader).ok()).map_or(
            Place { rank: None, is_kineto },
            |found| Place { is_kineto: is_kineto || found.is_kineto, ..found },
        ),
    };
    Place { rank: place.rank.or_else(|| rank_of_name(&source.stem())), ..place }
}

/// Where Kineto writes the rank.
const RANK_INFO: &str = "distributedInfo";

/// What only Kineto writes.
const MARKS_OF_KINETO: [&str; 5] =
    ["\"schemaVersion\"", "\"deviceProperties\"", "\"cpu_op\"", "\"cuda_runtime\"", "\"python_function\""];

/// The bytes of the longest of them, which the quoted key of the rank is not longer than.
const LONGEST_MARK: usize = 18;

fn has_marks(text: &[u8]) -> bool {
    MARKS_OF_KINETO.iter().any(|mark| memchr::memmem::find(text, mark.as_bytes()).is_some())
}

/// Bytes that are searched together.
const SEARCHED_BYTES: usize = 256 << 10;

/// Searches a whole text for its rank: keys come in any order, and what stands before them may be of any size and be
/// damaged. It goes as fast as the text can be read.
fn search(mut reader: impl Read) -> io::Result<Place> {
    let quoted = format!("\"{RANK_INFO}\"");
    let key = memchr::memmem::Finder::new(&quoted);
    let mut is_kineto = false;
    let mut window = Vec::new();
    loop {
        // The end of a window may hold the beginning of a word.
        window.drain(..window.len().saturating_sub(LONGEST_MARK - 1));
        let kept = window.len();
        match reader.by_ref().take(SEARCHED_BYTES as u64).read_to_end(&mut window) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        if window.len() == kept {
            return Ok(Place { rank: None, is_kineto });
        }
        is_kineto = is_kineto || has_marks(&window);
        if let Some(at) = key.find(&window) {
            let rank = rank_in((&window[at + quoted.len()..]).chain(&mut reader))?;
            return Ok(Place { rank, is_kineto: is_kineto || rank.is_some() });
        }
    }
}

/// The rank that stands in the object behind a key.
fn rank_in(reader: impl Read) -> io::Result<Option<i64>> {
    let mut container = Container::new(reader, 0);
    if !container.begins_object_value()? {
        return Ok(None);
    }
    container.next_events()?;
    Ok(value(&container.beside, "rank").and_then(|rank| rank.as_i64()))
}

/// `3` of `rank-3`, `trace_rank3_step100`, `worker3`.
fn rank_of_name(stem: &str) -> Option<i64> {
    let stem = stem.to_ascii_lowercase();
    ["rank", "worker"].iter().find_map(|word| {
        let (_, rest) = stem.split_once(word)?;
        let rest = rest.strip_prefix(['-', '_', ' ', '.']).unwrap_or(rest);
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    })
}

/// Makes a location for each rank, also for one without events.
pub(super) fn name_rank(lanes: &mut Lanes, rank: Option<i64>) {
    if let Some(rank) = rank {
        lanes.rank(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_in_names() {
        for (name, rank) in [
            ("rank-3", Some(3)),
            ("rank3", Some(3)),
            ("trace_rank_12_step100", Some(12)),
            ("worker0.1719", Some(0)),
            ("frank", None),
            ("trace_8", None),
        ] {
            assert_eq!(rank_of_name(name), rank, "{name}");
        }
    }

    #[test]
    fn ranks_are_found_anywhere() {
        let check = |text: &str, expected: Option<i64>| {
            let found = search(text.as_bytes()).expect("memory");
            assert_eq!((found.rank, found.is_kineto), (expected, expected.is_some()), "{}", text.len());
        };
        let info = r#""distributedInfo" : {"pg_config":[{"rank":9}],"rank": 3}"#;
        for before in [0, 1, SEARCHED_BYTES - 40, SEARCHED_BYTES - 9, 3 * SEARCHED_BYTES] {
            check(&format!("[{}{info}}}", " ".repeat(before)), Some(3));
        }
        check(r#"{"info":"distributedInfo","rank":1}"#, None);
    }

    #[test]
    fn bases_are_read() {
        let beside = |key: &str, json: &str| Beside { key: key.to_owned(), json: json.as_bytes().to_vec(), bytes: 0 };
        assert_eq!(base(&[beside("baseTimeNanoseconds", "1719853884000000000")]), Some(1_719_853_884_000_000_000));
        assert_eq!(base(&[beside("beginningOfTime", "1795226099528086")]), Some(1_795_226_099_528_086_000));
        assert_eq!(base(&[beside("baseTimeNanoseconds", "\"x\"")]), None);
    }
}
