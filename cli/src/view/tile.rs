//! A tile: what a stretch of time shows of some lanes, in so many pixels.
//!
//! Tasks that are wide enough are there themselves; the others are summed up by bin, so that none is missing and none is drawn where
//! it is not.

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::json;
use tq_udfs::bins::Edges;
use tq_udfs::graph::NONE;
use tq_udfs::overview::rows::{RowBin, RowSpan};

use super::model::{Frame, ROWS_MAX};
use super::wire::Columns;

/// What is asked.
pub(super) struct Asked {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) bins: usize,
    pub(super) lanes: Vec<u32>,
}

/// A tile.
pub(super) struct Cut {
    pub(super) columns: Columns,
    /// How many tasks it sums up that a closer look would draw.
    pub(super) summed: u64,
    /// The names that are in it.
    pub(super) names: HashSet<u32>,
}

/// Bins of a tile: more than a screen has pixels.
pub(super) const BINS_MAX: usize = 4096;
/// A task of so many bins is drawn itself.
const WIDE: u64 = 2;

/// Cuts a tile; `None` when a bin would be longer, or an instant greater, than a BIGINT.
pub(super) fn cut(frame: Frame<'_>, asked: &Asked) -> Option<Cut> {
    let model = frame.model;
    let length = asked.from.abs_diff(asked.to);
    let bins = asked.bins.clamp(1, BINS_MAX).min(usize::try_from(length).unwrap_or(usize::MAX).max(1));
    let edges = Edges::new(asked.from, asked.to, bins)?;
    let wide = least_drawn(asked.from, asked.to, bins);
    let (mut tasks, mut groups, mut summed) = (Vec::new(), Vec::new(), Vec::new());
    let is_wide = |start: i64, finish: i64| finish.abs_diff(start) >= wide;
    let lasting = Cell::new(0);
    let is_summed = |start: i64, finish: i64| {
        let is_summed = !is_wide(start, finish);
        // What takes no time is drawn at no zoom.
        lasting.set(lasting.get() + u64::from(is_summed && start < finish));
        is_summed
    };
    model.with_tally(|tally| {
        for (&lane, of) in asked.lanes.iter().filter_map(|lane| Some((lane, model.lanes.get(*lane as usize)?))) {
            let shift = frame.shift(of);
            let (from, to) = (asked.from.checked_add(shift)?, asked.to.checked_add(shift)?);
            let edges = Edges::new(from, to, bins)?;
            for (number, row) in (0_u16..).zip(of.rows.iter().take(ROWS_MAX)) {
                let wide = row.within(from, to).map(|place| row.span(place));
                let wide = wide.filter(|span| is_wide(span.start, span.finish));
                tasks.extend(wide.map(|span| (lane, number, shifted(span, shift))));
                let before = summed.len();
                row.bins(&edges, tally, is_summed, |bin| summed.push(bin));
                if summed.len() > before {
                    groups.push((lane, number, (summed.len() - before) as u32));
                }
            }
        }
        Some(())
    })?;
    let names = tasks.iter().map(|(.., span)| span.name).chain(summed.iter().map(|bin| bin.name));
    let names = names.filter(|name| *name != NONE).collect();
    Some(Cut { columns: columns(asked, &edges, &tasks, &groups, &summed), summed: lasting.get(), names })
}

/// The ticks from which on a task is drawn itself.
pub(super) fn least_drawn(from: i64, to: i64, bins: usize) -> u64 {
    (from.abs_diff(to) / bins as u64).saturating_mul(WIDE).max(1)
}

fn shifted(span: RowSpan, shift: i64) -> RowSpan {
    RowSpan { start: span.start - shift, finish: span.finish - shift, ..span }
}

fn columns(
    asked: &Asked,
    edges: &Edges,
    tasks: &[(u32, u16, RowSpan)],
    groups: &[(u32, u16, u32)],
    summed: &[RowBin],
) -> Columns {
    let mut columns = Columns::default();
    columns.extra("from", json!(asked.from.to_string()));
    columns.extra("to", json!(asked.to.to_string()));
    columns.extra("bins", json!(edges.len()));
    let mut table = columns.table("tasks", tasks.len());
    table.u32("lane", tasks.iter().map(|task| task.0));
    table.u16("row", tasks.iter().map(|task| task.1));
    table.i64("start", tasks.iter().map(|task| task.2.start));
    table.i64("finish", tasks.iter().map(|task| task.2.finish));
    table.u32("name", tasks.iter().map(|task| task.2.name));
    table.i64("task", tasks.iter().map(|task| task.2.task));
    table.end();
    let mut table = columns.table("groups", groups.len());
    table.u32("lane", groups.iter().map(|group| group.0));
    table.u16("row", groups.iter().map(|group| group.1));
    table.u32("bins", groups.iter().map(|group| group.2));
    table.end();
    let share = |bin: usize, ticks: i64| {
        let (start, finish) = edges.of_bin(bin);
        ticks as f64 / (finish - start).max(1) as f64
    };
    let mut table = columns.table("bins", summed.len());
    table.u16("bin", summed.iter().map(|bin| bin.bin as u16));
    table.u32("count", summed.iter().map(|bin| bin.count as u32));
    table.shares("busy", summed.iter().map(|bin| share(bin.bin, bin.busy)));
    table.u32("name", summed.iter().map(|bin| bin.name));
    table.shares("share", summed.iter().map(|bin| share(bin.bin, bin.name_busy)));
    table.end();
    columns
}

/// `0-3,7,9`: lanes by number. `None` for what is no such list.
pub(super) fn lanes_of(text: &str) -> Option<Vec<u32>> {
    let mut lanes = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last == NONE || (last - first) as usize + lanes.len() >= LANES_MAX {
            return None;
        }
        lanes.extend(first..=last);
    }
    lanes.sort_unstable();
    lanes.dedup();
    Some(lanes)
}

/// Lanes that one tile may ask for.
const LANES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_numbers_and_ranges() {
        assert_eq!(lanes_of("7,0-3,9,2-3"), Some(vec![0, 1, 2, 3, 7, 9]));
        assert_eq!(lanes_of(""), Some(vec![]));
        for wrong in ["a", "3-1", "1-", "-1", "0-4294967295", "0-200000"] {
            assert_eq!(lanes_of(wrong), None, "{wrong}");
        }
    }
}
