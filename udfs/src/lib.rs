//! The functions of `tq`: pure computations over Arrow arrays, and their SQL faces.
//!
//! One file per function. Nothing here reads a file, asks a clock, prints, or knows a trace format; the engine decides
//! what the arrays mean. Aggregates and windows accept any `BIGINT` start and finish.

pub mod ticks;
