//! Every test that needs more than one crate, in one binary: each further binary costs a link of a fifth of a gigabyte.

mod tidy;
