//! Cluster: one query on several machines, all of which see the same store.
//!
//! ```text
//! client   SQL ─▶ plan, as always ─▶ fragments are cut out ─────────────▶ the rest of the plan ─▶ all rows ─▶ answer
//!                                      │ (protobuf over gRPC)              ▲ (Arrow over gRPC)
//! workers                              └─▶ the store, opened as there ─▶ rows, how many they were, notes
//! ```
//! A fragment is what needs rows of a store and nothing else: its scan with filters, computed columns, the first half of an aggregate, a
//! sort of each partition, a relation function of runs of their own, or an aggregate by run. Where it stood, the client's plan gets the rows
//! of all workers in the order of the table or of its runs; what is above does not know the difference. What cannot be sent runs at the
//! client.
//!
//! The stages, their transport and their encoding are those of datafusion-distributed; here is
//!
//! ```text
//! fragments   what is cut out, and into which parts       client     planning, collecting, trying again without a lost worker
//! codec       our operators as bytes                      worker     a process that does fragments
//! closed      the end of a fragment's rows                channel    connections: token, limits, signs of life
//! options     what a worker must know of the session      running    fragments on threads of their own
//! workers     their addresses and errors                  status     who would help, and what it does
//! ```
//! An answer is never partial: the last row of each partition of a fragment says how many there were, and nothing is shown before all
//! rows are there.

mod channel;
mod client;
mod closed;
mod codec;
mod fragments;
mod options;
mod running;
mod status;
mod worker;
mod workers;

pub use client::join;
pub use running::{Fragments, Refusal, Work};
pub use status::{State, Status, status};
pub use worker::{Serving, can_show, serve};
pub use workers::{Address, Workers};

/// What both sides must have in common: plans and functions of the same sources and libraries mean the same.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("TQ_SOURCES"));

/// Bytes of a message at most, on both sides. Batches are cut well below.
const MESSAGE_BYTES: usize = 64 << 20;
