//! Rows that are begins and ends: two rows are combined into one task before any other step.
//!
//! ```text
//! ts,event,thread,name             --option table.phase=event:begin=Enter,end=Leave --option table.time=ts:us
//! 10,Enter,t1,solve
//! 12,Enter,t1,sweep                solve [10, 30) and sweep [12, 20)
//! 20,Leave,t1,sweep
//! 30,Leave,t1,solve
//! ```
//! Where the mapping names a `key` column, an end belongs to the innermost open begin with the same key. Else it belongs to the
//! innermost open begin of its location that has its name, or, without a name, to the innermost one: as Perfetto pairs slices.
//!
//! Life of the data: the rows of the file wait here, charged to the memory pool, until the last one has been seen, because a
//! task takes the position of its begin, and the end of the first begin may be the last row. While `tq import` is short of memory they
//! wait on disk, where they are sorted by the task that they belong to. Then the begin rows are passed
//! on in batches with one more column, the time of the end; a cell that is empty in the begin is taken from the end.
//!
//! Strays are counted: begins that never end (tasks without a finish), ends of nothing, rows that are neither.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder, new_null_array};
use datafusion::arrow::compute::kernels::cmp::neq;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{interleave, is_not_null};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{Row, RowConverter, SortField};
use serde_json::value::RawValue;

use super::build::SectionSink;
use super::mapping::{END_TIME, Phase};
use super::read::{Batch, CellKind, Header, Place, Places, Sink};
use crate::error::ImportError;
use crate::trace::{ROWS_PER_BATCH, Sorter, Stats, Words, findings, record};

/// An error about a trace without begins shows some of the words that there are instead.
const WORDS_SHOWN: usize = 5;

/// A row of a batch that waits.
type At = (u32, u32);

/// A begin, and the end that was found for it.
#[derive(Debug, Clone, Copy)]
struct Span {
    begin: At,
    end: Option<At>,
}

/// Takes the rows of a section that are begins and ends, and hands spans to the sink of tasks.
pub(super) struct Pairing<'a> {
    tasks: SectionSink<'a>,
    phase: &'a Phase,
    columns: Option<Columns>,
    /// How many begins there were.
    begins: u64,
    batches: Vec<Batch>,
    /// The begins of these batches, in their order.
    spans: Vec<Span>,
    /// Where the rows are instead, once memory was short.
    away: Option<Away>,
    unfinished: (u64, Option<Place>),
    /// Open begins by key or by location.
    open: HashMap<i32, Vec<Open>>,
    words: Words,
    /// Words of the rows before the first begin.
    other_words: Vec<String>,
    /// Bytes asked for: of batches and spans, and of words.
    reserved: usize,
    reserved_words: usize,
}

/// Columns of the batches.
struct Columns {
    phase: usize,
    time: usize,
    key: Option<usize>,
}

struct Open {
    span: u64,
    name: Option<i32>,
}

/// A row of a batch that is the begin or the end of a span.
#[derive(Debug, Clone, Copy)]
struct Side {
    row: u32,
    span: u64,
    is_end: bool,
}

/// Rows on disk, sorted by their spans.
struct Away {
    rows: Sorter<AwayRow>,
    converter: RowConverter,
    cells: CellKind,
    has_rest: bool,
}

/// A row on disk. In the order of its fields the end of a span follows its begin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AwayRow {
    span: u64,
    is_end: bool,
    place: u64,
    is_line: bool,
    rest: Option<Box<str>>,
    /// Its cells, as [`RowConverter`] writes them.
    cells: Vec<u8>,
}

record!(AwayRow { span, is_end, place, is_line, rest, cells });

/// Begins in order, with what their ends have; NULL where there is no end.
struct Pairs {
    /// Of each column.
    begins: Vec<ArrayRef>,
    ends: Vec<ArrayRef>,
    /// Further members of JSON records, of begins and ends.
    rest: Option<(ArrayRef, ArrayRef)>,
    /// Where the begins stood.
    places: Vec<Place>,
    have_ends: Vec<bool>,
    cells: CellKind,
}

