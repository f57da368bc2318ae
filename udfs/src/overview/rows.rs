//! A row of a picture: spans that do not overlap, and what each bin of a window holds of them.
//!
//! Life of the data: the sorted spans of a lane float up into rows; a row is three arrays in order of time. A window is found by
//! searching, its spans are swept once, and what a bin holds is complete when the first span behind it comes.

use std::ops::Range;

use crate::bins::Edges;
use crate::floating_row::FloatingRows;
use crate::graph::NONE;
use crate::lanes::LaneSpan;
use crate::spans::Span;

/// The spans of a row in order of time; no two overlap.
#[derive(Debug, Default)]
pub struct Row {
    starts: Vec<i64>,
    finishes: Vec<i64>,
    names: Vec<u32>,
    tasks: Vec<i64>,
}

/// Bytes that a span takes in its row.
pub const SPAN_BYTES: usize = 3 * size_of::<i64>() + size_of::<u32>();

/// A span of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSpan {
    /// First tick.
    pub start: i64,
    /// First tick after it; the start for a mark.
    pub finish: i64,
    /// The number of its name, [`NONE`] for none.
    pub name: u32,
    /// Whose span it is.
    pub task: i64,
}

/// What a row holds in a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowBin {
    /// The number of the bin.
    pub bin: usize,
    /// How many spans touch it.
    pub count: i64,
    /// How many of its ticks one of them covers.
    pub busy: i64,
    /// The number of the name with most ticks, the smallest of several.
    pub name: u32,
    /// How many ticks it has.
    pub name_busy: i64,
}

/// The rows of a lane, from the first. Its spans come in the order of [`sort_lane`](crate::lanes::sort_lane); `of` gives the name and the
/// task of a span.
pub fn rows_of(spans: &[LaneSpan], of: impl Fn(&LaneSpan) -> (u32, i64)) -> Vec<Row> {
    let mut places = FloatingRows::default();
    let mut rows: Vec<Row> = Vec::new();
    for span in spans {
        let place = places.place_in_order(Span { start: span.start, finish: span.finish });
        if place == rows.len() {
            rows.push(Row::default());
        }
        let (name, task) = of(span);
        rows[place].push(RowSpan { start: span.start, finish: span.finish, name, task });
    }
    rows
}

impl Row {
    /// Adds the next span, which overlaps none of those before it.
    pub fn push(&mut self, span: RowSpan) {
        self.starts.push(span.start);
        self.finishes.push(span.finish);
        self.names.push(span.name);
        self.tasks.push(span.task);
    }

    /// How many spans there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// A span.
    pub fn span(&self, place: usize) -> RowSpan {
        let (start, finish) = (self.starts[place], self.finishes[place]);
        RowSpan { start, finish, name: self.names[place], task: self.tasks[place] }
    }

    /// The spans that touch [from, to), marks at both ends among them.
    pub fn within(&self, from: i64, to: i64) -> Range<usize> {
        let first = self.finishes.partition_point(|&finish| finish <= from);
        // A mark at the beginning ended there.
        let first = first - self.starts[..first].iter().rev().take_while(|&&start| start == from).count();
        let last = self.starts.partition_point(|&start| start <= to);
        let last =
            if last > first && self.starts[last - 1] == to && self.finishes[last - 1] > to { last - 1 } else { last };
        first..last.max(first)
    }

    /// What the bins hold of the spans that `counts` names, in order; bins without any are left out.
    pub fn bins(
        &self,
        edges: &Edges,
        ticks_of: &mut TicksOfNames,
        counts: impl Fn(i64, i64) -> bool,
        mut found: impl FnMut(RowBin),
    ) {
        let mut open: Option<RowBin> = None;
        // The end of the open bin: most spans lie in the bin of the one before.
        let mut until = i64::MIN;
        for place in self.within(edges.from(), edges.to()) {
            let (start, finish, name) = (self.starts[place], self.finishes[place], self.names[place]);
            if !counts(start, finish) {
                continue;
            }
            let is_mark = start == finish;
            let start = start.clamp(edges.from(), edges.to() - 1);
            let finish = if is_mark { start } else { finish.min(edges.to()) };
            let (mut bin, mut start) = match open {
                Some(open) if start < until => (open.bin, start),
                _ => (edges.bin(start), start),
            };
            loop {
                if open.is_none_or(|open| open.bin != bin) {
                    if let Some(full) = open.take() {
                        found(ticks_of.close(full));
                    }
                    until = edges.of_bin(bin).1;
                    open = Some(RowBin { bin, count: 0, busy: 0, name: NONE, name_busy: 0 });
                }
                let ticks = finish.min(until).saturating_sub(start).max(0);
                if let Some(open) = &mut open {
                    (open.count, open.busy) = (open.count + 1, open.busy + ticks);
                }
                ticks_of.add(name, ticks);
                if finish <= until {
                    break;
                }
                // Bins without ticks lie between others of a short window.
                (bin, start) = (edges.bin(until), until);
            }
        }
        if let Some(full) = open {
            found(ticks_of.close(full));
        }
    }
}

