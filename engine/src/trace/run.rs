//! A run as it leaves the builder: its tables, what it says about itself, and how its rows are numbered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use tq_udfs::ticks::Tick;

use super::on_disk::OnDisk;
use super::stats::Stat;
use crate::store::StoredRows;
use crate::tables::Table;

/// Rows of a batch of a session table.
pub const ROWS_PER_BATCH: usize = 8192;

/// `task` and `message` are `run_number · 2^40 + position`.
const POSITION_BITS: u32 = 40;

/// What a trace says about itself: the columns of `runs` that cannot be computed from its tables.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The name that the format itself gives, where a file holds several runs.
    pub own_name: Option<String>,
    /// The traced program.
    pub program: Option<String>,
    /// Wall clock at the origin, ns since 1970 UTC.
    pub started_at: Option<i64>,
    /// The unit of the trace's own times.
    pub time_unit: &'static str,
    /// The tick that this run's times are given in.
    pub tick: Option<Tick>,
    /// The trace's clock at tick 0 in ns.
    pub origin: Option<i64>,
    /// Cores used.
    pub cores: Option<i64>,
    /// Problem size as written, and as a number.
    pub argument: Option<String>,
    /// The problem size as a number.
    pub problem_size: Option<f64>,
    /// Rank of the problem size.
    pub size_order: Option<i64>,
    /// Number of the repetition.
    pub repetition: Option<i64>,
    /// The scalability study that the run is an execution of, by its place in a directory of studies (`blur/lu` in the trace
    /// `studies`); `""` for a trace that is one study.
    pub study: Option<String>,
    /// Everything else, a JSON object.
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// A finished run. Times are still in the run's own tick.
#[derive(Debug)]
pub struct Run {
    /// What the trace says about itself.
    pub info: RunInfo,
    /// Findings, books closed.
    pub stats: Vec<Stat>,
    /// The file it came from.
    pub source: PathBuf,
    /// Counts from 0 in the order in which runs were begun.
    pub run_number: i64,
    /// Batches by table, without `run`, `runs` and `import_stats`, which the session adds.
    pub tables: BTreeMap<Table, Vec<RecordBatch>>,
    /// Tables that wait on disk, while runs are imported into a store; they are not in `tables`.
    pub(crate) on_disk: BTreeMap<Table, OnDisk>,
    /// The memory of the batches, given back on drop.
    pub memory: MemoryReservation,
    /// Whether the messages have their identities yet (`identity.rs`).
    pub(crate) identities_later: bool,
    /// Its rows, where they stay in a store; `tables` is empty then.
    pub(crate) stored: Option<Arc<StoredRows>>,
}

/// The first identity of a run: `run_number · 2^40`.
pub(super) fn first_identity(run_number: i64) -> i64 {
    run_number << POSITION_BITS
}
