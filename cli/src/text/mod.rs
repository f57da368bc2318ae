//! Text, wherever people or machines read it: what cannot be seen ([`visible`]), what a CI system would take for a command
//! ([`runner`]), and the words for counts, sizes and lists ([`words`]).

pub(crate) mod runner;
pub(crate) mod visible;
pub(crate) mod words;
