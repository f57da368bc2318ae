//! Text for people and machines: characters that cannot be seen ([`visible`]), lines that a CI system would take for
//! commands ([`runner`]), bytes as letters ([`mod@base64`]), and wording of counts, sizes and lists ([`words`]).

pub(crate) mod base64;
pub(crate) mod runner;
pub(crate) mod visible;
pub(crate) mod words;
