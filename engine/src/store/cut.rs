//! Cut: which rows of a store are in a slice of time, without reading the others.
//!
//! Each group of rows is judged by the least and the greatest time in it:
//!
//! ```text
//! tasks, messages, counters, events:  before or behind the slice → left out
//!                                     within it                  → kept
//!                                     across a border of it      → its times are read, and a bit per row says which rows are kept
//! links:                              kept where both of their tasks are kept
//! ```
//! Few groups lie across a border, since a trace is written in the order of time. What is left out is counted exactly, and the facts of the
//! run become those of the rows that are kept, as if the others had never been there.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::Int64Type;

use super::columns::place;
use super::conditions::Known;
use super::read::{Group, Wanted};
use super::scan::StoredRows;
use crate::error::ImportError;
use crate::tables::Table;
use crate::trace::kinds::{beside, look_for_idle, rows_of_program, widen, works_elsewhere};
use crate::trace::slice::{count_outside, of_instants, touching};
use crate::trace::{Deadline, Run, Slice};

/// What becomes of a group.
enum Fate {
    Kept,
    LeftOut,
    /// Rows in the order of the trace.
    Partly(BooleanBuffer),
}

/// Leaves out the rows of a run that are outside of the slice, and counts them. Returns `false`, and does nothing, for a run that is not in a
/// store.
pub(crate) fn cut(run: &mut Run, slice: Slice, deadline: Deadline) -> Result<bool, ImportError> {
    let source = run.source.clone();
    let Some(stored) = StoredRows::of_mut(run) else { return Ok(false) };
    let mut left_out = Vec::new();
    let mut all_tasks = stored.groups.get(&Table::Tasks).cloned().unwrap_or_default();
    for table in [Table::Tasks, Table::Messages, Table::Counters, Table::Events, Table::Links] {
        let groups = stored.groups.remove(&table).unwrap_or_default();
        let (mut kept, mut dropped) = (Vec::new(), 0);
        for (place, mut group) in groups.into_iter().enumerate() {
            deadline.check(&source)?;
            // A second slice keeps only what the first one kept.
            let earlier = group.kept.take();
            let all = group.rows();
            let before = earlier.as_ref().map_or(all, |earlier| earlier.count_set_bits());
            let fate = match table {
                Table::Links => of_links(&group, &all_tasks)?,
                Table::Tasks => of_spans(&group, "start", "finish", slice)?,
                Table::Messages => of_spans(&group, "send_time", "receive_time", slice)?,
                _ => of_spans(&group, "time", "time", slice)?,
            };
            let rows = match fate {
                Fate::Kept => {
                    group.kept = earlier;
                    before
                }
                Fate::LeftOut => 0,
                Fate::Partly(rows) => {
                    let rows = earlier.map_or(rows.clone(), |earlier| &rows & &*earlier);
                    let count = rows.count_set_bits();
                    group.kept = (count < all).then(|| Arc::new(rows));
                    count
                }
            };
            if let Some(task) = all_tasks.get_mut(place).filter(|_| table == Table::Tasks) {
                let none = || Arc::new(BooleanBuffer::new_unset(all));
                task.kept = if rows == 0 { Some(none()) } else { group.kept.clone() };
            }
            dropped += before - rows;
            kept.extend((rows > 0).then_some(group));
        }
        stored.groups.insert(table, kept);
        left_out.push((table, dropped));
    }
    look_again(stored, deadline, &source)?;
    left_out.into_iter().for_each(|(table, dropped)| count_outside(&mut run.stats, table, dropped));
    Ok(true)
}

/// The least and the greatest value, where statistics give numbers.
fn number(known: &Known) -> Option<(i128, i128)> {
    match known {
        Known::Numbers(least, greatest) => Some((*least, *greatest)),
        _ => None,
    }
}

/// The fate of rows with times. One known end stands for both, no known end keeps the row.
fn of_spans(group: &Group, start: &str, finish: &str, slice: Slice) -> Result<Fate, ImportError> {
    let table = group.table();
    let columns = [place(table, start), place(table, finish)];
    let [starts, finishes] = [group.known(columns[0])?, group.known(columns[1])?];
    let (from, to) = (slice.from.map(i128::from), slice.to.map(i128::from));
    if let (Some((first_start, last_start)), Some((first_finish, last_finish))) = (number(&starts), number(&finishes)) {
        let starts_inside = to.is_none_or(|to| last_start < to);
        let ends_inside = from.is_none_or(|from| from < first_finish);
        // Where only the end is known, it must lie before the end of the slice, too.
        let alone_inside = to.is_none_or(|to| last_finish < to);
        if starts_inside && ends_inside && (alone_inside || !group.may_be_null(columns[0])?) {
            return Ok(Fate::Kept);
        }
        let is_behind = to.is_some_and(|to| to <= first_start) && !group.may_be_null(columns[0])?;
        let is_before = from.is_some_and(|from| last_finish < from) && !group.may_be_null(columns[1])?;
        if is_behind || is_before {
            return Ok(Fate::LeftOut);
        }
    }
    let keeps = |batch: &RecordBatch| match columns[0] == columns[1] {
        true => of_instants(batch, start, slice),
        false => touching(batch, start, finish, slice),
    };
    let columns = if columns[0] == columns[1] { &columns[..1] } else { &columns[..] };
    partly(group, columns, keeps)
}

/// The fate of a group whose statistics do not decide: reads these columns and asks `keeps` for each row.
fn partly(group: &Group, columns: &[usize], keeps: impl Fn(&RecordBatch) -> BooleanArray) -> Result<Fate, ImportError> {
    let mut kept = Vec::with_capacity(group.rows());
    for batch in group.read(Wanted::all(columns))? {
        kept.extend(keeps(&batch?).iter().map(|kept| kept == Some(true)));
    }
    Ok(Fate::Partly(BooleanBuffer::from(kept)))
}

