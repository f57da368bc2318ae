//! The engine of `tq`: traces become Arrow tables, SQL runs over them. A library that other programs can embed.
//!
//! The life of a trace: recognise (by content) → read → build ([`trace`]) → check → [`session::Session`]. The life of a
//! query: text → parse → rewrite → plan → stream of record batches. Nothing here prints or exits.
//!
//! A program that embeds the engine opens traces with [`Session::open`], or hands over runs that it made itself, brings formats
//! ([`OpenOptions::importers`]) and functions ([`Session::register`]) of its own, and asks:
//!
//! ```
//! use tq_engine::tables::{Links, Tasks};
//! use tq_engine::trace::Location;
//! use tq_engine::{NamedRun, OpenOptions, RunBuilder, Session};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A run that comes from no file: task 1 waits for task 0. Columns that are not given are NULL.
//! let mut run = RunBuilder::in_memory("a simulation");
//! run.location(&Location { location: "core 0", kind: "thread", role: "compute", ..Location::default() })?;
//! let (start, finish) = (vec![0, 50].into(), vec![40, 80].into());
//! run.append(Tasks { location: "core 0".into(), start, finish, ..Tasks::default() })?;
//! let (source, target) = (vec![0, 7].into(), vec![1, 1].into());
//! run.append(Links { source, target, kind: "dependency".into(), ..Links::default() })?;
//! let run = NamedRun { name: "first".to_owned(), format: "simulation", run: run.finish(1)? };
//!
//! // 1 GiB for tables and queries, two threads.
//! let session = Session::from_runs(vec![run], &OpenOptions::new(1 << 30, 2))?;
//!
//! // Queries are polled by the program's own runtime, as many at once as it likes.
//! let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
//! runtime.block_on(async {
//!     let query = session.sql("SELECT step, duration, path_time FROM critical_path()").await?;
//!     let mut rows = query.start().await?;
//!     let from_elsewhere = rows.canceller(); // ends this query, and no other, from any thread
//!     let mut steps = 0;
//!     while let Some(batch) = rows.next().await {
//!         steps += batch?.num_rows();
//!     }
//!     assert_eq!(steps, 2);
//!     // What functions have to say beside their rows, of this query alone.
//!     let notes = rows.take_notes();
//!     assert_eq!(notes[0].to_string(), "critical_path: 1 link to a task that is not there was left out");
//!     # assert!(!from_elsewhere.is_cancelled());
//!     Ok(())
//! })
//! # }
//! ```
//!
//! [`Session`] is `Send` and `Sync`: put it into an `Arc`, and queries of several threads share its tables, its memory limit and
//! whatever statements define (views, settings). A query ends when its [`Rows`] are dropped, or by its [`Canceller`]; operators
//! that compute without awaiting notice either before their next batch. Deeply nested statements recurse: give the threads of a
//! runtime that runs untrusted statements a large stack (the command line uses 256 MiB, of which only touched pages take memory).

pub use datafusion;
pub use tq_udfs as udfs;

pub use importers::Importer;
pub use options::{OpenOptions, TraceSpec};
pub use session::{Function, Session};
pub use sql::query::{Canceller, Query, Rows};
pub use tables::Table;
pub use trace::{NamedRun, RunBuilder};

/// The version of this engine.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod cells;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod error;
pub mod figures;
pub mod import;
pub mod importers;
pub mod memory;
pub mod nearest;
pub mod open;
mod options;
pub mod paths;
pub mod perfetto;
pub mod queries;
pub mod remote;
pub mod secret;
pub mod session;
pub mod sql;
pub mod store;
pub mod tables;
pub mod time;
pub mod trace;
mod view_schema;
mod words;
