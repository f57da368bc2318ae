//! PTT: all ranks of a run in one HDF5 file, converted by `profile2h5`, with starts and ends paired already.
//!
//! ```text
//! events                node_id stream_id taskpool_id type begin end flags id     a row for each pair
//! event_infos_7         columns of the infos of type 7, by the rows of `events`
//! event_names           type -> name             event_convertors    the formats of infos
//! streams  nodes        what is known of streams and ranks
//! errors                starts that nothing ends, and events that lie before those in front of them
//! ```
//! Rows are turned back into events, and infos into their original bytes, so that [`super::rank`] makes the same rows from
//! them as from a `.prof` file. The conversion loses ends without a start, infos without a convertor, and the unit of
//! counters. Version 1 has all of this as Python objects, and is refused.

mod pickle;
mod store;

use std::collections::BTreeMap;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use self::pickle::Object;
use self::store::{Column, Frame, Store, Values, shown};
use super::clock::Unit;
use super::file::{Entry, Event, Infos};
use super::pair::{Pairs, Place, UNENDED};
use super::rank::{Facts, Rank, Recorded};
use super::types::Type;
use crate::error::ImportError;
use crate::trace::{Source, Stats, findings};

/// What makes files that can be read.
pub(super) const CONVERT: &str = "profile2h5 --ptt-version 2";
/// In `errors`: an event that the conversion left out, be it start or end. The others are starts without end.
const BEFORE_PREDECESSOR: &str = "happened before its predecessor";
/// Events have 16 bits for type and side.
const TYPES_MAX: usize = 1 << 15;
const NO_INFO: usize = usize::MAX;

/// The ranks of a file.
///
/// # Errors
/// HDF5 that cannot be read, tables that every trace has and this one lacks, version 1.
pub(super) fn read(
    source: &Source,
    bytes: Vec<u8>,
    unit: Unit,
    memory: &MemoryReservation,
) -> Result<Vec<Rank>, ImportError> {
    let store = Store::open(source, bytes, memory)?;
    let has_infos = store.groups().iter().any(|group| group.starts_with("event_infos_"));
    if !has_infos && store.is_pickled("events")? {
        return Err(version_1(source));
    }
    let mut stats = Stats::default();
    let missing = |name: &str| super::damaged(source, format!("/{name}"), "the table is not there".to_owned());
    let events = store.frame("events")?.ok_or_else(|| missing("events"))?;
    let streams = store.frame("streams")?.ok_or_else(|| missing("streams"))?;
    let nodes = optional(store.frame("nodes"), &mut stats)?;
    let errors = optional(store.frame("errors"), &mut stats)?;
    let mut ranks = ranks(&streams, nodes.as_ref(), memory, source, &mut stats)?;
    let rows = Rows::of(&events, source, "events")?;
    let kinds = Kinds::read(&store, &events, &rows, memory, source, &mut stats)?;
    // Every rank has the list of types.
    grow(memory, source, kinds.entries.len().saturating_mul(ranks.len()).saturating_mul(128))?;
    grow(memory, source, events.rows.saturating_mul(2 * size_of::<Event>()))?;
    kinds.pair(&rows, &mut ranks, &mut stats);
    if let Some(errors) = errors.as_ref().filter(|errors| errors.rows > 0) {
        kinds.unpaired(errors, &Rows::of(errors, source, "errors")?, &mut ranks, &mut stats);
    }
    let infos = Infos { bytes: &kinds.infos, big_endian: false };
    let mut found = Vec::with_capacity(ranks.len());
    for (number, mut rank) in ranks {
        rank.stats.absorb(std::mem::take(&mut stats));
        found.push(rank.recorded(number, unit, &kinds.entries, infos).into_rank());
    }
    if found.is_empty() {
        return Err(super::damaged(source, "/streams".to_owned(), "no rank is in it".to_owned()));
    }
    Ok(found)
}

