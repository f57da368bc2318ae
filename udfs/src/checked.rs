//! Whole numbers that do not wrap: what `+`, `-`, `*`, unary `-` and `sum` do in a session.
//!
//! DataFusion's own operators on integers wrap silently: 2⁶³ − 1 ticks plus ten is a negative time. The engine rewrites
//! them into the functions of [`arithmetic`], and registers [`sum`] in place of DataFusion's, so that a result that
//! does not fit is an error. They also keep track of which results are times: a time minus a time is a time again.

pub mod arithmetic;
pub mod chain;
pub mod divide;
pub mod intervals;
pub(crate) mod quotients;
pub mod sum;
pub(crate) mod whole;
