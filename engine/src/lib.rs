//! The engine of `tq`: traces become Arrow tables, SQL runs over them. A library that other programs can embed.
//!
//! The life of a trace: recognise (by content) → read → build ([`trace`]) → check → [`session::Session`]. The life of a
//! query: text → parse → rewrite → plan → stream of record batches. Nothing here prints or exits.

/// The version of this engine.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod cells;
pub mod error;
pub mod importers;
pub mod memory;
pub mod open;
pub mod paths;
pub mod perfetto;
pub mod queries;
pub mod session;
pub mod sql;
pub mod tables;
pub mod time;
pub mod trace;
mod words;