/// What must hold of any pickle: an array has as many objects as its shape says, and a pickle makes no more than it is long.
pub(super) fn misread_pickle(bytes: &[u8]) -> Vec<String> {
    match pickle::objects(bytes) {
        Err(what) if what.is_empty() => vec!["an error without words".to_owned()],
        Ok(objects) if objects.shape.iter().product::<usize>() != objects.items.len() => vec![format!("{objects:?}")],
        Ok(objects) if objects.items.len() > bytes.len() => vec![format!("{} objects", objects.items.len())],
        _ => Vec::new(),
    }
}

/// Events as Python objects.
fn version_1(source: &Source) -> ImportError {
    ImportError::Unusable {
        path: source.path().to_owned(),
        what: "a PTT file of version 1: its events are pickled Python objects, which tq does not read".to_owned(),
        hint: Some(format!(
            "open the .prof files that it was converted from, or convert them to version 2: `{CONVERT} --output FILE.h5 RANKFILES`"
        )),
    }
}

/// A table that a trace can do without: what is wrong with it is counted.
fn optional<T>(part: Result<Option<T>, ImportError>, stats: &mut Stats) -> Result<Option<T>, ImportError> {
    match part {
        Err(error @ ImportError::Damaged { .. }) => {
            stats.note(findings::PART_NOT_READ, 1, || error.to_string());
            Ok(None)
        }
        other => other,
    }
}

fn grow(memory: &MemoryReservation, source: &Source, bytes: usize) -> Result<(), ImportError> {
    memory
        .try_grow(bytes)
        .map_err(|error| ImportError::Memory { path: source.path().to_owned(), what: error.strip_backtrace() })
}

/// The columns of `events`, and of `errors`, which has the same.
struct Rows<'f> {
    ranks: &'f [i64],
    streams: &'f [i64],
    taskpools: &'f [i64],
    types: &'f [i64],
    begins: &'f [i64],
    ends: &'f [i64],
    ids: Vec<u64>,
}

impl<'f> Rows<'f> {
    fn of(frame: &'f Frame, source: &Source, name: &str) -> Result<Rows<'f>, ImportError> {
        let column = |column: &str| {
            let values = frame.integers(column).or((frame.rows == 0).then_some(&[]));
            values.filter(|values| values.len() == frame.rows).ok_or_else(|| {
                super::damaged(source, format!("/{name}"), format!("it has no whole numbers in a column `{column}`"))
            })
        };
        // Unsigned where one of them needs all 64 bits.
        let ids = match frame.column("id") {
            Some(Values::Unsigned(ids)) => ids.clone(),
            _ => column("id")?.iter().map(|id| *id as u64).collect(),
        };
        Ok(Rows {
            ranks: column("node_id")?,
            streams: column("stream_id")?,
            taskpools: column("taskpool_id")?,
            types: column("type")?,
            begins: column("begin")?,
            ends: column("end")?,
            ids,
        })
    }

    fn shown(&self, row: usize) -> String {
        format!(
            "row {row}: type {} in stream {} of rank {}, [{}, {})",
            self.types[row], self.streams[row], self.ranks[row], self.begins[row], self.ends[row]
        )
    }
}

/// What is read of a rank.
#[derive(Default)]
struct Node {
    program: String,
    facts: Facts,
    /// By number.
    numbers: Vec<i64>,
    streams: Vec<(String, Facts)>,
    /// By stream: starts and ends.
    starts: Vec<Vec<Event>>,
    ends: Vec<Vec<Event>>,
    /// By stream and start: the stream and place of its end.
    ended: Vec<Vec<Place>>,
    stats: Stats,
}

impl Node {
    fn recorded<'k>(mut self, rank: i64, unit: Unit, entries: &[Entry], infos: Infos<'k>) -> Recorded<'k> {
        let streams = self.streams.len();
        let mut pairs = Pairs { ends: Vec::new(), used: Vec::new() };
        for ended in self.ended {
            // The lists of ends stand behind the streams.
            let place = |end: Place| if end == UNENDED { end } else { (streams as u32 + end.0, end.1) };
            pairs.used.push(vec![false; ended.len()]);
            pairs.ends.push(ended.into_iter().map(place).collect());
        }
        let mut events = self.starts;
        events.append(&mut self.ends);
        for events in &mut events {
            unit.to_ticks(events.iter_mut().map(|event| &mut event.time), &mut self.stats);
        }
        Recorded {
            rank,
            world: None,
            program: self.program,
            facts: self.facts,
            entries: entries.to_vec(),
            streams: self.streams,
            events,
            pairs,
            infos,
            stats: self.stats,
        }
    }
}

