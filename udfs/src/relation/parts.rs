//! Splits the rows of an input into parts that are computed one after the other, so that independent rows need not be in memory together.
//!
//! ```text
//! input ──▶ memory ─────────────────────────▶ all rows, one part          while they take no more than half of the limit
//!             └─ hash of run and key ─▶ files ─▶ part 0 ─▶ … ─▶ part 63   else
//! ```
//!
//! Rows of one run and one key, mostly a location, are always in the same part, so a function that computes each lane by itself gets all rows
//! of a lane at once, however many parts there are. The number of parts, and with it the order of an answer, depends on the memory. On disk a
//! dictionary column has only its keys: the words of all batches are numbered once and stay in memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::hash_utils::{RandomState, create_hashes};
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::SpillFile;
use datafusion_physical_plan::SpillManager;

use crate::graph::NONE;
use crate::lanes::words::{Words, WordsReading};
use crate::relation::call::{Call, Work};
use crate::relation::rows::{Role, Rows};
use crate::relation::runs::{Runs, Stretch};
use crate::relation::stored::{Disk, Written};
use crate::relation::{OrderOfRuns, is_text};

/// Into how many parts rows are divided on disk.
pub(super) const PARTS: usize = 64;

/// Rows of a part that are written together, if an eighth of the memory has room for those of all parts.
const ROWS_TOGETHER: std::ops::RangeInclusive<usize> = 64..=2048;

/// How an input is read in parts.
#[derive(Debug, Clone, Copy)]
pub struct InputPlan<'a> {
    /// The input's name.
    pub input: &'static str,
    /// Which of its rows each part needs.
    pub share: Share<'a>,
    /// Bytes that the computation takes for each row, beside the row itself.
    pub row_bytes: usize,
}

/// Which rows of an input a part needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share<'a> {
    /// All.
    All,
    /// Those of its runs.
    Runs,
    /// Those of its runs and values of this column, if the input has it.
    Lanes(&'a str),
}

/// The rows of the inputs of a function, part by part.
pub struct Parts {
    inputs: Vec<Source>,
    /// The part at hand: the rows of each input.
    rows: Vec<Rows>,
    /// The number of the part that comes next.
    next: usize,
    /// What was asked of the memory pool before the first part came, and what of it outlives a part.
    before: usize,
    lasting: usize,
}

/// An input that was read.
struct Source {
    input: &'static str,
    has_runs: bool,
    row_bytes: usize,
    /// What its batches take in memory.
    kept_bytes: usize,
    place: Place,
}

enum Place {
    Memory(Vec<RecordBatch>),
    Disk(Disk),
}

