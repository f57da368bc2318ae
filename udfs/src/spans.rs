//! Spans: half-open intervals of time `[start, finish)`, and how functions take them as arguments.
//!
//! `f(start, finish)` and `f(start, finish, from, to)` read their columns here, so that NULLs, empty spans and windows
//! mean the same everywhere: a span with a NULL bound is left out, an empty or reversed one has no ticks, a NULL window
//! bound leaves that side open.

pub(crate) mod coverage;
pub(crate) mod in_order;
pub(crate) mod union;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{Signature, TypeSignature, Volatility};

use crate::aggregate::{Row, value_at};
use crate::relation::call::Call;

/// A half-open interval of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first tick.
    pub start: i64,
    /// The first tick after it.
    pub finish: i64,
}

impl Span {
    /// How many ticks it has; reversed spans have none.
    pub fn ticks(self) -> u64 {
        if self.start < self.finish { self.finish.abs_diff(self.start) } else { 0 }
    }

    /// The part inside of a window. May be reversed when there is none.
    pub fn clipped(self, window: Window) -> Span {
        Span {
            start: window.from.map_or(self.start, |from| self.start.max(from)),
            finish: window.to.map_or(self.finish, |to| self.finish.min(to)),
        }
    }
}

impl Row for Span {
    const WORDS: usize = 2;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self.start), Some(self.finish)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        match words {
            [Some(start), Some(finish)] => Span { start: *start, finish: *finish },
            _ => Span { start: 0, finish: 0 },
        }
    }
}

/// The interval that a function is limited to; an open side has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Window {
    /// The first tick, or open.
    pub from: Option<i64>,
    /// The first tick after it, or open.
    pub to: Option<i64>,
}

impl Window {
    /// The options `from` and `to` of a relation function.
    pub(crate) fn of(call: &Call) -> Result<Window> {
        let window = Window { from: call.options.integer("from")?, to: call.options.integer("to")? };
        match (window.from, window.to) {
            (Some(from), Some(to)) if to < from => {
                exec_err!("{}: the window ends at {to}, before it begins at {from}", call.name())
            }
            _ => Ok(window),
        }
    }
}

/// The columns `start, finish, [more…], [from, to]` of one batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanColumns<'a> {
    starts: &'a Int64Array,
    finishes: &'a Int64Array,
    window: Option<(&'a Int64Array, &'a Int64Array)>,
}

impl<'a> SpanColumns<'a> {
    /// Reads the first two columns as spans, and the columns after the first `required` as the window.
    pub(crate) fn new(values: &'a [ArrayRef], required: usize) -> Self {
        let column = |index: usize| values[index].as_primitive::<Int64Type>();
        let window = (values.len() > required).then(|| (column(required), column(required + 1)));
        SpanColumns { starts: column(0), finishes: column(1), window }
    }

    /// The span of a row, unless a bound is NULL.
    #[inline]
    pub(crate) fn span(self, row: usize) -> Option<Span> {
        Some(Span { start: value_at(self.starts, row)?, finish: value_at(self.finishes, row)? })
    }

    /// The window of a row. `function` words the error about a reversed one.
    #[inline]
    pub(crate) fn window(self, row: usize, function: &str) -> Result<Window> {
        let Some((from, to)) = self.window else { return Ok(Window::default()) };
        let window = Window { from: value_at(from, row), to: value_at(to, row) };
        match window {
            Window { from: Some(from), to: Some(to) } if to < from => {
                exec_err!("{function}: the window ends before it begins: from {from} to {to}")
            }
            _ => Ok(window),
        }
    }
}

/// The signature of `f(required… [, from, to])`, all `BIGINT`, all to be had by name.
pub(crate) fn windowed_signature(required: &[&str]) -> Signature {
    let exact = |count: usize| TypeSignature::Exact(vec![DataType::Int64; count]);
    let signature = Signature::one_of(vec![exact(required.len()), exact(required.len() + 2)], Volatility::Immutable);
    named(signature, &[required, &["from", "to"]].concat())
}

/// A signature with names for its parameters.
pub(crate) fn named(signature: Signature, names: &[&str]) -> Signature {
    let unnamed = signature.clone();
    // The names are constants of this crate; a test of the registry sees to it that each function takes its names.
    signature.with_parameter_names(names.to_vec()).unwrap_or(unnamed)
}