impl Sink for Pairing<'_> {
    fn header(&mut self, mut header: Header) -> Result<(), ImportError> {
        let index = |name: &str| header.columns.iter().position(|column| column == name);
        let missing = |key: &str, name: &str| self.phase.refuse_column(key, name, &header.found);
        let phase = index(&self.phase.column).ok_or_else(|| missing("phase", &self.phase.column))?;
        let time = self.phase.time_column(&header.columns, &header.found);
        let time = time.ok_or_else(|| missing("time", &self.phase.time))?;
        let key = match &self.phase.key {
            Some(key) => Some(index(key).ok_or_else(|| missing("key", key))?),
            None => None,
        };
        let end_time = format!("{END_TIME}{}", header.columns[time]);
        header.columns.push(end_time.clone());
        header.found.push(end_time);
        self.columns = Some(Columns { phase, time, key });
        self.tasks.header(header)?;
        self.tasks.leave_out_of_args(phase);
        Ok(())
    }

    fn batch(&mut self, batch: Batch) -> Result<(), ImportError> {
        let bytes = batch.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>()
            + batch.rest.as_ref().map_or(0, Array::get_array_memory_size)
            + batch.rows * size_of::<Span>();
        let words = self.words.memory();
        let sides = self.pair(&batch)?;
        self.tasks.reserve(self.words.memory().saturating_sub(words))?;
        self.reserved_words += self.words.memory().saturating_sub(words);
        if let Some(away) = &mut self.away {
            return away.put(&batch, &sides, &self.tasks);
        }
        let granted = self.tasks.reserve(bytes);
        self.reserved += if granted.is_ok() { bytes } else { 0 };
        let number = self.batches.len() as u32;
        for Side { row, span, is_end } in sides {
            match is_end {
                false => self.spans.push(Span { begin: (number, row), end: None }),
                true => self.spans[span as usize].end = Some((number, row)),
            }
        }
        self.batches.push(batch);
        let room = self.tasks.room();
        let is_short = if granted.is_err() { room.disk().is_some() } else { room.short().is_some() };
        if is_short && self.put_away()? { Ok(()) } else { granted }
    }

    fn stats(&mut self) -> &mut Stats {
        self.tasks.stats()
    }
}

