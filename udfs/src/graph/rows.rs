//! Answers with a row per task: the rows of the input `tasks`, with additional columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use datafusion_common::Result;

use crate::graph::load::Graphs;
use crate::relation::call::{Call, column};

/// Columns of an answer, by name.
pub(crate) type Computed = Vec<(&'static str, ArrayRef)>;

/// Emits the rows of a run: columns of the answer that have the name of an input column are passed on, `computed` are the
/// others, given the indices of the tasks. With `linked`, only tasks for which that holds.
pub(crate) fn emit_tasks(
    call: &mut Call,
    graphs: &Graphs,
    run: usize,
    linked: Option<&[bool]>,
    computed: &dyn Fn(&RecordBatch, &[u32]) -> Result<Computed>,
) -> Result<()> {
    let output = Arc::clone(call.output());
    let ids = &graphs.graphs[run].ids;
    for rows in graphs.rows(run)? {
        call.work.check()?;
        let mut rows = rows?;
        let indices = |rows: &RecordBatch| -> Result<Vec<u32>> {
            let tasks = column(rows, "task")?.as_primitive::<Int64Type>();
            Ok(tasks.values().iter().filter_map(|task| ids.index(*task)).collect())
        };
        let mut tasks = indices(&rows)?;
        if let Some(linked) = linked
            && !tasks.iter().all(|task| linked[*task as usize])
        {
            let wanted = tasks.iter().map(|task| Some(linked[*task as usize])).collect::<BooleanArray>();
            rows = filter_record_batch(&rows, &wanted)?;
            tasks = indices(&rows)?;
        }
        if tasks.is_empty() {
            continue;
        }
        let computed = computed(&rows, &tasks)?;
        let columns = output.fields().iter().map(|field| {
            let (name, data_type) = (field.name().as_str(), field.data_type());
            match computed.iter().find(|(computed, _)| *computed == name) {
                Some((_, values)) => Arc::clone(values),
                None => match rows.column_by_name(name) {
                    Some(values) => Arc::clone(values),
                    None => new_null_array(data_type, rows.num_rows()),
                },
            }
        });
        call.emit(columns.collect())?;
    }
    Ok(())
}
