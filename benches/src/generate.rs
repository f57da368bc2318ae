//! Traces of any size that look like recorded ones, the same on every machine.

pub mod dense_chrome;
pub mod grown;
pub mod pariter;
