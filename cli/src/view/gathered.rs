//! Gathers the rows of answers into arrays: words as numbers, and the tasks of all lanes.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::hash_utils::RandomState;
use datafusion::execution::memory_pool::MemoryReservation;
use tq_udfs::graph::NONE;
use tq_udfs::lanes::LaneSpan;
use tq_udfs::lanes::words::{Words, WordsReading};
use tq_udfs::overview::rows::SPAN_BYTES;

use super::lane::{Lane, Name, Read};
use crate::connection::Connection;
use crate::errors::{Failure, Problem};
use crate::output::{Output, Picture, Preparation};
use crate::report;

/// Numbers the words of the first N columns of an answer.
pub(super) struct WordColumns<const N: usize> {
    words: Words,
    reading: [WordsReading; N],
}

impl<const N: usize> Default for WordColumns<N> {
    fn default() -> Self {
        WordColumns { words: Words::default(), reading: std::array::from_fn(|_| WordsReading::default()) }
    }
}

impl<const N: usize> WordColumns<N> {
    /// The numbers of each column, by row.
    pub(super) fn numbers(&mut self, batch: &RecordBatch) -> Result<[Vec<u32>; N], Failure> {
        let mut numbers = std::array::from_fn(|_| Vec::with_capacity(batch.num_rows()));
        for ((reading, column), numbers) in self.reading.iter_mut().zip(batch.columns()).zip(&mut numbers) {
            let numbered = self.words.number(reading, column, numbers);
            numbered.map_err(|error| Problem::internal(&error.to_string()))?;
        }
        Ok(numbers)
    }

    /// The word of a number; `None` for NULL.
    pub(super) fn text(&self, word: u32) -> Option<&str> {
        (word != NONE).then(|| self.words.text(word))
    }
}

/// Gathers the tasks of an answer.
pub(super) struct Tasks {
    words: WordColumns<4>,
    /// Name, kind and number of tasks; names and kinds are numbers of `words`.
    names: Vec<(u32, u32, i64)>,
    /// The place in `names` of a word.
    name_of: HashMap<u32, u32, RandomState>,
    pub(super) read: Vec<Read>,
    pub(super) memory: MemoryReservation,
}

/// Bytes that a task takes while it is read: as it was read, on its lane, and in its row.
pub(super) const TASK_BYTES: usize = size_of::<Read>() + size_of::<LaneSpan>() + SPAN_BYTES;

impl Tasks {
    pub(super) fn new(memory: MemoryReservation) -> Tasks {
        Tasks {
            words: WordColumns::default(),
            names: Vec::new(),
            name_of: HashMap::default(),
            read: Vec::new(),
            memory,
        }
    }

    /// First start and last finish.
    pub(super) fn reach(&self) -> Option<(i64, i64)> {
        let first = self.read.iter().map(|task| task.start).min()?;
        let last = self.read.iter().map(|task| task.finish.unwrap_or(task.start)).max()?;
        Some((first, last.max(first.saturating_add(1))))
    }

    /// The spans of each lane; a location without a lane gets one.
    pub(super) fn by_lane(
        &self,
        lanes: &mut Vec<Lane>,
        lane_of: &mut HashMap<(String, String), u32>,
    ) -> Vec<Vec<LaneSpan>> {
        let last = self.reach().map_or(i64::MAX, |(_, last)| last);
        let mut known: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
        let mut spans: Vec<Vec<LaneSpan>> = lanes.iter().map(|_| Vec::new()).collect();
        for (row, task) in self.read.iter().enumerate() {
            let number = *known.entry((task.run, task.location)).or_insert_with(|| {
                let text = |word: u32| self.words.text(word).unwrap_or_default().to_owned();
                let key = (text(task.run), text(task.location));
                *lane_of.entry(key.clone()).or_insert_with(|| {
                    lanes.push(Lane::unknown(key.0, key.1));
                    spans.push(Vec::new());
                    lanes.len() as u32 - 1
                })
            });
            // A task that never ended is drawn to the end.
            spans[number as usize].push(LaneSpan::new(task.start, task.finish.unwrap_or(last), row as u32));
        }
        spans
    }

    /// The names, with the colours that a report gives them.
    pub(super) fn names(&self, connection: &mut Connection, picture: &Picture) -> Result<Vec<Name>, Failure> {
        report::begin_with_hues(connection, &picture.names)?;
        let text = |word: u32| self.words.text(word).unwrap_or_default();
        let name = |&(word, kind, tasks): &(u32, u32, i64)| Name::coloured(text(word), text(kind), tasks, picture);
        Ok(self.names.iter().map(name).collect())
    }
}

impl Output for Tasks {
    fn preparation(&self) -> Preparation {
        Preparation::default()
    }

    fn begin(&mut self, _: &SchemaRef) -> Result<(), Failure> {
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if self.memory.try_grow(batch.num_rows() * TASK_BYTES).is_err() {
            return Err(too_little_memory());
        }
        let [runs, locations, names, kinds] = self.words.numbers(batch)?;
        let integers = |column: usize| cast(batch.column(column), &DataType::Int64);
        let (tasks, starts, finishes): (ArrayRef, ArrayRef, ArrayRef) = (integers(4)?, integers(5)?, integers(6)?);
        let finishes = finishes.as_primitive::<Int64Type>();
        let times = tasks.as_primitive::<Int64Type>().values().iter().zip(starts.as_primitive::<Int64Type>().values());
        for (row, (&task, &start)) in times.enumerate() {
            let next = self.names.len() as u32;
            let name = *self.name_of.entry(names[row]).or_insert(next);
            if name == next {
                self.names.push((names[row], kinds[row], 0));
            }
            self.names[name as usize].2 += 1;
            let finish = finishes.is_valid(row).then(|| finishes.value(row));
            self.read.push(Read { run: runs[row], location: locations[row], task, start, finish, name });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

pub(super) fn too_little_memory() -> Failure {
    Problem::new("the tasks of these traces do not fit into memory")
        .hint("`--memory 8GB` allows more; `--from` and `--to`, or `STORE/RUN`, open less")
        .into()
}