impl<'a> Pairing<'a> {
    pub(super) fn new(tasks: SectionSink<'a>, phase: &'a Phase) -> Pairing<'a> {
        Pairing {
            tasks,
            phase,
            columns: None,
            begins: 0,
            batches: Vec::new(),
            spans: Vec::new(),
            away: None,
            unfinished: (0, None),
            open: HashMap::new(),
            words: Words::default(),
            other_words: Vec::new(),
            reserved: 0,
            reserved_words: 0,
        }
    }

    /// After the last batch: the spans become tasks.
    pub(super) fn finish(mut self) -> Result<(), ImportError> {
        if self.begins == 0 && !self.other_words.is_empty() {
            return Err(self.phase.refuse_words(&self.other_words));
        }
        match self.away.take() {
            None => {
                for spans in std::mem::take(&mut self.spans).chunks(ROWS_PER_BATCH) {
                    let pairs = self.pairs_of(spans)?;
                    self.pass_on(pairs)?;
                }
                self.batches.clear();
            }
            Some(Away { rows, converter, cells, has_rest }) => {
                let (mut begins, mut ends) = (Vec::new(), Vec::new());
                let mut rows = rows.sorted()?.peekable();
                while let Some(row) = rows.next().transpose()? {
                    match row.is_end {
                        true => ends.extend(begins.len().checked_sub(1).map(|begin| (begin, row))),
                        false => begins.push(row),
                    }
                    let is_whole = !matches!(rows.peek(), Some(Ok(next)) if next.is_end);
                    if is_whole && (begins.len() == ROWS_PER_BATCH || rows.peek().is_none()) {
                        let (begins, ends) = (std::mem::take(&mut begins), std::mem::take(&mut ends));
                        let pairs = pairs_of_rows(&begins, &ends, &converter, (cells, has_rest));
                        self.pass_on(pairs.map_err(|error| self.tasks.arrow(error))?)?;
                    }
                }
            }
        }
        if let (unfinished, Some(place)) = self.unfinished {
            let place = self.tasks.shown(place);
            self.tasks.stats().note(findings::UNFINISHED, unfinished, || format!("{place}: begins and never ends"));
        }
        self.tasks.release(self.reserved + self.reserved_words);
        self.tasks.finish()
    }

    /// Moves all rows to disk, if their cells can be there.
    fn put_away(&mut self) -> Result<bool, ImportError> {
        let Some(first) = self.batches.first() else { return Ok(false) };
        let fields: Vec<SortField> =
            first.columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        if !RowConverter::supports_fields(&fields) {
            return Ok(false);
        }
        let converter = RowConverter::new(fields).map_err(|error| self.tasks.arrow(error))?;
        let (rows, cells, has_rest) = (Sorter::new(self.tasks.room()), first.cells, first.rest.is_some());
        let mut away = Away { rows, converter, cells, has_rest };
        let mut sides: Vec<Vec<Side>> = vec![Vec::new(); self.batches.len()];
        for (Span { begin, end }, span) in std::mem::take(&mut self.spans).into_iter().zip(0..) {
            sides[begin.0 as usize].push(Side { row: begin.1, span, is_end: false });
            if let Some(end) = end {
                sides[end.0 as usize].push(Side { row: end.1, span, is_end: true });
            }
        }
        for (batch, sides) in std::mem::take(&mut self.batches).into_iter().zip(sides) {
            away.put(&batch, &sides, &self.tasks)?;
        }
        self.away = Some(away);
        self.tasks.release(std::mem::take(&mut self.reserved));
        Ok(true)
    }

    /// Enters the begins of a batch, and finds the begins of its ends.
    fn pair(&mut self, batch: &Batch) -> Result<Vec<Side>, ImportError> {
        let Some(columns) = &self.columns else { return Ok(Vec::new()) };
        let mut sides = Vec::with_capacity(batch.rows);
        let phases = self.tasks.texts_of(batch, columns.phase)?;
        let keys = columns.key.map(|key| self.tasks.texts_of(batch, key)).transpose()?;
        let (names, locations) =
            (self.tasks.texts_of_ours(batch, "name")?, self.tasks.texts_of_ours(batch, "location")?);
        let (mut ends, mut strays, mut others) = (0, Stray::default(), Stray::default());
        for row in 0..batch.rows {
            let phase = if phases.is_valid(row) { phases.value(row).trim() } else { "" };
            let name = word_at(names.as_ref(), row).map(|name| self.words.intern(name));
            // Keys and locations share a map; only one of the two is in use for a row.
            let key = word_at(keys.as_ref(), row);
            let stack = match key {
                Some(key) => self.words.intern(key),
                None => word_at(locations.as_ref(), row).map_or(NO_STACK, |location| self.words.intern(location)),
            };
            // A key says all: the name of its end may differ.
            let name = name.filter(|_| key.is_none());
            if phase == self.phase.begin {
                self.open.entry(stack).or_default().push(Open { span: self.begins, name });
                sides.push(Side { row: row as u32, span: self.begins, is_end: false });
                self.begins += 1;
            } else if phase == self.phase.end {
                let stack = self.open.entry(stack).or_default();
                let found = match name {
                    Some(name) => stack.iter().rposition(|open| open.name == Some(name)),
                    None => stack.len().checked_sub(1),
                };
                match found {
                    Some(at) => {
                        sides.push(Side { row: row as u32, span: stack.remove(at).span, is_end: true });
                        ends += 1;
                    }
                    None => strays.count(row),
                }
            } else {
                others.count(row);
            }
            let is_new = || !self.other_words.iter().any(|word| word == phase);
            if self.begins == 0 && self.other_words.len() < WORDS_SHOWN && is_new() {
                self.other_words.push(phase.chars().take(60).collect());
            }
        }
        let place = |row: Option<usize>| self.tasks.place(batch, row.unwrap_or(0));
        let (stray_at, other_at) = (place(strays.first), place(others.first));
        let other = others.first.map_or("", |row| if phases.is_valid(row) { phases.value(row) } else { "" }).to_owned();
        let (begin, end) = (&self.phase.begin, &self.phase.end);
        let stats = self.tasks.stats();
        // Begins are booked when they go on.
        stats.records(ends + strays.count + others.count);
        stats.left_out(findings::END_ROWS, ends, || "the ends of tasks, which give them their finish".to_owned());
        stats.left_out(findings::UNMATCHED_END, strays.count, || format!("{stray_at}: ends nothing that is open"));
        stats.left_out(findings::OTHER_PHASE, others.count, || {
            let other: String = other.chars().take(60).collect();
            format!("{other_at}: `{other}` is neither `{begin}` nor `{end}`")
        });
        Ok(sides)
    }

    /// Some begins in memory, with their ends.
    fn pairs_of(&self, spans: &[Span]) -> Result<Pairs, ImportError> {
        let sources = Sources::of(spans);
        let batches: Vec<&Batch> = sources.batches.iter().map(|&batch| &self.batches[batch as usize]).collect();
        let Some(first) = batches.first() else { return Err(self.tasks.internal("spans of no batch")) };
        let cells = |arrays: &[ArrayRef]| sources.cells(arrays).map_err(|error| self.tasks.arrow(error));
        let column = |column: usize| -> Vec<ArrayRef> {
            batches.iter().map(|batch| Arc::clone(&batch.columns[column])).collect()
        };
        let columns: Result<Vec<(ArrayRef, ArrayRef)>, ImportError> =
            (0..first.columns.len()).map(|at| cells(&column(at))).collect();
        let (begins, ends) = columns?.into_iter().unzip();
        let of_batch = |batch: &&Batch| -> ArrayRef {
            Arc::new(batch.rest.clone().unwrap_or_else(|| StringArray::new_null(batch.rows)))
        };
        let rest =
            first.rest.is_some().then(|| cells(&batches.iter().map(of_batch).collect::<Vec<_>>())).transpose()?;
        let place = |span: &Span| self.batches[span.begin.0 as usize].places.at(span.begin.1 as usize);
        Ok(Pairs {
            begins,
            ends,
            rest,
            places: spans.iter().map(place).collect(),
            have_ends: spans.iter().map(|span| span.end.is_some()).collect(),
            cells: first.cells,
        })
    }

    /// Hands begins on as rows of tasks, with what only their ends have.
    fn pass_on(&mut self, pairs: Pairs) -> Result<(), ImportError> {
        let Pairs { begins, ends, rest, places, have_ends, cells } = pairs;
        self.unfinished.0 += have_ends.iter().filter(|has_end| !**has_end).count() as u64;
        let first = have_ends.iter().position(|has_end| !has_end).map(|at| places[at]);
        self.unfinished.1 = self.unfinished.1.or(first);
        let time = self.columns.as_ref().map_or(0, |columns| columns.time);
        let phase = self.columns.as_ref().map_or(0, |columns| columns.phase);
        let mut differing = Differing::default();
        let mut columns = Vec::with_capacity(begins.len() + 1);
        let mut end_times = None;
        for (column, (begins, ends)) in begins.into_iter().zip(ends).enumerate() {
            if column == time {
                columns.push(begins);
                end_times = Some(ends);
                continue;
            }
            if column != phase {
                // Nested types have no order; their ends are not compared.
                if let Ok(differ) = neq(&begins, &ends) {
                    let first = (0..differ.len()).find(|&at| differ.is_valid(at) && differ.value(at));
                    differing.count(differ.true_count() as u64, first);
                }
            }
            let has_own = is_not_null(&begins).map_err(|error| self.tasks.arrow(error))?;
            columns.push(zip(&has_own, &begins, &ends).map_err(|error| self.tasks.arrow(error))?);
        }
        columns.extend(end_times);
        let rest = rest.map(|(begins, ends)| merged(begins.as_string(), ends.as_string(), &mut differing));
        if let Some(first) = differing.first {
            let place = self.tasks.shown(places[first]);
            let example = || format!("{place}: its end has another value, and the value of the begin stays");
            self.tasks.stats().note(findings::END_VALUE_NOT_KEPT, differing.count, example);
        }
        let rows = places.len();
        self.tasks.batch(Batch { rows, columns, cells, rest, places: all_places(&places) })
    }
}