/// Ranks and their streams, as their tables tell them.
fn ranks(
    streams: &Frame,
    nodes: Option<&Frame>,
    memory: &MemoryReservation,
    source: &Source,
    stats: &mut Stats,
) -> Result<BTreeMap<i64, Node>, ImportError> {
    let mut ranks: BTreeMap<i64, Node> = BTreeMap::new();
    if let Some(nodes) = nodes {
        for (row, rank) in nodes.integers("id").unwrap_or_default().iter().enumerate() {
            let node = ranks.entry(*rank).or_default();
            node.program = nodes.column("exe").map(|programs| shown(&programs.object(row))).unwrap_or_default();
            let own = ["id", "error", "filename", "exe", "exe_abspath"];
            node.facts = facts(nodes, row, &own, memory, source)?;
        }
    }
    let (numbers_of_ranks, numbers) = (streams.integers("node_id"), streams.integers("stream_id"));
    let numbered = numbers_of_ranks.unwrap_or_default().iter().zip(numbers.unwrap_or_default());
    let mut rows: Vec<(i64, i64, usize)> =
        numbered.enumerate().map(|(row, (rank, stream))| (*rank, *stream, row)).collect();
    rows.sort_unstable();
    for (rank, number, row) in rows {
        if rank < 0 {
            stats.note(findings::UNKNOWN_STREAM, 1, || format!("row {row} of streams: rank {rank}"));
            continue;
        }
        let node = ranks.entry(rank).or_default();
        let place = node.streams.len();
        stats.note(findings::STREAM_RENUMBERED, u64::from(place as i64 != number), || {
            format!("stream {number} of rank {rank} is the one at place {place}, and is called so")
        });
        let name = streams.column("description").map(|names| shown(&names.object(row))).unwrap_or_default();
        let own = ["node_id", "stream_id", "description", "begin", "end", "duration"];
        node.streams.push((name, facts(streams, row, &own, memory, source)?));
        node.numbers.push(number);
    }
    ranks.retain(|rank, _| *rank >= 0);
    for node in ranks.values_mut() {
        node.starts.resize_with(node.streams.len(), Vec::new);
        node.ends.resize_with(node.streams.len(), Vec::new);
        node.ended.resize_with(node.streams.len(), Vec::new);
    }
    Ok(ranks)
}

/// The facts in a row: all columns but the table's own. The others of a key that came twice stand in `KEY_list`.
fn facts(
    frame: &Frame,
    row: usize,
    own: &[&str],
    memory: &MemoryReservation,
    source: &Source,
) -> Result<Facts, ImportError> {
    let mut facts = Facts::new();
    for column in frame.columns.iter().filter(|column| !own.contains(&column.name.as_str())) {
        let (key, values) = match (column.name.strip_suffix("_list"), column.values.object(row)) {
            (Some(key), Object::List(values)) => (key, values),
            (_, value) => (column.name.as_str(), vec![value]),
        };
        for value in values {
            let text = match value {
                // Not a number stands for what a rank does not say, and makes doubles of the numbers of the others.
                Object::Double(number) if number.is_nan() => continue,
                Object::Double(number) if is_patchy(&column.values) && number.fract() == 0.0 => format!("{number:.0}"),
                Object::None | Object::List(_) | Object::Other => continue,
                plain => shown(&plain),
            };
            grow(memory, source, text.len() + key.len())?;
            facts.push((key.to_owned(), text));
        }
    }
    Ok(facts)
}

