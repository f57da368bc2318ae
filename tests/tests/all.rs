//! Every test that needs more than one crate, in one binary: each further binary costs a link of a fifth of a gigabyte.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod agree;
mod chrome_dialects;
mod circles;
#[cfg(feature = "cluster")]
mod cluster;
mod collectives;
mod compared;
mod damaged;
mod embedding;
mod extremes;
mod gpu_figures;
mod import_actorprof;
mod import_chrome;
mod import_daisen;
mod import_folded;
mod import_nsys;
mod import_parsec;
mod import_pascal;
mod import_table;
mod import_table_odd;
mod import_table_rows;
mod import_tfprof;
mod perfetto;
mod profiler;
mod queries;
mod relations;
mod slt;
mod store;
mod tidy;
mod times;
