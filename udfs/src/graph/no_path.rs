//! Why a walk over a graph ends without an answer.

/// Why there is no longest chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPath {
    /// The path time of this task does not fit a `BIGINT`.
    Overflow(u32),
    /// These tasks wait for each other in a circle, in this order; the smallest one is first.
    Cycle(Vec<u32>),
    /// The caller asked to stop.
    Interrupted,
}

/// Asked about every hundred thousand steps; `true` ends the computation.
pub type Interrupted<'a> = &'a dyn Fn() -> bool;

/// [`NoPath::Interrupted`] when the caller wants to stop.
pub(super) fn stop_if(interrupted: Interrupted<'_>) -> Result<(), NoPath> {
    if interrupted() { Err(NoPath::Interrupted) } else { Ok(()) }
}