impl Parts {
    /// Reads inputs to their end; the first one decides which runs there are.
    ///
    /// # Errors
    /// Those of the inputs; no memory and no room on disk.
    pub fn read(call: &mut Call, plans: &[InputPlan<'_>]) -> Result<Parts> {
        let (before, lasting) = (call.work.size(), call.work.lasting());
        let mut parts = Parts { inputs: vec![], rows: vec![], next: 0, before, lasting };
        let mut is_divided = false;
        for plan in plans {
            let source = Source::read(call, plan, is_divided)?;
            is_divided |= matches!(source.place, Place::Disk(_));
            parts.inputs.push(source);
        }
        if is_divided {
            // An input before the one that did not fit.
            for (source, plan) in parts.inputs.iter_mut().zip(plans) {
                source.divide(call, plan)?;
            }
        }
        (parts.before, parts.lasting) = (call.work.size(), call.work.lasting());
        Ok(parts)
    }

    /// The next part: the rows of each input, of the first one never none; `None` at the end. What was asked of the memory pool since the
    /// last one is given back, but for [`Work::grow_lasting`].
    ///
    /// # Errors
    /// A part that does not fit in memory, with how much it would need.
    pub fn next(&mut self, call: &mut Call, runs: &mut Runs) -> Result<Option<&[Rows]>> {
        call.work.check()?;
        let held = self.before + (call.work.lasting() - self.lasting);
        let number = self.next;
        let (Some(first), true) = (self.inputs.first(), number < PARTS) else { return Ok(None) };
        let Place::Disk(disk) = &first.place else {
            call.work.forget(held);
            self.next = PARTS;
            if self.rows.is_empty() {
                self.rows = self.inputs_in(0, call, runs)?;
            }
            return Ok(Some(self.rows.as_slice()).filter(|rows| rows.first().is_some_and(|first| !first.is_empty())));
        };
        let Some(part) = disk.next_part(number) else { return Ok(None) };
        self.next = part + 1;
        self.rows.clear();
        call.work.forget_rows(held);
        self.rows = self.inputs_in(part, call, runs)?;
        Ok(Some(&self.rows))
    }

    /// Begins again with the first part.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// Whether all rows are one part, which [`Parts::next`] gives again after [`Parts::rewind`].
    pub fn are_one(&self) -> bool {
        self.inputs.iter().all(|input| matches!(input.place, Place::Memory(_)))
    }

    fn inputs_in(&self, part: usize, call: &mut Call, runs: &mut Runs) -> Result<Vec<Rows>> {
        let needed: usize = self.inputs.iter().map(|input| input.needed(part)).sum();
        if needed > call.work.limit() {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} needs about {} MB at once: rows of one run and location cannot be parted",
                call.name(),
                needed / 1_000_000
            )));
        }
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (place, input) in self.inputs.iter().enumerate() {
            let batches = match &input.place {
                Place::Memory(batches) => batches.clone(),
                Place::Disk(disk) => disk.read(part, |batch| {
                    call.work.check()?;
                    call.work.keep(batch)
                })?,
            };
            let role = if place == 0 { Role::First } else { Role::Other };
            let batches = call.input(input.input)?.0.in_order(batches);
            let rows = Rows::of(batches, input.has_runs, 0, role, runs, call.name())?;
            let is_handed_on = call.function.order_of_runs() == OrderOfRuns::Rows;
            inputs.push(if is_handed_on { rows.in_order_of_tasks(role, runs, call)? } else { rows });
        }
        Ok(inputs)
    }
}

impl Source {
    fn read(call: &mut Call, plan: &InputPlan<'_>, is_divided: bool) -> Result<Source> {
        let (input, work) = call.input(plan.input)?;
        let (has_runs, mut rows) = (input.has_runs(), 0);
        let (before, lasting) = (work.size(), work.lasting());
        let schema = Arc::new(input.schema().clone());
        let is_divisible = plan.share != Share::All && work.can_spill();
        let mut batches = vec![];
        let mut writing = (is_divided && is_divisible).then(|| Writing::new(&schema, plan.share, work)).transpose()?;
        while let Some(batch) = input.next_batch()? {
            work.check()?;
            if let Some(writing) = &mut writing {
                writing.add(&batch, work)?;
                continue;
            }
            rows += batch.num_rows();
            let kept = work.keep(&batch);
            batches.push(batch);
            let is_much = work.size() - before + rows * plan.row_bytes > work.limit() / 2;
            if is_divisible && (kept.is_err() || is_much) {
                work.forget_rows(before);
                let files = writing.insert(Writing::new(&schema, plan.share, work)?);
                for batch in batches.drain(..) {
                    files.add(&batch, work)?;
                }
            } else {
                kept?;
            }
        }
        let place = match writing {
            Some(writing) => {
                let disk = writing.finish(work)?;
                work.forget_rows(before + (work.lasting() - lasting));
                Place::Disk(disk)
            }
            None => Place::Memory(batches),
        };
        Ok(Source { input: plan.input, has_runs, row_bytes: plan.row_bytes, kept_bytes: work.size() - before, place })
    }

