//! A tile: what a stretch of time shows of some lanes, in so many pixels.
//!
//! Tasks that are wide enough are there themselves; the others are summed up by bin, so that none is missing and none is drawn where
//! it is not.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::json;
use tq_udfs::bins::Edges;
use tq_udfs::graph::NONE;
use tq_udfs::overview::rows::{Row, RowBin, RowSpan, TicksOfNames};

use super::kept::{KeptLanes, KeptPart, LevelRange};
use super::model::{Frame, Model, ROWS_MAX};
use super::wire::Columns;
use crate::errors::Failure;

/// What is asked.
pub(super) struct Asked {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) bins: usize,
    pub(super) lanes: Vec<LaneRows>,
}

/// Rows of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneRows {
    lane: u32,
    rows: Range<usize>,
}

impl LaneRows {
    /// All that are drawn.
    pub(super) fn all(lane: u32) -> LaneRows {
        LaneRows { lane, rows: 0..ROWS_MAX }
    }

    /// Those of them that a lane has, out of so many.
    fn of(&self, rows: usize) -> Range<usize> {
        self.rows.start..self.rows.end.min(rows)
    }
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
    groups: Vec<Group>,
    bins: Vec<RowBin>,
    /// Tasks that are summed up, or, from disk, in how many bins they are.
    lasting: u64,
}

/// Sums of a row.
struct Group {
    lane: u32,
    row: u16,
    bins: u32,
    /// How much later than those of the tile its bins begin, as share of one: less than 1.
    offset: f32,
}

/// Cuts a tile; `None` when a bin would be longer, or an instant greater, than a BIGINT.
///
/// # Errors
/// What is kept on disk cannot be read.
pub(super) fn cut(frame: Frame<'_>, asked: &Asked) -> Result<Option<Cut>, Failure> {
    let model = frame.model;
    let mut found = Found::default();
    let level = model.kept.as_ref().and_then(|kept| {
        let level = kept.level(asked.from.abs_diff(asked.to), asked.bins())?;
        Some((kept, level))
    });
    let edges = match level {
        Some((kept, level)) => found.add_level(frame, asked, kept, level)?,
        None => found.add_rows(frame, asked)?,
    };
    let Some(edges) = edges else { return Ok(None) };
    let names = found.tasks.iter().map(|(.., span)| span.name).chain(found.bins.iter().map(|bin| bin.name));
    let names = names.filter(|name| *name != NONE).collect();
    Ok(Some(Cut { columns: columns(&edges, &found), summed: found.lasting, names }))
}

impl Found {
    /// Adds the rows of lanes; the bins in which they are summed up, `None` where an instant is beyond a BIGINT.
    fn add_rows(&mut self, frame: Frame<'_>, asked: &Asked) -> Result<Option<Edges>, Failure> {
        let (model, bins) = (frame.model, asked.bins());
        let wide = least_drawn(asked.from, asked.to, bins);
        model.with_tally(|tally| {
            for LaneRows { lane, rows } in asked.lanes_of(model) {
                let of = &model.lanes[lane as usize];
                let shift = frame.shift(of);
                let Some((from, to)) = asked.shifted(shift) else { return Ok(None) };
                let Some(edges) = Edges::new(from, to, bins) else { return Ok(None) };
                for number in rows {
                    let place = (lane, number as u16);
                    match &model.kept {
                        Some(kept) => {
                            let row = kept.tasks(lane as usize, number, from, to)?;
                            self.add_row(place, &row, &edges, shift, wide, tally);
                        }
                        None => self.add_row(place, &of.rows[number], &edges, shift, wide, tally),
                    }
                }
            }
            Ok(Edges::new(asked.from, asked.to, bins))
        })
    }

    /// Adds what a range shows of a row.
    fn add_row(
        &mut self,
        (lane, number): (u32, u16),
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
        self.close_group(lane, number, before, 0.0);
        self.lasting += lasting.get();
    }

    /// Adds the rows of lanes as a level on disk has them; the bins of all of them, `None` where one ends beyond a BIGINT.
    ///
    /// Bins of a level begin at the same instants in all runs. Runs that are aligned are moved by different lengths, and with them bins.
    fn add_level(
        &mut self,
        frame: Frame<'_>,
        asked: &Asked,
        kept: &KeptLanes,
        level: usize,
    ) -> Result<Option<Edges>, Failure> {
        let of_lane = |lane: LaneRows| -> Option<(LaneRows, i64, LevelRange)> {
            let shift = frame.shift(&frame.model.lanes[lane.lane as usize]);
            let (from, to) = asked.shifted(shift)?;
            Some((lane, shift, kept.range(level, from, to)?))
        };
        let lanes: Vec<_> = asked.lanes_of(frame.model).filter_map(of_lane).collect();
        let Some(begin) = lanes.iter().map(|(_, shift, range)| range.from - shift).min() else {
            // No task is there.
            return Ok(Edges::new(asked.from, asked.to, asked.bins()));
        };
        let ticks = lanes[0].2.bin_ticks();
        let mut bins = 0;
        for (LaneRows { lane, rows }, shift, range) in lanes {
            let late = range.from - shift - begin;
            let first = (late / ticks) as usize;
            let offset = (late % ticks) as f32 / ticks as f32;
            bins = bins.max(first + range.bins + usize::from(offset > 0.0));
            for row in rows {
                let part = kept.part(lane as usize, row, range)?;
                self.add_part((lane, row as u16), part, shift, first, offset);
            }
        }
        let end = ticks.checked_mul(bins as i64).and_then(|ticks| begin.checked_add(ticks));
        Ok(end.and_then(|end| Edges::new(begin, end, bins)))
    }