/// Ticks by name while a bin is open.
#[derive(Debug)]
pub struct TicksOfNames {
    /// The last one is that of spans without a name.
    ticks: Vec<i64>,
    touched: Vec<u32>,
}

/// Not touched.
const UNTOUCHED: i64 = -1;

impl TicksOfNames {
    /// For names below this number.
    pub fn new(names: usize) -> TicksOfNames {
        TicksOfNames { ticks: vec![UNTOUCHED; names + 1], touched: vec![] }
    }

    fn add(&mut self, name: u32, ticks: i64) {
        let place = (name as usize).min(self.ticks.len() - 1);
        if self.ticks[place] == UNTOUCHED {
            self.ticks[place] = 0;
            self.touched.push(name);
        }
        self.ticks[place] += ticks;
    }

    /// The bin with the name that has most of it.
    fn close(&mut self, mut bin: RowBin) -> RowBin {
        bin.name_busy = UNTOUCHED;
        for name in self.touched.drain(..) {
            let place = (name as usize).min(self.ticks.len() - 1);
            let ticks = std::mem::replace(&mut self.ticks[place], UNTOUCHED);
            if ticks > bin.name_busy || ticks == bin.name_busy && name < bin.name {
                (bin.name, bin.name_busy) = (name, ticks);
            }
        }
        bin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::sort_lane;
    use crate::relation::rows::Ties;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_look_at_every_tick(
            spans in vec((-5..25i64, 0..9i64, 0..3u32), 0..12), from in -6..20i64, length in 1..30i64, bins in 1..12usize,
        ) {
            let span = |(row, (start, length, _)): (u32, &(i64, i64, u32))| LaneSpan::new(*start, start + length, row);
            let mut lane: Vec<LaneSpan> = (0..).zip(&spans).map(span).collect();
            sort_lane(&mut lane, &Ties::by_row());
            let rows = rows_of(&lane, |span| (spans[span.row as usize].2, i64::from(span.row)));
            prop_assert_eq!(rows.iter().map(Row::len).sum::<usize>(), spans.len());
            let edges = Edges::new(from, from + length, bins).unwrap();
            let mut ticks_of = TicksOfNames::new(3);
            for row in &rows {
                let mut found = vec![];
                row.bins(&edges, &mut ticks_of, |_, _| true, |bin| found.push(bin));
                let all: Vec<RowSpan> = (0..row.len()).map(|place| row.span(place)).collect();
                prop_assert!(all.windows(2).all(|two| two[0].finish <= two[1].start));
                let expected: Vec<RowBin> = (0..bins).filter_map(|bin| look(&all, &edges, bin)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// The bin by looking at each of its ticks.
    fn look(spans: &[RowSpan], edges: &Edges, bin: usize) -> Option<RowBin> {
        let (first, last) = edges.of_bin(bin);
        let covered =
            |span: &RowSpan| (first..last).filter(|tick| span.start <= *tick && *tick < span.finish).count() as i64;
        // A mark at the end of the window is in its last bin.
        let at = |span: &RowSpan| if span.start == edges.to() { edges.to() - 1 } else { span.start };
        let touches =
            |span: &&RowSpan| covered(span) > 0 || span.start == span.finish && first <= at(span) && at(span) < last;
        let there: Vec<&RowSpan> = spans.iter().filter(touches).collect();
        let ticks = |name: u32| there.iter().filter(|span| span.name == name).map(|span| covered(span)).sum::<i64>();
        let name = there.iter().map(|span| span.name).min_by_key(|&name| (-ticks(name), name))?;
        let busy = there.iter().map(|span| covered(span)).sum();
        Some(RowBin { bin, count: there.len() as i64, busy, name, name_busy: ticks(name) })
    }

    #[test]
    fn spans_that_do_not_count_are_left_out() {
        let lane: Vec<LaneSpan> =
            (0..4).map(|row| LaneSpan::new(10 * i64::from(row), 10 * i64::from(row) + 4, row)).collect();
        let rows = rows_of(&lane, |span| (span.row, i64::from(span.row)));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].within(4, 30), 1..3);
        let mut found = vec![];
        let edges = Edges::new(0, 40, 4).unwrap();
        rows[0].bins(
            &edges,
            &mut TicksOfNames::new(4),
            |start, _| start != 10,
            |bin| found.push((bin.bin, bin.busy, bin.name)),
        );
        assert_eq!(found, [(0, 4, 0), (2, 4, 2), (3, 4, 3)]);
    }
}
