//! Assemble: the chunks of a table become record batches, on several threads.
//!
//! Life of the data: each chunk separately → spans are completed ([`complete_spans`]) → words get their dictionary, rows their
//! identities, references the base of the run → the chunk is cut into batches of at most [`ROWS_PER_BATCH`] rows. All per-row
//! work that needs no order happens here, so that it does not burden the one thread that keeps an import in file order.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{Int32Type, Int64Type, SchemaRef};
use datafusion::error::DataFusionError;

use super::dictionary::with_own_words;
use crate::tables::{ColumnType, Table};

/// Rows of a batch of a session table.
pub const ROWS_PER_BATCH: usize = 8192;

/// A table below this many rows is not worth a thread.
const ROWS_FOR_THREADS: u64 = 1 << 16;

/// Columns of one length, as an importer appended them.
pub(super) struct Chunk {
    pub(super) rows: usize,
    /// In the order of the table's columns; words are Int32 keys.
    pub(super) columns: Vec<ArrayRef>,
}

/// What all chunks of a table share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table,
    /// Without `run`, which is the session's: it knows the run's final name.
    pub(super) schema: SchemaRef,
    /// The dictionaries of word columns, in the order of the table's columns.
    pub(super) words: Vec<Option<WordColumn>>,
    /// The identity of position 0 of the run.
    pub(super) first_identity: i64,
    /// Stands for identities that are filled in when a query asks for them ([`super::identity`]); as long as the longest
    /// chunk.
    pub(super) later: Option<ArrayRef>,
}

/// A column of words.
#[derive(Debug)]
pub(super) struct WordColumn {
    values: ArrayRef,
    /// The column of the chunk that came last. Constants of several chunks are slices of one array, and one check of its
    /// keys serves for all of them.
    last: Mutex<Option<DictionaryArray<Int32Type>>>,
}

impl WordColumn {
    /// A column with these words.
    pub(super) fn new(values: ArrayRef) -> WordColumn {
        WordColumn { values, last: Mutex::new(None) }
    }

    /// The words of keys.
    ///
    /// # Errors
    /// A key without a word.
    fn of(&self, keys: &Int32Array) -> Result<ArrayRef, DataFusionError> {
        // A poisoned lock means that another thread panicked; what it holds was whole when it was put there.
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = last.filter(|last| begins_with(last.keys(), keys)) {
            return Ok(Arc::new(last.slice(0, keys.len())));
        }
        let words = DictionaryArray::try_new(keys.clone(), Arc::clone(&self.values))?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.clone());
        Ok(Arc::new(words))
    }
}

/// Whether `keys` are the first keys of `all` by standing in the same memory, without NULLs or with nothing else.
fn begins_with(all: &Int32Array, keys: &Int32Array) -> bool {
    let nulls = (all.null_count(), keys.null_count());
    std::ptr::eq(all.values().as_ptr(), keys.values().as_ptr())
        && keys.len() <= all.len()
        && (nulls == (0, 0) || nulls == (all.len(), keys.len()))
}

/// The batches of a table, and what was noticed on the way.
#[derive(Default)]
pub(super) struct Assembled {
    pub(super) batches: Vec<RecordBatch>,
    /// Bytes that were copied into dictionaries of their own.
    pub(super) copied: usize,
    pub(super) backwards: Backwards,
}

/// Tasks that end before they start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backwards {
    pub(super) count: u64,
    /// Position, start and finish of the first one.
    pub(super) first: Option<(u64, i64, i64)>,
}

impl Backwards {
    /// Takes in those of later tasks.
    pub(super) fn add(&mut self, later: Backwards) {
        self.count += later.count;
        self.first = self.first.or(later.first);
    }
}

/// Assembles the chunks of a table.
///
/// # Errors
/// A key without a word, columns that do not fit the schema.
pub(super) fn assemble(chunks: Vec<Chunk>, shared: &Shared, threads: usize) -> Result<Assembled, DataFusionError> {
    let mut next = 0u64;
    let placed: Vec<(u64, Chunk)> = chunks
        .into_iter()
        .map(|chunk| {
            let position = next;
            next += chunk.rows as u64;
            (position, chunk)
        })
        .collect();
    let threads = if next < ROWS_FOR_THREADS { 1 } else { threads };
    let mut whole = Assembled::default();
    for part in in_order(placed, threads, |(position, chunk)| assemble_chunk(position, chunk, shared)) {
        let part = part?;
        whole.batches.extend(part.batches);
        whole.copied += part.copied;
        whole.backwards.add(part.backwards);
    }
    Ok(whole)
}