impl Away {
    /// Takes rows of a batch.
    fn put(&mut self, batch: &Batch, sides: &[Side], tasks: &SectionSink<'_>) -> Result<(), ImportError> {
        let converted = self.converter.convert_columns(&batch.columns).map_err(|error| tasks.arrow(error))?;
        for Side { row, span, is_end } in sides {
            let at = *row as usize;
            let rest = batch.rest.as_ref().filter(|rest| rest.is_valid(at)).map(|rest| rest.value(at).into());
            let (place, is_line) = match batch.places.at(at) {
                Place::Line(line) => (line, true),
                Place::Row(row) => (row, false),
            };
            let cells = converted.row(at).as_ref().to_vec();
            self.rows.push(AwayRow { span: *span, is_end: *is_end, place, is_line, rest, cells })?;
        }
        Ok(())
    }
}

/// Begins that were on disk, with their ends, each of which knows the place of its begin among those.
fn pairs_of_rows(
    begins: &[AwayRow],
    ends: &[(usize, AwayRow)],
    converter: &RowConverter,
    (cells, has_rest): (CellKind, bool),
) -> Result<Pairs, ArrowError> {
    let parser = converter.parser();
    let arrays = |rows: &mut dyn Iterator<Item = &AwayRow>| -> Result<Vec<ArrayRef>, ArrowError> {
        let rows: Vec<Row<'_>> = rows.map(|row| parser.parse(&row.cells)).collect();
        converter.convert_rows(rows)
    };
    // Behind the ends stands a NULL.
    let mut of_begins = vec![(1, 0); begins.len()];
    ends.iter().enumerate().for_each(|(end, (begin, _))| of_begins[*begin] = (0, end));
    let spread = |ends: ArrayRef| interleave(&[&*ends, &*new_null_array(ends.data_type(), 1)], &of_begins);
    let rest = |rows: &mut dyn Iterator<Item = &AwayRow>| -> ArrayRef {
        Arc::new(rows.map(|row| row.rest.as_deref()).collect::<StringArray>())
    };
    let rests = || -> Result<(ArrayRef, ArrayRef), ArrowError> {
        Ok((rest(&mut begins.iter()), spread(rest(&mut ends.iter().map(|(_, row)| row)))?))
    };
    let place = |row: &AwayRow| if row.is_line { Place::Line(row.place) } else { Place::Row(row.place) };
    Ok(Pairs {
        begins: arrays(&mut begins.iter())?,
        ends: arrays(&mut ends.iter().map(|(_, row)| row))?.into_iter().map(spread).collect::<Result<_, _>>()?,
        rest: has_rest.then(rests).transpose()?,
        places: begins.iter().map(place).collect(),
        have_ends: of_begins.iter().map(|(source, _)| *source == 0).collect(),
        cells,
    })
}

