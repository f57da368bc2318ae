//! The commands, one file each. The prompt, checks, and the page of `tq view` have folders of their own.

pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod formats;
pub(crate) mod functions;
pub(crate) mod man;
pub(crate) mod queries;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod store;
pub(crate) mod tables;