/// Assembles a table of several runs, `rows` of each: its batches run by run. What a run refers to and its own identities
/// begin with `first_identity` of its number.
///
/// # Errors
/// As [`assemble`], and rows that are not as many as there are.
pub(super) fn cut(
    chunks: Vec<Chunk>,
    shared: &Shared,
    rows: &[usize],
    first_identity: impl Fn(usize) -> i64,
) -> Result<Vec<Vec<RecordBatch>>, DataFusionError> {
    let mut runs: Vec<Vec<RecordBatch>> = vec![Vec::new(); rows.len()];
    let identities: Vec<usize> = (1..shared.table.spec().columns.len())
        .filter(|&column| shared.table.spec().columns[column].column_type == ColumnType::Identity)
        .map(|column| column - 1)
        .collect();
    let (mut run, mut done) = (0, 0);
    for mut chunk in chunks {
        if shared.table == Table::Tasks {
            complete_spans(0, &mut chunk.columns);
        }
        let mut columns = Vec::with_capacity(chunk.columns.len());
        for (index, column) in chunk.columns.into_iter().enumerate().skip(1) {
            columns.push(match &shared.words[index] {
                Some(words) => words.of(column.as_primitive::<Int32Type>())?,
                // Filled in per run below; never NULL, whatever stands here now.
                None if index == 1 && shared.table.has_identity() => Arc::new(Int64Array::from_value(0, chunk.rows)),
                None => column,
            });
        }
        let whole = RecordBatch::try_new(Arc::clone(&shared.schema), columns)?;
        let mut offset = 0;
        while offset < chunk.rows {
            let Some(&wanted) = rows.get(run) else {
                return Err(DataFusionError::Internal(format!("{}: more rows than the runs have", shared.table)));
            };
            if done == wanted {
                (run, done) = (run + 1, 0);
                continue;
            }
            let taken = (wanted - done).min(chunk.rows - offset).min(ROWS_PER_BATCH);
            let part = whole.slice(offset, taken);
            let first = first_identity(run);
            let mut columns = part.columns().to_vec();
            for &column in &identities {
                if column == 0 && shared.table.has_identity() {
                    let from = first + done as i64;
                    columns[column] = Arc::new(Int64Array::from_iter_values(from..from + taken as i64));
                } else if columns[column].null_count() < taken {
                    let positions = columns[column].as_primitive::<Int64Type>();
                    columns[column] = Arc::new(positions.unary::<_, Int64Type>(|position| position + first));
                }
            }
            runs[run].push(RecordBatch::try_new(Arc::clone(&shared.schema), columns)?);
            offset += taken;
            done += taken;
        }
    }
    Ok(runs)
}

/// Maps items on up to `threads` threads; answers stand in the order of the items.
pub(crate) fn in_order<T: Send, R: Send>(items: Vec<T>, threads: usize, map: impl Fn(T) -> R + Sync) -> Vec<R> {
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().map(map).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let work = || {
        let mut done = Vec::new();
        loop {
            // A poisoned lock means that another thread panicked; the scope passes its panic on.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some((number, item)) => done.push((number, map(item))),
                None => return done,
            }
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, answer)| answer).collect()
}