fn is_patchy(values: &Values) -> bool {
    matches!(values, Values::Doubles(values) if values.iter().any(|value| value.is_nan()))
}

/// The types of events, and their infos.
struct Kinds {
    entries: Vec<Entry>,
    /// By row of `events`: where its info begins.
    places: Vec<usize>,
    /// By type: where the info of the start stands behind that of the end; 0 where they share one.
    start_infos: Vec<usize>,
    infos: Vec<u8>,
}

impl Kinds {
    fn read(
        store: &Store<'_>,
        events: &Frame,
        rows: &Rows<'_>,
        memory: &MemoryReservation,
        source: &Source,
        stats: &mut Stats,
    ) -> Result<Kinds, ImportError> {
        let mut kinds = Kinds::named(store, source, stats)?;
        grow(memory, source, events.rows.saturating_mul(size_of::<usize>()))?;
        kinds.places = vec![NO_INFO; events.rows];
        let formats =
            optional(store.frame("event_convertors"), stats)?.map(|frame| formats(&frame)).unwrap_or_default();
        // Rows are named by their labels, which are their numbers unless the table was filtered.
        let is_plain = events.index.iter().enumerate().all(|(row, label)| *label == row as i64);
        let mut labels: HashMap<i64, usize> = HashMap::new();
        if !is_plain {
            grow(memory, source, events.rows.saturating_mul(32))?;
            labels.extend(events.index.iter().enumerate().map(|(row, label)| (*label, row)));
        }
        let row_of = |label: i64| {
            let row = if is_plain { usize::try_from(label).ok() } else { labels.get(&label).copied() };
            row.filter(|row| *row < events.rows)
        };
        for group in store.groups() {
            let Some(number) = group.strip_prefix("event_infos_") else { continue };
            let Some(kind) = number.parse::<usize>().ok().filter(|kind| *kind < kinds.entries.len()) else {
                stats.note(findings::UNKNOWN_KEY, 1, || format!("/{group}: there is no type {number}"));
                continue;
            };
            let Some(frame) = optional(store.frame(group), stats)?.filter(|frame| !frame.columns.is_empty()) else {
                continue;
            };
            let format = formats.get(&kinds.entries[kind].name).map_or("", String::as_str);
            let layout = Layout::of(&frame, &kinds.entries[kind].name, format);
            stats.note(findings::INFO_NOT_READ, layout.unread, || {
                format!("/{group}: columns of no type that infos have")
            });
            grow(memory, source, frame.rows.saturating_mul(layout.bytes()))?;
            kinds.entries[kind] = layout.entry.clone();
            kinds.start_infos[kind] = if layout.starts.is_empty() { 0 } else { layout.entry.info_bytes };
            for (at, label) in frame.index.iter().enumerate() {
                let Some(row) = row_of(*label).filter(|row| rows.types[*row] == kind as i64) else {
                    stats.note(findings::INFO_NOT_READ, 1, || {
                        format!("/{group}: row {label} of events is of another type")
                    });
                    continue;
                };
                if layout.is_blank(at) {
                    continue;
                }
                kinds.places[row] = kinds.infos.len();
                layout.write(&frame, at, &mut kinds.infos);
            }
        }
        Ok(kinds)
    }

