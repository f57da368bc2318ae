//! A tile: what a stretch of time shows of some lanes, in so many pixels.
//!
//! Tasks that are wide enough are there themselves; the others are summed up by bin, so that none is missing and none is drawn where
//! it is not.

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::json;
use tq_udfs::bins::Edges;
use tq_udfs::graph::NONE;
use tq_udfs::overview::rows::{Row, RowBin, RowSpan, TicksOfNames};

use super::kept::KeptPart;
use super::model::{Frame, ROWS_MAX};
use super::wire::Columns;
use crate::errors::Failure;

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

/// Tasks of a tile with their lanes and rows, and its sums by lane and row.
#[derive(Default)]
struct Found {
    tasks: Vec<(u32, u16, RowSpan)>,
    groups: Vec<(u32, u16, u32)>,
    bins: Vec<RowBin>,
    /// Tasks that are summed up, or, from disk, in how many bins they are.
    lasting: u64,
}

/// Cuts a tile; `None` when a bin would be longer, or an instant greater, than a BIGINT.
///
/// # Errors
/// What is kept on disk cannot be read.
pub(super) fn cut(frame: Frame<'_>, asked: &Asked) -> Result<Option<Cut>, Failure> {
    let model = frame.model;
    let length = asked.from.abs_diff(asked.to);
    let bins = asked.bins.clamp(1, BINS_MAX).min(usize::try_from(length).unwrap_or(usize::MAX).max(1));
    let Some(mut edges) = Edges::new(asked.from, asked.to, bins) else { return Ok(None) };
    let mut found = Found::default();
    let level = model.kept.as_ref().and_then(|kept| kept.level(asked.from, asked.to, bins));
    if let (Some(kept), Some(range)) = (&model.kept, level) {
        let Some(of_level) = Edges::new(range.from, range.to, range.bins) else { return Ok(None) };
        edges = of_level;
        for &lane in asked.lanes.iter().filter(|lane| (**lane as usize) < model.lanes.len()) {
            for row in 0..kept.rows(lane as usize).min(ROWS_MAX) {
                found.add_part(lane, row as u16, kept.part(lane as usize, row, range)?);
            }
        }
    } else {
        let wide = least_drawn(asked.from, asked.to, bins);
        let fits = model.with_tally(|tally| {
            for &lane in asked.lanes.iter().filter(|lane| (**lane as usize) < model.lanes.len()) {
                let of = &model.lanes[lane as usize];
                let shift = frame.shift(of);
                let Some((from, to)) = asked.from.checked_add(shift).zip(asked.to.checked_add(shift)) else {
                    return Ok(false);
                };
                let Some(edges) = Edges::new(from, to, bins) else { return Ok(false) };
                let mut add =
                    |number: usize, row: &Row| found.add_row(lane, number as u16, row, &edges, shift, wide, tally);
                if let Some(kept) = &model.kept {
                    for number in 0..kept.rows(lane as usize).min(ROWS_MAX) {
                        add(number, &kept.tasks(lane as usize, number, from, to)?);
                    }
                }
                of.rows.iter().take(ROWS_MAX).enumerate().for_each(|(number, row)| add(number, row));
            }
            Ok::<_, Failure>(true)
        })?;
        if !fits {
            return Ok(None);
        }
    }
    let names = found.tasks.iter().map(|(.., span)| span.name).chain(found.bins.iter().map(|bin| bin.name));
    let names = names.filter(|name| *name != NONE).collect();
    Ok(Some(Cut { columns: columns(&edges, &found), summed: found.lasting, names }))
}

impl Found {
    /// Adds what a range shows of a row.
    #[expect(clippy::too_many_arguments, reason = "where it is, what is shown, and how")]
    fn add_row(
        &mut self,
        lane: u32,
        number: u16,
        row: &Row,
        edges: &Edges,
        shift: i64,
        wide: u64,
        tally: &mut TicksOfNames,
    ) {
        let is_wide = |start: i64, finish: i64| finish.abs_diff(start) >= wide;
        let lasting = Cell::new(0);
        let is_summed = |start: i64, finish: i64| {
            let is_summed = !is_wide(start, finish);
            // What takes no time is drawn at no zoom.
            lasting.set(lasting.get() + u64::from(is_summed && start < finish));
            is_summed
        };
        let drawn = row.within(edges.from(), edges.to()).map(|place| row.span(place));
        let drawn = drawn.filter(|span| is_wide(span.start, span.finish));
        self.tasks.extend(drawn.map(|span| (lane, number, shifted(span, shift))));
        let before = self.bins.len();
        row.bins(edges, tally, is_summed, |bin| self.bins.push(bin));
        self.close_group(lane, number, before);
        self.lasting += lasting.get();
    }

    /// Adds a row as a level on disk has it.
    fn add_part(&mut self, lane: u32, number: u16, part: KeptPart) {
        self.tasks.extend(part.drawn.into_iter().map(|span| (lane, number, span)));
        let before = self.bins.len();
        self.bins.extend(part.bins.into_iter().map(|bin| RowBin {
            bin: bin.bin as usize,
            count: i64::from(bin.count),
            busy: bin.busy,
            name: bin.name,
            name_busy: bin.name_busy,
        }));
        self.lasting += self.bins[before..].iter().filter(|bin| bin.busy > 0).map(|bin| bin.count as u64).sum::<u64>();
        self.close_group(lane, number, before);
    }

    fn close_group(&mut self, lane: u32, number: u16, before: usize) {
        if self.bins.len() > before {
            self.groups.push((lane, number, (self.bins.len() - before) as u32));
        }
    }
}

/// The ticks from which on a task is drawn itself.
pub(super) fn least_drawn(from: i64, to: i64, bins: usize) -> u64 {
    (from.abs_diff(to) / bins as u64).saturating_mul(WIDE).max(1)
}

fn shifted(span: RowSpan, shift: i64) -> RowSpan {
    RowSpan { start: span.start - shift, finish: span.finish - shift, ..span }
}

fn columns(edges: &Edges, found: &Found) -> Columns {
    let Found { tasks, groups, bins: summed, .. } = found;
    let mut columns = Columns::default();
    // A tile from disk covers what was asked for, and may reach out of it.
    columns.extra("from", json!(edges.from().to_string()));
    columns.extra("to", json!(edges.to().to_string()));
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