    /// Divides what is in memory.
    fn divide(&mut self, call: &mut Call, plan: &InputPlan<'_>) -> Result<()> {
        let (input, work) = call.input(plan.input)?;
        let (Place::Memory(batches), true) = (&mut self.place, plan.share != Share::All) else { return Ok(()) };
        let schema = Arc::new(input.schema().clone());
        work.shrink(self.kept_bytes);
        let (before, lasting) = (work.size(), work.lasting());
        let mut writing = Writing::new(&schema, plan.share, work)?;
        for batch in batches.drain(..) {
            writing.add(&batch, work)?;
        }
        self.place = Place::Disk(writing.finish(work)?);
        work.forget(before + (work.lasting() - lasting));
        Ok(())
    }

    /// About how many bytes a part of it takes.
    fn needed(&self, part: usize) -> usize {
        match &self.place {
            Place::Memory(_) => 0,
            Place::Disk(disk) => disk.files[part].rows * (disk.width + self.row_bytes),
        }
    }
}

/// Batches that are being divided.
pub(super) struct Writing {
    spills: SpillManager,
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The places of `run` and of the key.
    keys: Vec<usize>,
    parts: Vec<Part>,
    hashes: Vec<u64>,
    /// The rows of a batch by part.
    chosen: Vec<Vec<u32>>,
    /// Bytes of a row.
    width: usize,
    /// Rows of a part that are written together.
    together: usize,
}

/// One part while it is written.
#[derive(Default)]
struct Part {
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    rows: usize,
    file: Option<Append>,
}

/// Appends a batch to a file; without one, the file is done. DataFusion gives the type behind it no name.
type Append = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

/// How a column is written.
enum Column {
    AsItIs,
    /// A dictionary of texts, as the numbers of its words.
    Numbers(Words, WordsReading),
}

impl Writing {
    pub(super) fn new(schema: &SchemaRef, share: Share<'_>, work: &mut Work) -> Result<Writing> {
        let key = match share {
            Share::Lanes(key) => Some(key),
            Share::All | Share::Runs => None,
        };
        let is_dictionary =
            |field: &Field| matches!(field.data_type(), DataType::Dictionary(..)) && is_text(field.data_type());
        let columns = schema.fields().iter().map(|field| match is_dictionary(field) {
            true => Column::Numbers(Words::default(), WordsReading::default()),
            false => Column::AsItIs,
        });
        let written = schema.fields().iter().map(|field| match is_dictionary(field) {
            true => Field::new(field.name(), DataType::Int32, true),
            false => field.as_ref().clone(),
        });
        let written: Vec<Field> = written.collect();
        // A text is taken for 32 bytes.
        let width: usize = written.iter().map(|field| field.data_type().primitive_width().unwrap_or(32)).sum();
        let Some(spills) = work.spills(Arc::new(Schema::new(written))) else {
            return internal_err!("rows are divided where there is no place for files");
        };
        // The rows that wait, and those that are written.
        let bytes_of_one = 2 * PARTS * width;
        let together = (work.limit() / 8 / bytes_of_one).clamp(*ROWS_TOGETHER.start(), *ROWS_TOGETHER.end());
        work.grow(together * bytes_of_one)?;
        Ok(Writing {
            spills,
            schema: Arc::clone(schema),
            columns: columns.collect(),
            keys: ["run"].into_iter().chain(key).filter_map(|name| schema.index_of(name).ok()).collect(),
            parts: (0..PARTS).map(|_| Part::default()).collect(),
            hashes: vec![],
            chosen: vec![vec![]; PARTS],
            width,
            together,
        })
    }

    fn add(&mut self, batch: &RecordBatch, work: &mut Work) -> Result<()> {
        work.check()?;
        let rows = batch.num_rows();
        self.hashes.clear();
        self.hashes.resize(rows, 0);
        // Texts of every form have equal hashes as views.
        let keys = self.keys.iter().map(|key| {
            let column = batch.column(*key);
            if is_text(column.data_type()) {
                cast(column, &DataType::Utf8View).map_err(Into::into)
            } else {
                Ok(Arc::clone(column))
            }
        });
        let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
        create_hashes(&keys, &RandomState::default(), &mut self.hashes)?;
        self.chosen.iter_mut().for_each(Vec::clear);
        for (row, hash) in (0u32..).zip(&self.hashes) {
            self.chosen[(hash >> (u64::BITS - PARTS.trailing_zeros())) as usize].push(row);
        }
        self.add_chosen(batch, work)
    }