/// Further members of JSON records: those of the begin, then those that only the end has.
fn merged(begins: &StringArray, ends: &StringArray, differing: &mut Differing) -> StringArray {
    let mut merged = StringBuilder::new();
    for at in 0..begins.len() {
        match (word_at(Some(begins), at), word_at(Some(ends), at)) {
            (Some(begin), Some(end)) if begin != end => {
                let (own, others) = (members(begin), members(end));
                let mut all = begin.to_owned();
                for (key, value) in others {
                    match own.iter().find(|(known, _)| *known == key) {
                        Some((_, known)) if known.get() != value.get() => differing.count(1, Some(at)),
                        Some(_) => {}
                        None => all.push_str(&format!(",{}:{}", serde_json::Value::from(key), value.get())),
                    }
                }
                merged.append_value(all);
            }
            (begin, end) => merged.append_option(begin.or(end)),
        }
    }
    merged.finish()
}

fn all_places(places: &[Place]) -> Places {
    let numbers = places.iter().map(|place| match place {
        Place::Line(number) | Place::Row(number) => *number,
    });
    let are_lines = places.iter().any(|place| matches!(place, Place::Line(_)));
    if are_lines { Places::Lines(numbers.collect()) } else { Places::Numbers(numbers.collect()) }
}

/// A text that says something.
fn word_at(texts: Option<&StringArray>, row: usize) -> Option<&str> {
    texts.and_then(|texts| texts.is_valid(row).then(|| texts.value(row))).filter(|text| !text.is_empty())
}

/// Values of ends that are others than those of their begins.
#[derive(Default)]
struct Differing {
    count: u64,
    /// The first span that has one.
    first: Option<usize>,
}

impl Differing {
    fn count(&mut self, values: u64, first: Option<usize>) {
        self.count += values;
        self.first = self.first.into_iter().chain(first).min();
    }
}

/// The stack of rows that name no location.
const NO_STACK: i32 = -1;

#[derive(Default)]
struct Stray {
    count: u64,
    first: Option<usize>,
}

impl Stray {
    fn count(&mut self, row: usize) {
        self.count += 1;
        self.first.get_or_insert(row);
    }
}

/// `"a":1,"b":"x"` as keys and values.
fn members(text: &str) -> Vec<(String, Box<RawValue>)> {
    let object = format!("{{{text}}}");
    serde_json::from_str::<std::collections::BTreeMap<String, Box<RawValue>>>(&object)
        .map(|members| members.into_iter().collect())
        .unwrap_or_default()
}

/// Where the cells of some spans come from: the batches, and of each begin and end the batch among those and the row.
struct Sources {
    batches: Vec<u32>,
    begins: Vec<(usize, usize)>,
    ends: Vec<(usize, usize)>,
}

impl Sources {
    fn of(spans: &[Span]) -> Sources {
        let mut batches: Vec<u32> =
            spans.iter().flat_map(|span| [Some(span.begin.0), span.end.map(|end| end.0)]).flatten().collect();
        batches.sort_unstable();
        batches.dedup();
        let at = |(batch, row): At| (batches.partition_point(|&known| known < batch), row as usize);
        let begins = spans.iter().map(|span| at(span.begin)).collect();
        // Behind all batches stands a NULL.
        let ends = spans.iter().map(|span| span.end.map_or((batches.len(), 0), at)).collect();
        Sources { batches, begins, ends }
    }

    /// The cells of the begins and of the ends, NULL where there is no end.
    fn cells(&self, arrays: &[ArrayRef]) -> Result<(ArrayRef, ArrayRef), ArrowError> {
        let none = new_null_array(arrays[0].data_type(), 1);
        let sources: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).chain([none.as_ref()]).collect();
        Ok((interleave(&sources, &self.begins)?, interleave(&sources, &self.ends)?))
    }
}