/// The fate of links: both ends are kept, or NULL.
fn of_links(group: &Group, tasks: &[Group]) -> Result<Fate, ImportError> {
    let columns = [place(Table::Links, "source"), place(Table::Links, "target")];
    let mut is_kept = true;
    for column in columns {
        let (all, none) = match group.known(column)? {
            Known::Numbers(least, greatest) => of_range(tasks, least, greatest),
            Known::Null => (true, false),
            _ => (false, false),
        };
        if none && !group.may_be_null(column)? {
            return Ok(Fate::LeftOut);
        }
        is_kept &= all;
    }
    if is_kept {
        return Ok(Fate::Kept);
    }
    let keeps = |links: &RecordBatch| {
        let ends = ["source", "target"].map(|name| links[name].as_primitive::<Int64Type>());
        let of_end = |row: usize| ends.iter().all(|end| end.is_null(row) || contains(tasks, end.value(row)));
        (0..links.num_rows()).map(|row| Some(of_end(row))).collect()
    };
    partly(group, &columns, keeps)
}

/// Whether all tasks of a range are kept, and whether none is.
fn of_range(tasks: &[Group], least: i128, greatest: i128) -> (bool, bool) {
    let end = |group: &Group| first(group) + group.rows_of_file() as i128;
    let touched = tasks.iter().filter(|group| first(group) <= greatest && least < end(group));
    let (mut all, mut none, mut known) = (true, true, 0);
    for group in touched {
        let rows = least.max(first(group))..end(group).min(greatest + 1);
        known += rows.end - rows.start;
        if let Some(kept) = &group.kept {
            let (from, to) = ((rows.start - first(group)) as usize, (rows.end - first(group)) as usize);
            let count = kept.slice(from, to - from).count_set_bits();
            (all, none) = (all && count == to - from, none && count == 0);
        } else {
            none = false;
        }
    }
    // What is no task of the run is not kept.
    (all && known == greatest + 1 - least, none)
}

/// The identity of the first row of a group of tasks.
fn first(group: &Group) -> i128 {
    i128::from(group.identity) + i128::from(group.position)
}

fn contains(tasks: &[Group], task: i64) -> bool {
    let task = i128::from(task);
    let at = tasks.partition_point(|group| first(group) <= task);
    let Some(group) = at.checked_sub(1).and_then(|at| tasks.get(at)) else { return false };
    let place = (task - first(group)) as usize;
    place < group.rows_of_file() && group.kept.as_ref().is_none_or(|kept| kept.value(place))
}

/// Makes the facts of the run those of the rows that are kept. A fact that does not hold for the run cannot hold for its slice; for the others
/// the rows are read.
fn look_again(stored: &mut StoredRows, deadline: Deadline, source: &std::path::Path) -> Result<(), ImportError> {
    let column = |name: &str| place(Table::Tasks, name);
    let tasks = stored.groups.get(&Table::Tasks).map_or(&[][..], Vec::as_slice);
    let locations = stored.groups.get(&Table::Locations).map_or(&[][..], Vec::as_slice);
    let (mut first, mut last, mut profiler) = (None::<i64>, None::<i64>, false);
    for group in tasks {
        deadline.check(source)?;
        let bounds = [group.known(column("start"))?, group.known(column("finish"))?];
        let is_told = bounds.iter().all(|known| !matches!(known, Known::Unknown));
        if group.kept.is_none() && !stored.facts.profiler && is_told {
            let [starts, finishes] = bounds.map(|known| number(&known));
            let ticks = |time: i128| i64::try_from(time).ok();
            first = first.into_iter().chain(starts.and_then(|(start, _)| ticks(start))).min();
            last = last.max(finishes.and_then(|(_, finish)| ticks(finish)));
            continue;
        }
        let columns = ["start", "finish", "role"].map(column);
        for batch in group.read(Wanted::all(&columns))? {
            let batch = batch?;
            profiler |= rows_of_program(&batch).is_some();
            widen(&batch, &mut first, &mut last);
        }
    }
    if stored.facts.profiler && !profiler {
        let role = [place(Table::Locations, "role")];
        profiler = any(locations, &role, |batch| rows_of_program(batch).is_some())?;
    }
    if stored.facts.beside {
        let columns = ["location", "kind", "role"].map(|name| place(Table::Locations, name));
        let batches = locations.iter().map(|group| group.read_all(&columns)).collect::<Result<Vec<_>, _>>()?;
        let beside = beside(batches.iter());
        stored.facts.beside = any(tasks, &[column("location")], |batch| works_elsewhere(batch, &beside))?;
    }
    if stored.facts.idle {
        let (mut idle, mut working) = (false, false);
        stored.facts.idle = any(tasks, &["role", "kind", "name"].map(column), |batch| {
            look_for_idle(batch, &mut idle, &mut working);
            idle && working
        })?;
    }
    stored.facts.profiler = profiler;
    // Exact: times in the session's ticks are those of the run times `factor`.
    let factor = stored.factor;
    (stored.facts.first, stored.facts.last) = (first.map(|time| time / factor), last.map(|time| time / factor));
    Ok(())
}

/// Whether `is_so` holds for some batch; reads no further than the first such one.
fn any(groups: &[Group], columns: &[usize], mut is_so: impl FnMut(&RecordBatch) -> bool) -> Result<bool, ImportError> {
    for group in groups {
        for batch in group.read(Wanted::all(columns))? {
            if is_so(&batch?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
