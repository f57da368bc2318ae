//! Kinds: what views and the table `runs` need to know about the rows of a run: whether the recorder left tasks of its own, whether there are
//! spans beside the work, and when the program ran.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{filter, max, min};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};

use super::run::Run;
use crate::tables::{PROFILER, Table, is_beside, runs_nothing};

/// First start and last finish of what the program did.
pub(crate) fn span(run: &Run) -> Option<(i64, i64)> {
    if let Some(stored) = &run.stored {
        return stored.span();
    }
    let tasks = run.tables.get(&Table::Tasks)?;
    let (mut first, mut last) = (None, None);
    tasks.iter().try_for_each(|batch| widen(batch, &mut first, &mut last))?;
    Some((first?, last?))
}

/// Widens a span by the tasks of the program.
pub(crate) fn widen(tasks: &RecordBatch, first: &mut Option<i64>, last: &mut Option<i64>) -> Option<()> {
    let of_program = rows_of_program(tasks);
    // Nearly always a batch is taken as it is.
    let column = |name: &str| match &of_program {
        None => Some(Arc::clone(&tasks[name])),
        Some(rows) => filter(&tasks[name], rows).ok(),
    };
    let (starts, finishes) = (column("start")?, column("finish")?);
    *first = (*first).into_iter().chain(min(starts.as_primitive::<Int64Type>())).min();
    *last = (*last).max(max(finishes.as_primitive::<Int64Type>()));
    Some(())
}

/// Which rows of tasks or locations are not the recorder's own; `None` where all are not.
pub(crate) fn rows_of_program(batch: &RecordBatch) -> Option<BooleanArray> {
    let roles = batch["role"].as_dictionary::<Int32Type>();
    let words = roles.values().as_string::<i32>();
    let profiler = (0..words.len()).find(|&word| words.is_valid(word) && words.value(word) == PROFILER)?;
    let is_own = |row: usize| roles.key(row) == Some(profiler);
    let rows: BooleanArray = (0..batch.num_rows()).map(|row| Some(!is_own(row))).collect();
    (rows.true_count() < rows.len()).then_some(rows)
}

/// Whether a recorder wrote anything about itself.
pub(crate) fn has_profiler_rows(run: &Run) -> bool {
    if let Some(stored) = &run.stored {
        return stored.has_profiler_rows();
    }
    let batches = [Table::Tasks, Table::Locations].iter().filter_map(|table| run.tables.get(table));
    batches.flatten().any(|batch| rows_of_program(batch).is_some())
}

/// Whether a run has spans on locations that execute nothing, and tasks on others.
pub(crate) fn has_work_beside(run: &Run) -> bool {
    if let Some(stored) = &run.stored {
        return stored.has_work_beside();
    }
    let batches = |table| run.tables.get(&table).into_iter().flatten();
    let beside = beside(batches(Table::Locations));
    !beside.is_empty() && batches(Table::Tasks).any(|batch| works_elsewhere(batch, &beside))
}

/// Locations that execute nothing.
pub(crate) fn beside<'a>(locations: impl Iterator<Item = &'a RecordBatch>) -> HashSet<String> {
    let word = |batch: &RecordBatch, column: &str, row: usize| {
        let words = batch[column].as_dictionary::<Int32Type>();
        words.key(row).map(|key| words.values().as_string::<i32>().value(key).to_owned())
    };
    locations
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
        .filter(|(batch, row)| is_beside(word(batch, "kind", *row).as_deref(), word(batch, "role", *row).as_deref()))
        .filter_map(|(batch, row)| word(batch, "location", row))
        .collect()
}

/// Whether some of these tasks are on other locations.
pub(crate) fn works_elsewhere(tasks: &RecordBatch, beside: &HashSet<String>) -> bool {
    let places = tasks["location"].as_dictionary::<Int32Type>();
    let words = places.values().as_string::<i32>();
    let works: Vec<bool> = (0..words.len()).map(|key| !beside.contains(words.value(key))).collect();
    (0..places.len()).any(|row| places.key(row).is_some_and(|key| works[key]))
}

/// Whether a run has tasks that run nothing themselves, and others.
pub(crate) fn has_idle_tasks(run: &Run) -> bool {
    if let Some(stored) = &run.stored {
        return stored.has_idle_tasks();
    }
    let (mut idle, mut working) = (false, false);
    run.tables.get(&Table::Tasks).into_iter().flatten().any(|batch| {
        look_for_idle(batch, &mut idle, &mut working);
        idle && working
    })
}

/// Looks for tasks that run nothing themselves, and for others, until both are found.
pub(crate) fn look_for_idle(tasks: &RecordBatch, idle: &mut bool, working: &mut bool) {
    let columns = ["role", "kind", "name"].map(|column| tasks[column].as_dictionary::<Int32Type>());
    let word = |column: usize, row: usize| {
        columns[column].key(row).map(|key| columns[column].values().as_string::<i32>().value(key))
    };
    // Which keys of roles and kinds may be of tasks that run nothing: rows of others are not looked at by their words.
    let are_among = |column: usize, words: &[&str]| -> Vec<bool> {
        columns[column]
            .values()
            .as_string::<i32>()
            .iter()
            .map(|word| word.is_some_and(|word| words.contains(&word)))
            .collect()
    };
    let (roles, kinds) = (are_among(0, &["wait"]), are_among(1, &["user_annotation", "gpu_user_annotation"]));
    if !roles.contains(&true) && !kinds.contains(&true) {
        *working |= tasks.num_rows() > 0;
        return;
    }
    for (row, (role, kind)) in columns[0].keys().iter().zip(columns[1].keys()).enumerate() {
        let may_idle = role.is_some_and(|key| roles[key as usize]) || kind.is_some_and(|key| kinds[key as usize]);
        match may_idle && runs_nothing(word(0, row), word(1, row), word(2, row)) {
            true => *idle = true,
            false => *working = true,
        }
        if *idle && *working {
            return;
        }
    }
}

/// Distinct processes of a run; `None` where it does not tell.
pub(crate) fn processes(run: &Run) -> Option<i64> {
    if let Some(stored) = &run.stored {
        return stored.processes();
    }
    let mut seen = HashSet::new();
    run.tables.get(&Table::Locations)?.iter().for_each(|batch| note_processes(batch, &mut seen));
    (!seen.is_empty()).then_some(seen.len() as i64)
}

/// Adds the processes of some locations. Batches need not share their words.
pub(crate) fn note_processes(locations: &RecordBatch, seen: &mut HashSet<String>) {
    let processes = locations["process"].as_dictionary::<Int32Type>();
    let words = processes.values().as_string::<i32>();
    for process in processes.keys().iter().flatten().map(|key| words.value(key as usize)) {
        if !seen.contains(process) {
            seen.insert(process.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Locations;
    use crate::trace::RunBuilder;

    #[test]
    fn many_processes_are_counted_whatever_words_their_batches_have() {
        let mut trace = RunBuilder::in_memory("many");
        let names: Vec<String> = (0..40_000).map(|process| format!("p{}", process / 2)).collect();
        let locations: Vec<String> = (0..40_000).map(|location| format!("l{location}")).collect();
        let (location, process) =
            (locations.iter().map(String::as_str).collect(), names.iter().map(String::as_str).collect());
        trace.append_derived(Locations { location, process, ..Locations::default() }).expect("appends");
        assert_eq!(processes(&trace.finish(1).expect("finishes")), Some(20_000));
    }
}