    /// The names of the types: those of `event_types` are all plain text, and lack names that come twice.
    fn named(store: &Store<'_>, source: &Source, stats: &mut Stats) -> Result<Kinds, ImportError> {
        let mut names: Vec<(i64, String)> = Vec::new();
        if let Some((numbers, texts)) = optional(store.series("event_names"), stats)? {
            if let Values::Integers(numbers) = numbers {
                names.extend(numbers.into_iter().enumerate().map(|(row, number)| (number, shown(&texts.object(row)))));
            }
        } else if let Some((texts, Values::Integers(numbers))) = store.series("event_types")? {
            names.extend(numbers.into_iter().enumerate().map(|(row, number)| (number, shown(&texts.object(row)))));
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (number, name) in names {
            // -1 has no name.
            let Some(number) = usize::try_from(number).ok().filter(|number| *number < TYPES_MAX) else { continue };
            if entries.len() <= number {
                let none = Entry { name: String::new(), convertor: String::new(), info_bytes: 0 };
                entries.resize(number + 1, none);
            }
            entries[number].name = name;
        }
        if entries.is_empty() {
            return Err(super::damaged(source, "/event_names".to_owned(), "no type of events has a name".to_owned()));
        }
        let start_infos = vec![0; entries.len()];
        Ok(Kinds { entries, places: Vec::new(), start_infos, infos: Vec::new() })
    }

    /// The pairs of `events`.
    fn pair(&self, rows: &Rows<'_>, ranks: &mut BTreeMap<i64, Node>, stats: &mut Stats) {
        for row in 0..rows.begins.len() {
            let (begin, end) = (rows.begins[row], rows.ends[row]);
            self.push(rows, row, (begin <= end).then_some(end), ranks, stats);
        }
    }

    /// The starts of `errors` take their places among those that have an end. Of an event in front of which the clock has
    /// stepped back nobody knows whether it was a start.
    fn unpaired(&self, errors: &Frame, rows: &Rows<'_>, ranks: &mut BTreeMap<i64, Node>, stats: &mut Stats) {
        let messages = errors.column("error_msg");
        for row in 0..rows.begins.len() {
            if messages.is_some_and(|messages| shown(&messages.object(row)).contains(BEFORE_PREDECESSOR)) {
                stats.records(1);
                stats.left_out(findings::LEFT_OUT_BY_CONVERTER, 1, || rows.shown(row));
                continue;
            }
            self.push(rows, row, None, ranks, stats);
        }
        for node in ranks.values_mut() {
            for (starts, ended) in node.starts.iter_mut().zip(&mut node.ended) {
                let mut both: Vec<(Event, Place)> =
                    std::mem::take(starts).into_iter().zip(std::mem::take(ended)).collect();
                both.sort_by_key(|(start, _)| start.time);
                (*starts, *ended) = both.into_iter().unzip();
            }
        }
    }

    fn push(&self, rows: &Rows<'_>, row: usize, end: Option<i64>, ranks: &mut BTreeMap<i64, Node>, stats: &mut Stats) {
        let found = ranks.get_mut(&rows.ranks[row]).and_then(|node| {
            let stream = node.numbers.binary_search(&rows.streams[row]).ok()?;
            Some((node, stream))
        });
        let Some((node, stream)) = found else {
            stats.records(1);
            return stats.left_out(findings::UNKNOWN_STREAM, 1, || rows.shown(row));
        };
        node.stats.records(1);
        let kind = usize::try_from(rows.types[row]).ok().filter(|kind| *kind < self.entries.len());
        let Some(kind) = kind else {
            return node.stats.left_out(findings::UNKNOWN_KEY, 1, || rows.shown(row));
        };
        if rows.begins[row] < 0 {
            return node.stats.left_out(findings::BAD_TIME, 1, || rows.shown(row));
        }
        let key = (kind as u16) << 1;
        let (taskpool, id) = (rows.taskpools[row] as u32, rows.ids[row]);
        let info = end.and_then(|_| self.places.get(row)).copied().filter(|place| *place != NO_INFO);
        let at_start = info.map(|info| info + self.start_infos[kind]);
        node.starts[stream].push(Event::new(key, taskpool, id, rows.begins[row], at_start));
        let Some(end) = end else { return node.ended[stream].push(UNENDED) };
        let own = (stream as u32, node.ends[stream].len() as u32);
        node.ended[stream].push(own);
        node.ends[stream].push(Event::new(key | 1, taskpool, id, end, info));
    }
}

/// The format of infos by name of type: `@QiI`, as Python's struct has it.
fn formats(frame: &Frame) -> HashMap<String, String> {
    let (Some(names), Some(formats)) = (frame.column("event_name"), frame.column("fmt")) else { return HashMap::new() };
    (0..frame.rows).map(|row| (shown(&names.object(row)), shown(&formats.object(row)))).collect()
}

/// Whether it is a whole number, or missing.
fn is_whole(value: &f64) -> bool {
    value.is_nan() || value.fract() == 0.0
}

/// How an info is written again.
struct Layout<'f> {
    entry: Entry,
    kind: Type,
    /// The columns of its fields; those of the start where it has values of its own.
    ends: Vec<&'f Column>,
    starts: Vec<&'f Column>,
    unread: u64,
}

