//! Experiments: what is measured, how, and what came out is in `benches/results/`.
//!
//! `examples/` holds one program per question; each prints its figures and runs the thing that it compares with in the same
//! process. Run them in release mode, e.g. `cargo run --release --example sql_functions`.

pub mod generate;
pub mod measure;
pub mod random;