    /// The same by the numbers of runs, so that few runs have a part each. Rows of no run are in the part of the first one.
    pub(super) fn add_runs(&mut self, batch: &RecordBatch, stretches: &[Stretch], work: &mut Work) -> Result<()> {
        work.check()?;
        self.chosen.iter_mut().for_each(Vec::clear);
        for stretch in stretches {
            let rows = stretch.rows.start as u32..stretch.rows.end as u32;
            self.chosen[stretch.run.unwrap_or(0) % PARTS].extend(rows);
        }
        self.add_chosen(batch, work)
    }

    fn add_chosen(&mut self, batch: &RecordBatch, work: &mut Work) -> Result<()> {
        let rows = batch.num_rows();
        let written = self.written(batch, work)?;
        for (part, chosen) in self.parts.iter_mut().zip(&self.chosen) {
            match chosen.len() {
                0 => continue,
                all if all == rows => part.waiting.push(written.clone()),
                _ => part.waiting.push(take_record_batch(&written, &UInt32Array::from(chosen.clone()))?),
            }
            part.waiting_rows += chosen.len();
            if part.waiting_rows >= self.together {
                part.write(&self.spills, work)?;
            }
        }
        Ok(())
    }

    /// The batch with numbers in place of dictionaries.
    fn written(&mut self, batch: &RecordBatch, work: &mut Work) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (column, how) in batch.columns().iter().zip(&mut self.columns) {
            columns.push(match how {
                Column::AsItIs => Arc::clone(column),
                Column::Numbers(words, reading) => {
                    let (before, mut numbers) = (words.size(), Vec::with_capacity(column.len()));
                    words.number(reading, column, &mut numbers)?;
                    work.grow_lasting(words.size() - before)?;
                    let number = |number: u32| (number != NONE).then_some(number as i32);
                    Arc::new(numbers.into_iter().map(number).collect::<Int32Array>()) as ArrayRef
                }
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(self.spills.schema()), columns)?)
    }

    pub(super) fn finish(mut self, work: &mut Work) -> Result<Disk> {
        let mut files = Vec::with_capacity(PARTS);
        for mut part in std::mem::take(&mut self.parts) {
            part.write(&self.spills, work)?;
            let file = part.file.map_or(Ok(None), |mut append| append(None))?;
            files.push(Written { file, rows: part.rows });
        }
        let values = |(field, how): (&Arc<Field>, &Column)| match (field.data_type(), how) {
            (DataType::Dictionary(_, values), Column::Numbers(words, _)) => {
                Ok(Some(cast(&(Arc::new(words.texts()) as ArrayRef), values)?))
            }
            _ => Ok(None),
        };
        let words = self.schema.fields().iter().zip(&self.columns).map(values).collect::<Result<_>>()?;
        Ok(Disk { spills: self.spills, schema: self.schema, words, files, width: self.width })
    }
}

impl Part {
    /// Writes what waits.
    fn write(&mut self, spills: &SpillManager, work: &Work) -> Result<()> {
        work.check()?;
        if self.waiting_rows == 0 {
            return Ok(());
        }
        let together = concat_batches(spills.schema(), &self.waiting)?;
        self.waiting.clear();
        self.rows += std::mem::take(&mut self.waiting_rows);
        let append = match &mut self.file {
            Some(append) => append,
            None => {
                let mut file = spills.create_in_progress_file(work.function())?;
                self.file.insert(Box::new(move |batch| match batch {
                    Some(batch) => file.append_batch(batch).map(|_| None),
                    None => file.finish(),
                }))
            }
        };
        append(Some(&together)).map(|_| ())
    }
}
