//! Room for what recurses: parsing, planning and dropping follow the nesting of a statement.
//!
//! A chain `1 + 1 + …` is a tree as deep as it is long, and derived `Clone` and `Drop`, visitors and the planner walk down it
//! on the caller's stack, which has 2 MiB in a test or on a tokio worker. [`deep`] and [`Deep`] give such work a stack of its
//! own when there is less than [`ENOUGH`]; what that must bear at most is bounded by [`super::limits`]. The pages of such a
//! stack cost nothing until they are touched.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What the deepest statement within the limits needs, in a build without optimisation, which needs most.
const ENOUGH: usize = 192 << 20;
/// The size of a new stack.
const NEW: usize = 256 << 20;

/// Does `work` with enough stack.
pub(super) fn deep<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(ENOUGH, NEW, work)
}

/// A step of a recursion over expressions, on whatever stack: a new piece of it when little is left.
pub(super) fn grown<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(512 << 10, 4 << 20, step)
}

/// A future that is polled with enough stack. It is boxed: its own state may be large.
pub(super) struct Deep<F>(Pin<Box<F>>);

impl<F> Deep<F> {
    pub(super) fn new(future: F) -> Self {
        Deep(Box::pin(future))
    }
}

impl<F: Future> Future for Deep<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let inner = self.0.as_mut();
        deep(|| inner.poll(context))
    }
}
