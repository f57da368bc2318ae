//! Sound: properties of every run, whatever bytes it came from. Fuzzing and the tests of damaged files check them.
//!
//! Arrays are valid (text is UTF-8, keys have words). Identities count from the run's first; references point into the run. Times
//! lie within their reach. No span ends before it starts; an enclosing task begins no later than what it encloses. `args` is a JSON
//! object. Every location that a row names is in `locations`, once. The books balance: records read = rows + counted others.

use std::collections::BTreeSet;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use serde::de::IgnoredAny;

use super::run::Run;
use crate::tables::{ColumnType, Table};
use crate::time::REACH;

/// What is wrong with a run; nothing, unless a reader has a defect. Cost: reads every cell.
pub fn faults(run: &Run) -> Vec<String> {
    let mut faults = Vec::new();
    for (table, batches) in &run.tables {
        for batch in batches {
            check_arrays(*table, batch, &mut faults);
            check_args(*table, batch, &mut faults);
            check_times(*table, batch, &mut faults);
        }
    }
    check_references(run, &mut faults);
    check_spans(run, &mut faults);
    check_locations(run, &mut faults);
    let books = run.stats.iter().find(|stat| stat.finding.what == "unaccounted");
    faults.extend(books.map(|stat| format!("the books do not balance: {}", stat.example)));
    faults
}

fn check_arrays(table: Table, batch: &RecordBatch, faults: &mut Vec<String>) {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if let Err(error) = column.to_data().validate_full() {
            faults.push(format!("{table}.{}: {error}", field.name()));
        }
    }
}

fn check_args(table: Table, batch: &RecordBatch, faults: &mut Vec<String>) {
    let Some(column) = batch.column_by_name("args") else { return };
    for args in column.as_string::<i32>().iter().flatten() {
        match serde_json::from_str::<IgnoredAny>(args) {
            Ok(_) if args.starts_with('{') => {}
            // Values nest as deep as the trace has them; that reader stops at 128.
            Err(error) if error.to_string().starts_with("recursion limit") => {}
            _ => faults.push(format!("{table}.args is no JSON object: {args}")),
        }
    }
}

/// A duration is the difference of two times, and may be as long as both of their reaches.
fn check_times(table: Table, batch: &RecordBatch, faults: &mut Vec<String>) {
    for column in table.spec().columns {
        if column.column_type == ColumnType::Time && column.name != "duration" {
            let times = batch[column.name].as_primitive::<Int64Type>();
            let beyond = times.iter().flatten().find(|time| !REACH.contains(time));
            faults.extend(beyond.map(|time| format!("{table}.{}: {time} lies beyond what a time can be", column.name)));
        }
    }
}

fn rows(run: &Run, table: Table) -> impl Iterator<Item = &RecordBatch> {
    run.tables.get(&table).into_iter().flatten()
}

/// An integer column, batch after batch.
fn integers<'r>(run: &'r Run, table: Table, column: &'r str) -> impl Iterator<Item = Option<i64>> + 'r {
    rows(run, table).flat_map(move |batch| batch[column].as_primitive::<Int64Type>().iter())
}

fn check_references(run: &Run, faults: &mut Vec<String>) {
    let first = run.run_number << 40;
    let count = |table| rows(run, table).map(|batch| batch.num_rows() as i64).sum::<i64>();
    let counts = [(Table::Tasks, "task", count(Table::Tasks)), (Table::Messages, "message", count(Table::Messages))];
    for (table, column, count) in counts {
        // Those of many messages are filled in by the queries that read them.
        let is_later = table == Table::Messages && run.first_later_identity().is_some();
        if !is_later && !integers(run, table, column).eq((first..first + count).map(Some)) {
            faults.push(format!("{table}.{column} does not count from {first}"));
        }
    }
    for &table in run.tables.keys() {
        for (index, column) in table.spec().columns.iter().enumerate() {
            if column.column_type != ColumnType::Identity || (index == 1 && table.has_identity()) {
                continue;
            }
            let [(_, _, tasks), (_, message, messages)] = counts;
            let known = first..first + if column.name == message { messages } else { tasks };
            let strangers = integers(run, table, column.name).flatten().filter(|referred| !known.contains(referred));
            faults.extend(strangers.map(|referred| format!("{table}.{} {referred} does not exist", column.name)));
        }
    }
}

fn check_spans(run: &Run, faults: &mut Vec<String>) {
    let column = |name| integers(run, Table::Tasks, name).collect::<Vec<_>>();
    let [starts, finishes, durations] = ["start", "finish", "duration"].map(column);
    let enclosers = column("stack_parent");
    let first = run.run_number << 40;
    for (task, ((&start, &finish), &duration)) in starts.iter().zip(&finishes).zip(&durations).enumerate() {
        if start.zip(finish).is_some_and(|(start, finish)| finish < start) || duration.is_some_and(|ticks| ticks < 0) {
            faults.push(format!("task {task} ends before it starts: {start:?}, {finish:?}, {duration:?}"));
        }
        let encloser = enclosers[task].and_then(|encloser| starts.get((encloser - first) as usize).copied().flatten());
        if encloser.zip(start).is_some_and(|(encloser, start)| start < encloser) {
            faults.push(format!("task {task} begins before its encloser"));
        }
    }
}

fn check_locations(run: &Run, faults: &mut Vec<String>) {
    let words = |table, column: &'static str| {
        rows(run, table).flat_map(move |batch| {
            let cells = batch[column].as_dictionary::<Int32Type>();
            let words = cells.values().as_string::<i32>();
            cells.keys().iter().flatten().map(|key| words.value(key as usize)).collect::<Vec<_>>()
        })
    };
    let mut known = BTreeSet::new();
    for location in words(Table::Locations, "location") {
        if !known.insert(location) {
            faults.push(format!("location {location:?} stands twice"));
        }
    }
    let placed = [(Table::Locations, "parent"), (Table::Tasks, "location"), (Table::Counters, "location")];
    for (table, column) in placed.into_iter().chain([(Table::Events, "location")]) {
        let strangers: BTreeSet<&str> = words(table, column).filter(|location| !known.contains(location)).collect();
        faults.extend(strangers.into_iter().map(|location| format!("{table}.{column} {location:?} is no location")));
    }
}
