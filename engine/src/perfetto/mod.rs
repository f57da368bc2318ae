//! The schema `perfetto`: the tables of Perfetto's trace processor as views over ours, so that PerfettoSQL runs
//! unchanged.
//!
//! ```text
//! SELECT name, dur FROM slice WHERE name GLOB 'cuda*'      slice        → perfetto.slice, a view over tasks and events
//!   AND EXTRACT_ARG(arg_set_id, 'args.stream') = 7         EXTRACT_ARG  → a look-up in tasks.args by task
//! SELECT * FROM ancestor_slice(42)                         → ancestors(…), rewritten in `sql::perfetto`
//! ```
//! Unqualified names are looked up here when `main` has no such name (`schema.rs`); `CREATE OR REPLACE VIEW slice …` hides the one
//! here. Views are planned when a query first names them: a session that does not use them pays nothing.
//!
//! The documentation of the views (`views.rs`) says how each differs from the original; in addition, every view has the
//! column `run`, and ids are those of `tasks`, not row numbers.

mod arguments;
mod extract_arg;
mod schema;
mod views;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use tq_udfs::ticks::Tick;

pub use views::VIEWS;

use self::arguments::FlatArguments;
use self::extract_arg::{Arguments, ExtractArg};
use self::schema::Fallback;
use crate::view_schema::ViewSchema;

/// The name of the schema.
pub const SCHEMA: &str = "perfetto";

/// Names that Perfetto still understands.
const OLDER_NAMES: [(&str, &str); 1] = [("slices", "slice")];

/// Gives all tasks when they are asked for first: batches in the order of their ids that have `task` and `args`, and what holds their memory.
pub(crate) type LoadTasks = Box<dyn FnOnce() -> Result<(Vec<RecordBatch>, MemoryReservation)> + Send>;

/// Registers the views and their functions.
pub(crate) fn register(
    context: &mut SessionContext,
    catalog: &dyn CatalogProvider,
    main: Arc<dyn SchemaProvider>,
    tasks: LoadTasks,
    tick: Tick,
) -> Result<()> {
    context.register_udf(Arc::new(ScalarUDF::from(ExtractArg::new(Arguments::new(tasks)))))?;
    context.register_udf(Arc::new(ScalarUDF::from(FlatArguments::new())))?;
    // The absolute time of a trace in picoseconds does not fit a BIGINT.
    let sql = |sql: &str| match tick {
        Tick::Weight | Tick::Nanosecond => sql.to_owned(),
        Tick::Picosecond => sql.replace("coalesce(r.origin, 0)", "0"),
    };
    let views: Arc<dyn SchemaProvider> = Arc::new(ViewSchema::of(context, &VIEWS, &OLDER_NAMES, sql));
    catalog.register_schema("main", Arc::new(Fallback::new(main, Arc::clone(&views))))?;
    catalog.register_schema(SCHEMA, views)?;
    Ok(())
}