impl<'f> Layout<'f> {
    fn of(frame: &'f Frame, name: &str, format: &str) -> Layout<'f> {
        // Readings of hardware counters are taken at both ends.
        let is_start = |column: &Column| {
            name.contains("PINS_PAPI")
                && column.name.strip_suffix("_start").is_some_and(|plain| frame.column(plain).is_some())
        };
        let (starts, ends): (Vec<&Column>, Vec<&Column>) = frame.columns.iter().partition(|column| is_start(column));
        let codes: Vec<char> = format.chars().filter(char::is_ascii_alphabetic).collect();
        let code = |number: usize| if codes.len() == ends.len() { codes[number] } else { 'd' };
        let (mut convertor, mut at, mut unread) = (String::new(), 0usize, 0);
        let mut kept = Vec::with_capacity(ends.len());
        for (number, column) in ends.iter().enumerate() {
            let word = match &column.values {
                Values::Integers(_) => "int64_t".to_owned(),
                Values::Unsigned(_) => "uint64_t".to_owned(),
                // A float prints with fewer digits than a double, and a row without info makes doubles of whole numbers.
                Values::Doubles(values) => match code(number) {
                    'f' => "float",
                    'b' | 'h' | 'i' | 'l' | 'q' if values.iter().all(is_whole) => "int64_t",
                    'B' | 'H' | 'I' | 'L' | 'Q' if values.iter().all(is_whole) => "uint64_t",
                    _ => "double",
                }
                .to_owned(),
                Values::Objects(texts) => {
                    let bytes = |object: &Object| if let Object::Text(text) = object { text.len() } else { 0 };
                    format!("char[{}]", texts.iter().map(bytes).max().unwrap_or(0).max(1))
                }
                Values::Unread => String::new(),
            };
            let is_name = !column.name.contains(['{', '}', ';'])
                && !column.name.starts_with("##")
                && column.name.trim() == column.name;
            if word.is_empty() || !is_name {
                unread += 1;
                continue;
            }
            convertor.push_str(&format!("{}{{{word}}};", column.name));
            kept.push(*column);
            // Enough, wherever its alignment puts it.
            at = at.saturating_add(
                8 + word.strip_prefix("char[").and_then(|rest| rest.strip_suffix(']')?.parse().ok()).unwrap_or(8),
            );
        }
        let entry = Entry { name: name.to_owned(), convertor, info_bytes: at };
        let kind = Type::of(&entry);
        let start = |column: &&Column| {
            starts.iter().find(|start| start.name.strip_suffix("_start") == Some(&column.name)).copied()
        };
        let starts = if starts.is_empty() {
            Vec::new()
        } else {
            kept.iter().map(|column| start(column).unwrap_or(column)).collect()
        };
        Layout { entry, kind, ends: kept, starts, unread }
    }

    fn bytes(&self) -> usize {
        self.entry.info_bytes * if self.starts.is_empty() { 1 } else { 2 }
    }

    /// Whether a row has no info: nothing in it is a number.
    fn is_blank(&self, row: usize) -> bool {
        let is_missing = |column: &&Column| match column.values.object(row) {
            Object::None => true,
            Object::Double(number) => number.is_nan(),
            _ => false,
        };
        self.ends.iter().chain(&self.starts).all(is_missing)
    }

    fn write(&self, frame: &Frame, row: usize, infos: &mut Vec<u8>) {
        debug_assert!(row < frame.rows, "a row of the index");
        for columns in [&self.ends, &self.starts] {
            if columns.is_empty() {
                continue;
            }
            let from = infos.len();
            infos.resize(from + self.entry.info_bytes, 0);
            for (field, column) in self.kind.fields.iter().zip(columns) {
                let info = &mut infos[from..];
                match &column.values {
                    Values::Integers(values) => field.write(info, &values[row].to_le_bytes()),
                    Values::Unsigned(values) => field.write(info, &values[row].to_le_bytes()),
                    Values::Doubles(values) => field.write_double(info, values[row]),
                    Values::Objects(values) => field.write(info, shown(&values[row]).as_bytes()),
                    Values::Unread => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, values: Values) -> Column {
        Column { name: name.to_owned(), values }
    }

    #[test]
    fn events_behind_a_step_of_the_clock_are_no_starts() {
        let number = |name, values: [i64; 2]| column(name, Values::Integers(values.to_vec()));
        let messages = ["event lack completion match.", "event happened before its predecessor"];
        let messages = messages.iter().map(|message| Object::Text((*message).into())).collect();
        let columns = vec![
            number("node_id", [0, 0]),
            number("stream_id", [0, 0]),
            number("taskpool_id", [2, 2]),
            number("type", [0, 0]),
            number("begin", [350, 160]),
            number("end", [0, 0]),
            number("id", [7, 1]),
            column("error_msg", Values::Objects(messages)),
        ];
        let errors = Frame { rows: 2, index: vec![0, 1], columns };
        let source = Source::of_bytes(vec![1]).expect("a source");
        let rows = Rows::of(&errors, &source, "errors").expect("all columns");
        let entry = Entry { name: "j::A".to_owned(), convertor: String::new(), info_bytes: 0 };
        let kinds = Kinds { entries: vec![entry], places: Vec::new(), start_infos: vec![0], infos: Vec::new() };
        let node = Node { numbers: vec![0], starts: vec![Vec::new()], ended: vec![Vec::new()], ..Node::default() };
        let (mut ranks, mut stats) = (BTreeMap::from([(0, node)]), Stats::default());
        kinds.unpaired(&errors, &rows, &mut ranks, &mut stats);
        let starts: Vec<i64> = ranks[&0].starts[0].iter().map(|start| start.time).collect();
        assert_eq!((starts, stats.count(findings::LEFT_OUT_BY_CONVERTER)), (vec![350], 1));
    }

    #[test]
    fn a_row_without_info_makes_no_doubles_of_the_others() {
        let columns = vec![
            column("tcid", Values::Doubles(vec![3.0, f64::NAN])),
            column("k", Values::Doubles(vec![-1.0, f64::NAN])),
            column("x", Values::Doubles(vec![2.5, f64::NAN])),
            column("s", Values::Objects(vec![Object::Text("a".into()), Object::None])),
        ];
        let frame = Frame { rows: 2, index: vec![0, 1], columns };
        let layout = Layout::of(&frame, "j::A", "@Iid4s");
        assert_eq!(layout.entry.convertor, "tcid{uint64_t};k{int64_t};x{double};s{char[1]};");
        assert_eq!((layout.is_blank(0), layout.is_blank(1)), (false, true));
        let (mut info, mut json) = (Vec::new(), Vec::new());
        layout.write(&frame, 0, &mut info);
        layout.kind.members(&info, false, false, &mut json);
        assert_eq!(String::from_utf8_lossy(&json), r#""tcid":3,"k":-1,"x":2.5,"s":"a""#);
    }
}
