//! A time slice: `--from`/`--to` keep what touches `[from, to)`, and count the rest.
//!
//! Rows whose span touches the slice stay whole (the view `program_tasks` cuts them at its borders); messages stay when the span from sending to receiving touches it;
//! counters and events by their instant; rows without any time stay. Links stay when both ends do. Identities do not
//! change, so a task has the same number in a slice and in the whole trace.

use std::collections::HashSet;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::DataFusionError;

use super::findings;
use super::run::Run;
use super::stats::Stat;
use crate::tables::Table;

/// The window `[from, to)` in ticks; an absent end is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// First tick.
    pub from: Option<i64>,
    /// First tick after it.
    pub to: Option<i64>,
}

impl Slice {
    /// Whether everything is kept.
    pub fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether the half-open span touches the slice; an instant counts as the tick that it stands at.
    fn touches(&self, start: i64, finish: i64) -> bool {
        let ends_inside = self.from.is_none_or(|from| from < finish || (start == finish && from <= finish));
        ends_inside && self.to.is_none_or(|to| start < to)
    }
}

impl Run {
    /// Whether there is anything with a time.
    pub(crate) fn has_rows(&self) -> bool {
        [Table::Tasks, Table::Messages, Table::Counters, Table::Events].iter().any(|table| self.rows(*table) > 0)
    }

    /// Drops the rows outside of the slice and counts them by table.
    pub(crate) fn cut(&mut self, slice: Slice) -> Result<(), DataFusionError> {
        if slice.is_whole() {
            return Ok(());
        }
        self.fill_in_identities()?;
        let mut kept_tasks: HashSet<i64> = HashSet::new();
        for table in [Table::Tasks, Table::Messages, Table::Counters, Table::Events, Table::Links] {
            let Some(batches) = self.tables.get_mut(&table) else { continue };
            let mut dropped = 0;
            for batch in batches.iter_mut() {
                let keep = match table {
                    Table::Links => ends_kept(batch, &kept_tasks),
                    Table::Tasks => touching(batch, "start", "finish", slice),
                    Table::Messages => touching(batch, "send_time", "receive_time", slice),
                    _ => of_instants(batch, "time", slice),
                };
                dropped += keep.false_count();
                *batch = filter_record_batch(batch, &keep)?;
                if table == Table::Tasks {
                    kept_tasks.extend(integers(batch, "task").values());
                }
            }
            batches.retain(|batch| batch.num_rows() > 0);
            count_outside(&mut self.stats, table, dropped);
        }
        Ok(())
    }
}

/// Counts the rows of a table that were left out, with those that were before.
pub(crate) fn count_outside(stats: &mut Vec<Stat>, table: Table, dropped: usize) {
    if dropped == 0 {
        return;
    }
    let (finding, example) = (findings::OUTSIDE_TIME_SLICE, format!("rows of {table}, left out by --from/--to"));
    let count = dropped as u64;
    match stats.iter_mut().find(|stat| stat.finding.what == finding.what && stat.example == example) {
        Some(earlier) => earlier.count += count,
        None => stats.push(Stat { finding, count, example }),
    }
}

fn integers<'a>(batch: &'a RecordBatch, column: &str) -> &'a Int64Array {
    batch[column].as_primitive::<Int64Type>()
}

/// Rows whose instant lies in the slice.
pub(crate) fn of_instants(batch: &RecordBatch, time: &str, slice: Slice) -> BooleanArray {
    touching(batch, time, time, slice)
}

/// Rows whose span touches the slice. One known end stands for both, no known end keeps the row.
pub(crate) fn touching(batch: &RecordBatch, start: &str, finish: &str, slice: Slice) -> BooleanArray {
    let (starts, finishes) = (integers(batch, start), integers(batch, finish));
    (0..batch.num_rows())
        .map(|row| {
            let known = |times: &Int64Array| times.is_valid(row).then(|| times.value(row));
            Some(match (known(starts), known(finishes)) {
                (Some(start), Some(finish)) => slice.touches(start, finish),
                // A task that never ended runs on.
                (Some(start), None) => slice.to.is_none_or(|to| start < to),
                (None, Some(finish)) => slice.touches(finish, finish),
                (None, None) => true,
            })
        })
        .collect()
}

fn ends_kept(links: &RecordBatch, tasks: &HashSet<i64>) -> BooleanArray {
    let (sources, targets) = (integers(links, "source"), integers(links, "target"));
    (0..links.num_rows())
        .map(|row| {
            let kept = |ends: &Int64Array| ends.is_null(row) || tasks.contains(&ends.value(row));
            Some(kept(sources) && kept(targets))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_open_spans_touch_or_do_not() {
        // slice      [4 ------ 8)
        let slice = Slice { from: Some(4), to: Some(8) };
        let check = |start, finish, expected| assert_eq!(slice.touches(start, finish), expected, "[{start}, {finish})");
        check(0, 4, false);
        check(0, 5, true);
        check(7, 9, true);
        check(8, 9, false);
        check(0, 20, true);
        check(4, 4, true);
        check(8, 8, false);
        check(3, 3, false);
    }
}
