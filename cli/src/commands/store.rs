//! `tq import`, `tq runs`, `tq remove`, `tq gc`, `tq compact`: stores on disk.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use tq_engine::import;
use tq_engine::store::{self, Replace};
use tq_engine::trace::Budget;

use crate::args::{CompactArgs, GcArgs, ImportArgs, OpenArgs, RemoveArgs, RunsArgs};
use crate::errors::{Failure, Problem};
use crate::files::{Inputs, Outputs};
use crate::memory;
use crate::open;
use crate::output::{self, print};
use crate::terminal;
use crate::text::visible::visible;
use crate::text::words::counted;
use crate::timeout;

/// `tq import TRACE… --into STORE`.
pub(crate) fn import(args: &ImportArgs) -> Result<(), Failure> {
    timeout::start(args.timeout);
    if args.open.from.is_some() || args.open.to.is_some() {
        return Err(Problem::new("a store holds whole traces: `tq import` takes no --from and --to")
            .hint("give them when you ask: `tq query STORE --from 2ms --to 3ms …`")
            .into());
    }
    if args.open.cluster.is_some() {
        return Err(Problem::new("workers answer queries: `tq import` takes no --cluster").into());
    }
    if args.open.traces.is_empty() {
        return Err(Problem::new("no trace is given").hint("`tq import TRACE… --into STORE`").into());
    }
    let replace = match &args.replace {
        None => Replace::Nothing,
        Some(None) => Replace::SameNames,
        Some(Some(pattern)) => Replace::Matching(pattern.clone()),
    };
    let (into, strict) = (args.into.clone(), args.open.strict);
    let within = OpenArgs { memory: Some(open::memory_of_import(args.open.memory)), ..args.open.clone() };
    let imported = open::reading(&within, move |options| import::import(&into, options, &replace, strict))?;
    imported.notes.iter().for_each(|note| terminal::note(note));
    imported.warnings.iter().for_each(|warning| terminal::warning(warning));
    open::tell(&imported.runs);
    let replaced = match imported.replaced {
        0 => String::new(),
        many => format!(", {} replaced", counted(many, "run")),
    };
    if terminal::is_quiet() {
        return Ok(());
    }
    print(&format!("{} imported into {}{replaced}\n", counted(imported.runs.len(), "run"), shown(&args.into)))
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string()).into_owned()
}

/// `tq runs STORE`.
pub(crate) fn runs(args: &RunsArgs) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    outputs.add("-o", args.output.as_deref());
    outputs.apart_from(&Inputs::default())?;
    memory::over(open::memory_of(args.memory));
    let runs = store::list(&args.store)?;
    let format = output::choose(args.format, args.output.as_deref())?;
    let texts = |value: &dyn Fn(&store::Listed) -> &str| {
        Arc::new(StringArray::from_iter_values(runs.iter().map(value))) as ArrayRef
    };
    let numbers = |value: &dyn Fn(&store::Listed) -> u64| {
        Arc::new(Int64Array::from_iter_values(runs.iter().map(|run| i64::try_from(value(run)).unwrap_or(i64::MAX))))
            as ArrayRef
    };
    let times = runs.iter().map(|run| run.imported_at.checked_mul(1_000_000_000));
    let times = TimestampNanosecondArray::from_iter(times).with_timezone("UTC");
    let columns: [(&str, DataType, ArrayRef); 7] = [
        ("run", DataType::Utf8, texts(&|run| &run.name)),
        ("format", DataType::Utf8, texts(&|run| &run.format)),
        ("tasks", DataType::Int64, numbers(&|run| run.tasks)),
        ("rows", DataType::Int64, numbers(&|run| run.rows)),
        ("bytes", DataType::Int64, numbers(&|run| run.bytes)),
        ("imported_at", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), Arc::new(times)),
        ("source", DataType::Utf8, texts(&|run| &run.source)),
    ];
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        columns.into_iter().map(|(name, data_type, array)| (Field::new(name, data_type, true), array)).unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(|error| Problem::internal(&error.to_string()))?;
    output::write_table(&batch, format, args.output.as_deref())
}

/// `tq remove STORE RUN`.
pub(crate) fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    memory::over(open::memory_of(args.memory));
    let (names, warnings) = store::remove(&args.store, &args.run)?;
    warnings.iter().for_each(|warning| terminal::warning(warning));
    let list: String = names.iter().map(|name| format!("{}\n", visible(name))).collect();
    print(&format!("{list}{} removed; `tq gc` deletes the files\n", counted(names.len(), "run")))
}

/// `tq gc STORE`.
pub(crate) fn gc(args: &GcArgs) -> Result<(), Failure> {
    memory::over(open::memory_of(args.memory));
    let (collected, warnings) = store::gc(&args.store, args.older_than)?;
    warnings.iter().for_each(|warning| terminal::warning(warning));
    print(&format!("{} deleted, {} bytes\n", counted(collected.files as usize, "file"), collected.bytes))
}

/// `tq compact STORE`.
pub(crate) fn compact(args: &CompactArgs) -> Result<(), Failure> {
    let limit = open::memory_of(args.memory);
    memory::over(limit);
    let pool = Arc::new(tq_engine::memory::SessionPool::new(limit));
    let (moved, warnings) = store::compact(
        &args.store,
        &Budget::from(pool as Arc<dyn tq_engine::datafusion::execution::memory_pool::MemoryPool>),
    )?;
    warnings.iter().for_each(|warning| terminal::warning(warning));
    print(&format!("{} moved into common files; `tq gc` deletes the old ones\n", counted(moved, "run")))
}
