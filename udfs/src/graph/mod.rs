//! Task graphs as dense numbers: what `critical_path` and its relatives compute on.
//!
//! Life of the data: [`load`] reads the inputs `tasks` and `links` batch by batch and splits them by run; [`ids`] numbers
//! the tasks of a run in the order of their ids; [`links`] keeps the links of a run as pairs of such numbers and knows in
//! which order they can be walked; [`longest`] walks them, after [`sort`] where they came unsorted. Links that are sorted
//! in their table are read there and not kept ([`in_order`], [`standing`]). Nothing below [`load`] sees an Arrow array, so that tests
//! and benches call the algorithms with slices.

pub(crate) mod explain;
pub mod ids;
pub mod in_order;
pub mod links;
pub mod load;
pub mod longest;
pub mod no_path;
pub(crate) mod rows;
pub mod sort;
pub mod standing;

/// "No task": an index that no task has.
pub const NONE: u32 = u32::MAX;
