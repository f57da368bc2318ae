//! Text, wherever people or machines read it: what cannot be seen ([`visible`]), what a CI system would take for a command
//! ([`runner`]).

pub(crate) mod runner;
pub(crate) mod visible;
