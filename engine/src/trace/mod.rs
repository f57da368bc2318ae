//! The life of a trace up to its tables: a [`Source`] of bytes, a [`RunBuilder`] that turns records into Arrow columns,
//! [`Stats`] that count what was skipped, repaired or guessed.
//!
//! Recognise and read are the importers' part (`crate::importers`); build and check happen here, once for all formats, so
//! that every format gets the same identities, the same repairs and the same accounting.

mod assemble;
mod blocks;
pub(crate) mod budget;
mod builder;
mod clocks;
mod deadline;
mod decompress;
mod dictionary;
pub mod findings;
mod identity;
pub(crate) mod kinds;
mod nesting;
mod on_disk;
mod reach;
mod records;
mod rows;
mod run;
mod run_columns;
pub(crate) mod slice;
mod sound;
mod source;
mod spill;
mod stats;
pub mod temporary;

pub use crate::words::Words;
pub use assemble::ROWS_PER_BATCH;
pub(crate) use assemble::{in_order, side_by_side};
pub use blocks::{Block, Ending, parse_blocks, parse_files, parse_reader};
pub use budget::Budget;
pub use builder::{Location, Part, RunBuilder};
pub use deadline::Deadline;
pub(crate) use dictionary::{with_own_texts, with_own_words};
pub use findings::{Finding, Severity, Stage};
pub(crate) use identity::Later;
pub use nesting::{LaneSpans, NO_LANE, Nesting, nest};
pub(crate) use nesting::{NestingOnDisk, Overlap, Standing};
pub(crate) use records::{Column, Kept, List, Plain, Record, Room, Sorted, Sorter, record};
pub use rows::Rows;
pub use run::{NamedRun, Run, RunInfo};
pub(crate) use run::{ReadFile, RowsElsewhere};
pub(crate) use run_columns::{RunColumn, one_column};
pub use slice::Slice;
pub use sound::faults;
pub(crate) use source::stem;
pub use source::{LocalFile, MadeFile, Progress, Source};
pub(crate) use spill::{Spill, SpilledColumns, Stretch};
pub use stats::{Stat, Stats};
pub(crate) use temporary::{TemporaryFolder, no_copy};