/// Two computations, at the same time where there are `threads` for it.
pub(crate) fn side_by_side<A: Send, B>(
    threads: usize,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    if threads <= 1 {
        return (one(), other());
    }
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

pub(super) fn assemble_chunk(position: u64, mut chunk: Chunk, shared: &Shared) -> Result<Assembled, DataFusionError> {
    let spec = shared.table.spec();
    let mut assembled = Assembled::default();
    if shared.table == Table::Tasks {
        assembled.backwards = complete_spans(position, &mut chunk.columns);
    }
    let (rows, first) = (chunk.rows, shared.first_identity);
    let mut columns = Vec::with_capacity(chunk.columns.len());
    for (index, column) in chunk.columns.into_iter().enumerate().skip(1) {
        columns.push(match &shared.words[index] {
            Some(words) => words.of(column.as_primitive::<Int32Type>())?,
            // A table's own identity is the second column of its table; positions follow the order of appending.
            None if index == 1 && shared.later.is_some() => {
                shared.later.as_ref().map_or(column, |later| later.slice(0, rows))
            }
            None if index == 1 && shared.table.has_identity() => {
                let from = first + position as i64;
                Arc::new(Int64Array::from_iter_values(from..from + rows as i64)) as ArrayRef
            }
            None if spec.columns[index].column_type == ColumnType::Identity && first > 0 => {
                Arc::new(column.as_primitive::<Int64Type>().unary::<_, Int64Type>(|position| position + first))
            }
            None => column,
        });
    }
    let batch = RecordBatch::try_new(Arc::clone(&shared.schema), columns)?;
    // Evenly: behind a short batch DataFusion's filters copy the rows of all that follow, to make long ones of them.
    let even = rows.div_ceil(rows.div_ceil(ROWS_PER_BATCH).max(1)).max(1);
    for offset in (0..rows).step_by(even) {
        let (batch, bytes) = with_own_words(batch.slice(offset, even.min(rows - offset)))?;
        assembled.copied += bytes;
        assembled.batches.push(batch);
    }
    Ok(assembled)
}

/// Fills `duration` unless it was given, and takes the finish from spans that end before they start.
pub(super) fn complete_spans(position: u64, columns: &mut [ArrayRef]) -> Backwards {
    let at = |name| Table::Tasks.spec().columns.iter().position(|column| column.name == name).unwrap_or(0);
    let (start_at, finish_at, duration_at) = (at("start"), at("finish"), at("duration"));
    let starts = columns[start_at].as_primitive::<Int64Type>().clone();
    let finishes = columns[finish_at].as_primitive::<Int64Type>().clone();
    let given = columns[duration_at].null_count() < columns[duration_at].len();
    let valid = NullBuffer::union(starts.nulls(), finishes.nulls());
    // Wrapping: the values behind NULLs are arbitrary, and `finish < start` is counted below.
    let durations: Vec<i64> =
        starts.values().iter().zip(finishes.values()).map(|(start, finish)| finish.wrapping_sub(*start)).collect();
    // A span longer than 2^63 ticks wraps below 0: its duration cannot be told either.
    let reversed = |row: usize| finishes.value(row) < starts.value(row) || durations[row] < 0;
    let mut backwards = Backwards::default();
    // One pass without a branch per row says whether a closer look is needed.
    let suspicious = starts
        .values()
        .iter()
        .zip(finishes.values())
        .zip(&durations)
        .fold(false, |any, ((start, finish), duration)| any | (finish < start) | (*duration < 0));
    if suspicious {
        for row in 0..starts.len() {
            if valid.as_ref().is_none_or(|valid| valid.is_valid(row)) && reversed(row) {
                backwards.count += 1;
                backwards.first.get_or_insert((position + row as u64, starts.value(row), finishes.value(row)));
            }
        }
    }
    let mut durations_valid = valid;
    if backwards.count > 0 {
        let forwards: NullBuffer =
            (0..starts.len()).map(|row| finishes.is_valid(row) && !(starts.is_valid(row) && reversed(row))).collect();
        durations_valid = NullBuffer::union(starts.nulls(), Some(&forwards));
        columns[finish_at] = Arc::new(Int64Array::new(finishes.values().clone(), Some(forwards)));
    }
    if !given {
        columns[duration_at] = Arc::new(Int64Array::new(durations.into(), durations_valid));
    }
    backwards
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;

    #[test]
    fn constants_are_checked_once_and_nothing_else_is_taken_for_one() {
        let column = WordColumn::new(Arc::new(StringArray::from(vec!["a", "b"])));
        let text = |keys: &Int32Array| -> Vec<Option<String>> {
            let words = column.of(keys).expect("keys of the two words");
            let words = words.as_dictionary::<Int32Type>().downcast_dict::<StringArray>().expect("text");
            words.into_iter().map(|word| word.map(str::to_owned)).collect()
        };
        let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
        let constant = Int32Array::from_value(1, 3);
        let nulls = Int32Array::new_null(3);
        let mixed = Int32Array::new(constant.values().clone(), Some(NullBuffer::from(vec![true, false, true])));
        for _ in 0..2 {
            assert_eq!(text(&constant), [b.clone(), b.clone(), b.clone()]);
            assert_eq!(text(&constant.slice(0, 2)), [b.clone(), b.clone()]);
            assert_eq!(text(&mixed), [b.clone(), None, b.clone()]);
            assert_eq!(text(&nulls.slice(0, 2)), [None, None]);
            assert_eq!(text(&nulls), [None, None, None]);
            let keys = Int32Array::from(vec![0, 1, 0]);
            assert_eq!(text(&keys), [a.clone(), b.clone(), a.clone()]);
            assert_eq!(text(&keys.slice(1, 2)), [b.clone(), a.clone()]);
        }
        assert!(column.of(&Int32Array::from(vec![2])).is_err());
    }

    #[test]
    fn answers_stand_in_the_order_of_the_items() {
        for threads in [1, 2, 7] {
            let answers = in_order((0..1000u64).collect(), threads, |number| number * number);
            assert_eq!(answers, (0..1000).map(|number| number * number).collect::<Vec<_>>());
        }
    }
}