    fn add_part(&mut self, (lane, number): (u32, u16), part: KeptPart, shift: i64, first: usize, offset: f32) {
        self.tasks.extend(part.drawn.into_iter().map(|span| (lane, number, shifted(span, shift))));
        let before = self.bins.len();
        self.bins.extend(part.bins.into_iter().map(|bin| RowBin {
            bin: first + bin.bin as usize,
            count: i64::from(bin.count),
            busy: bin.busy,
            name: bin.name,
            name_busy: bin.name_busy,
        }));
        self.lasting += self.bins[before..].iter().filter(|bin| bin.busy > 0).map(|bin| bin.count as u64).sum::<u64>();
        self.close_group(lane, number, before, offset);
    }

    fn close_group(&mut self, lane: u32, row: u16, before: usize, offset: f32) {
        if self.bins.len() > before {
            self.groups.push(Group { lane, row, bins: (self.bins.len() - before) as u32, offset });
        }
    }
}

impl Asked {
    /// Bins that are no shorter than a tick.
    fn bins(&self) -> usize {
        let ticks = usize::try_from(self.from.abs_diff(self.to)).unwrap_or(usize::MAX);
        self.bins.clamp(1, BINS_MAX).min(ticks.max(1))
    }

    /// The lanes that there are, with the rows that they have.
    fn lanes_of<'a>(&'a self, model: &'a Model) -> impl Iterator<Item = LaneRows> {
        let those = self.lanes.iter().filter(|lane| (lane.lane as usize) < model.lanes.len());
        those.map(|lane| LaneRows { lane: lane.lane, rows: lane.of(model.rows(lane.lane as usize)) })
    }

    /// The range, as far later; `None` beyond a BIGINT.
    fn shifted(&self, shift: i64) -> Option<(i64, i64)> {
        self.from.checked_add(shift).zip(self.to.checked_add(shift))
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
    table.u32("lane", groups.iter().map(|group| group.lane));
    table.u16("row", groups.iter().map(|group| group.row));
    table.u32("bins", groups.iter().map(|group| group.bins));
    table.f32("offset", groups.iter().map(|group| group.offset));
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

/// `0-3,7,9:6-11`: lanes by number, and rows of a lane. `None` for what is no such list.
pub(super) fn lanes_of(text: &str) -> Option<Vec<LaneRows>> {
    let mut lanes = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        if let Some((lane, rows)) = part.split_once(':') {
            let (first, last) = range_of(rows)?;
            lanes.push(LaneRows { lane: lane.parse().ok()?, rows: first as usize..(last as usize + 1).min(ROWS_MAX) });
        } else {
            let (first, last) = range_of(part).filter(|(first, last)| ((last - first) as usize) < LANES_MAX)?;
            lanes.extend((first..=last).map(LaneRows::all));
        }
        if lanes.len() > LANES_MAX {
            return None;
        }
    }
    lanes.sort_unstable_by_key(|lane| (lane.lane, lane.rows.start, lane.rows.end));
    lanes.dedup();
    Some(lanes)
}

/// `3`, or `3-7`.
fn range_of(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < NONE).then_some((first, last))
}

/// Lanes, or parts of them, that one tile may ask for.
const LANES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_numbers_and_ranges() {
        let numbers = |text: &str| lanes_of(text).map(|lanes| lanes.iter().map(|lane| lane.lane).collect::<Vec<_>>());
        assert_eq!(numbers("7,0-3,9,2-3"), Some(vec![0, 1, 2, 3, 7, 9]));
        assert_eq!(numbers(""), Some(vec![]));
        let rows = |lane: u32, rows: Range<usize>| LaneRows { lane, rows };
        assert_eq!(lanes_of("9:6-11,4,9:0-5,9:6-11"), Some(vec![LaneRows::all(4), rows(9, 0..6), rows(9, 6..12)]));
        assert_eq!(lanes_of("1:7-4000000000"), Some(vec![rows(1, 7..ROWS_MAX)]));
        assert!(rows(1, 7..ROWS_MAX).of(3).is_empty());
        for wrong in ["a", "3-1", "1-", "-1", "0-4294967295", "0-200000", "1:", ":1", "1:a", "1:3-2", "1-2:3"] {
            assert_eq!(lanes_of(wrong), None, "{wrong}");
        }
    }
}
