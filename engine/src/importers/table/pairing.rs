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
//! task takes the position of its begin, and the end of the first begin may be the last row. Then the begin rows are passed
//! on in batches with one more column, the time of the end; a cell that is empty in the begin is taken from the end.
//!
//! Strays are counted: begins that never end (tasks without a finish), ends of nothing, rows that are neither.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, StringArray, StringBuilder, new_null_array};
use datafusion::arrow::compute::kernels::cmp::neq;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{interleave, is_not_null};
use datafusion::arrow::error::ArrowError;
use serde_json::value::RawValue;

use super::build::SectionSink;
use super::mapping::{END_TIME, Phase};
use super::read::{Batch, Header, Place, Places, Sink};
use crate::error::ImportError;
use crate::trace::{ROWS_PER_BATCH, Stats, Words, findings};

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
    batches: Vec<Batch>,
    spans: Vec<Span>,
    /// Open begins by key or by location.
    open: HashMap<i32, Vec<Open>>,
    words: Words,
    /// Words of the rows before the first begin.
    other_words: Vec<String>,
    reserved: usize,
}

/// Columns of the batches.
struct Columns {
    phase: usize,
    time: usize,
    key: Option<usize>,
}

struct Open {
    span: usize,
    name: Option<i32>,
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
        self.pair(&batch)?;
        let bytes = bytes + self.words.memory().saturating_sub(words);
        self.tasks.reserve(bytes)?;
        self.reserved += bytes;
        self.batches.push(batch);
        Ok(())
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
            batches: Vec::new(),
            spans: Vec::new(),
            open: HashMap::new(),
            words: Words::default(),
            other_words: Vec::new(),
            reserved: 0,
        }
    }

    /// After the last batch: the spans become tasks.
    pub(super) fn finish(mut self) -> Result<(), ImportError> {
        if self.spans.is_empty() && !self.other_words.is_empty() {
            return Err(self.phase.refuse_words(&self.other_words));
        }
        let unfinished = self.spans.iter().filter(|span| span.end.is_none()).count() as u64;
        if let Some(first) = self.spans.iter().find(|span| span.end.is_none()) {
            let place = self.tasks.place(&self.batches[first.begin.0 as usize], first.begin.1 as usize);
            self.tasks.stats().note(findings::UNFINISHED, unfinished, || format!("{place}: begins and never ends"));
        }
        for spans in std::mem::take(&mut self.spans).chunks(ROWS_PER_BATCH) {
            let batch = self.batch_of(spans)?;
            self.tasks.batch(batch)?;
        }
        self.batches.clear();
        self.tasks.release(self.reserved);
        self.tasks.finish()
    }

    /// Enters the begins of a batch, and finds the begins of its ends.
    fn pair(&mut self, batch: &Batch) -> Result<(), ImportError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        let phases = self.tasks.texts_of(batch, columns.phase)?;
        let keys = columns.key.map(|key| self.tasks.texts_of(batch, key)).transpose()?;
        let (names, locations) =
            (self.tasks.texts_of_ours(batch, "name")?, self.tasks.texts_of_ours(batch, "location")?);
        let number = self.batches.len() as u32;
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
                let open = Open { span: self.spans.len(), name };
                self.open.entry(stack).or_default().push(open);
                self.spans.push(Span { begin: (number, row as u32), end: None });
            } else if phase == self.phase.end {
                let stack = self.open.entry(stack).or_default();
                let found = match name {
                    Some(name) => stack.iter().rposition(|open| open.name == Some(name)),
                    None => stack.len().checked_sub(1),
                };
                match found {
                    Some(at) => {
                        let open = stack.remove(at);
                        self.spans[open.span].end = Some((number, row as u32));
                        ends += 1;
                    }
                    None => strays.count(row),
                }
            } else {
                others.count(row);
            }
            let is_new = || !self.other_words.iter().any(|word| word == phase);
            if self.spans.is_empty() && self.other_words.len() < WORDS_SHOWN && is_new() {
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
        Ok(())
    }

    /// The rows of some begins, with what only their ends have.
    fn batch_of(&mut self, spans: &[Span]) -> Result<Batch, ImportError> {
        let sources = Sources::of(spans);
        let batches: Vec<&Batch> = sources.batches.iter().map(|&batch| &self.batches[batch as usize]).collect();
        let Some(first) = batches.first() else { return Err(self.tasks.internal("spans of no batch")) };
        let time = self.columns.as_ref().map_or(0, |columns| columns.time);
        let phase = self.columns.as_ref().map_or(0, |columns| columns.phase);
        let mut differing = Differing::default();
        let mut columns = Vec::with_capacity(first.columns.len() + 1);
        let mut end_times = None;
        for column in 0..first.columns.len() {
            let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| &batch.columns[column]).collect();
            let (begins, ends) = sources.cells(&arrays).map_err(|error| self.tasks.arrow(error))?;
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
        let rest = first.rest.is_some().then(|| self.rest(spans, &mut differing));
        let places = self.places(spans);
        let cells = first.cells;
        if let Some(first) = differing.first {
            let (batch, row) = spans[first].begin;
            let place = self.tasks.place(&self.batches[batch as usize], row as usize);
            let example = || format!("{place}: its end has another value, and the value of the begin stays");
            self.tasks.stats().note(findings::END_VALUE_NOT_KEPT, differing.count, example);
        }
        Ok(Batch { rows: spans.len(), columns, cells, rest, places })
    }

    /// Further members of JSON records: those of the begin, then those that only the end has.
    fn rest(&self, spans: &[Span], differing: &mut Differing) -> StringArray {
        let text = |(batch, row): At| {
            let rest = self.batches[batch as usize].rest.as_ref()?;
            let row = row as usize;
            (rest.is_valid(row) && !rest.value(row).is_empty()).then(|| rest.value(row))
        };
        let mut merged = StringBuilder::new();
        for (at, span) in spans.iter().enumerate() {
            match (text(span.begin), span.end.and_then(text)) {
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

    fn places(&self, spans: &[Span]) -> Places {
        let mut numbers = Vec::with_capacity(spans.len());
        let mut are_lines = false;
        for span in spans {
            let (batch, row) = span.begin;
            numbers.push(match self.batches[batch as usize].places.at(row as usize) {
                Place::Line(line) => {
                    are_lines = true;
                    line
                }
                Place::Row(row) => row,
            });
        }
        if are_lines { Places::Lines(numbers) } else { Places::Numbers(numbers) }
    }
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
    fn cells(&self, arrays: &[&ArrayRef]) -> Result<(ArrayRef, ArrayRef), ArrowError> {
        let none = new_null_array(arrays[0].data_type(), 1);
        let sources: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).chain([none.as_ref()]).collect();
        Ok((interleave(&sources, &self.begins)?, interleave(&sources, &self.ends)?))
    }
}
