//! A tile: some lanes over a stretch of time, for a given number of pixels.
//!
//! Tasks that are wide enough to be seen are in it one by one. The others are summed up by bin, so that no task is missing, and none is drawn
//! wider than it is.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::json;
use tq_udfs::bins::Edges;
use tq_udfs::graph::NONE;
use tq_udfs::overview::rows::{Row, RowBin, RowSpan, TicksOfNames};

use super::kept::{BINS_MAX, KeptLanes, KeptPart, LevelRange};
use super::model::{Frame, Model, ROWS_MAX};
use super::wire::Columns;
use crate::errors::Failure;

/// The request for a tile.
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

    /// The wanted rows of a lane that has `rows` of them.
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

/// A task that is at least this many bins long is drawn by itself.
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
/// The rows are on disk and cannot be read.
pub(super) fn cut(frame: Frame<'_>, asked: &Asked) -> Result<Option<Cut>, Failure> {
    let model = frame.model;
    let mut found = Found::default();
    let edges = match &model.kept {
        Some(kept) => found.add_kept(frame, asked, kept)?,
        None => found.add_rows(frame, asked),
    };
    let Some(edges) = edges else { return Ok(None) };
    let names = found.tasks.iter().map(|(.., span)| span.name).chain(found.bins.iter().map(|bin| bin.name));
    let names = names.filter(|name| *name != NONE).collect();
    Ok(Some(Cut { columns: columns(&edges, &found), summed: found.lasting, names }))
}

/// Where the tasks of a row are drawn.
#[derive(Clone, Copy)]
struct Place {
    lane: u32,
    row: u16,
    /// Subtracted from instants.
    shift: i64,
    /// The bin of the tile that the first bin of the row is.
    first: usize,
    /// As in [`Group`].
    offset: f32,
}

impl Found {
    /// Adds the rows of lanes; the bins in which they are summed up, `None` where an instant is beyond a BIGINT.
    fn add_rows(&mut self, frame: Frame<'_>, asked: &Asked) -> Option<Edges> {
        let (model, bins) = (frame.model, asked.bins());
        let wide = least_drawn(asked.from, asked.to, bins);
        model.with_tally(|tally| {
            for LaneRows { lane, rows } in asked.lanes_of(model) {
                let of = &model.lanes[lane as usize];
                let shift = frame.shift(of);
                let (from, to) = asked.from.checked_add(shift).zip(asked.to.checked_add(shift))?;
                let edges = Edges::new(from, to, bins)?;
                for row in rows {
                    let place = Place { lane, row: row as u16, shift, first: 0, offset: 0.0 };
                    self.add_row(place, &of.rows[row], &edges, wide, tally);
                }
            }
            Edges::new(asked.from, asked.to, bins)
        })
    }

    /// Adds what a range shows of a row.
    fn add_row(&mut self, place: Place, row: &Row, edges: &Edges, wide: u64, tally: &mut TicksOfNames) {
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
        self.tasks.extend(drawn.map(|span| (place.lane, place.row, shifted(span, place.shift))));
        let before = self.bins.len();
        row.bins(edges, tally, is_summed, |bin| self.bins.push(RowBin { bin: place.first + bin.bin, ..bin }));
        self.close_group(place, before);
        self.lasting += lasting.get();
    }

    /// Adds the rows of lanes as a level on disk has them; the bins of all of them, `None` where one ends beyond a BIGINT.
    ///
    /// Bins of a level begin at the same instants in all runs. Runs that are aligned are moved by different lengths, and with them bins.
    fn add_kept(&mut self, frame: Frame<'_>, asked: &Asked, kept: &KeptLanes) -> Result<Option<Edges>, Failure> {
        let model = frame.model;
        let level = kept.shift(asked.from.abs_diff(asked.to), asked.bins());
        let of_lane = |lane: LaneRows| -> Option<(LaneRows, i64, LevelRange)> {
            let of = &model.lanes[lane.lane as usize];
            let (shift, (first, last)) = (frame.shift(of), of.reach()?);
            // Beyond its tasks there is nothing, however far that is.
            let (from, to) = (asked.from.saturating_add(shift).max(first), asked.to.saturating_add(shift).min(last));
            let range = kept.range(level, from, to).filter(|_| from <= to)?;
            Some((lane, shift, range))
        };
        let lanes: Vec<_> = asked.lanes_of(model).filter_map(of_lane).collect();
        let Some(begin) = lanes.iter().map(|(_, shift, range)| range.from - shift).min() else {
            // No task is there.
            return Ok(Edges::new(asked.from, asked.to, asked.bins()));
        };
        let ticks = lanes[0].2.bin_ticks();
        let wide = least_drawn(0, ticks, 1);
        let mut bins = 0;
        model.with_tally(|tally| {
            for (LaneRows { lane, rows }, shift, range) in lanes {
                let late = range.from - shift - begin;
                let (first, offset) = ((late / ticks) as usize, (late % ticks) as f32 / ticks as f32);
                bins = bins.max(first + range.bins + usize::from(offset > 0.0));
                for row in rows {
                    let place = Place { lane, row: row as u16, shift, first, offset };
                    if let Some(part) = kept.part(lane as usize, row, range)? {
                        self.add_part(place, part);
                    } else if let Some(edges) = Edges::new(range.from, range.to, range.bins) {
                        let tasks = kept.tasks(lane as usize, row, range.from, range.to)?;
                        self.add_row(place, &tasks, &edges, wide, tally);
                    }
                }
            }
            Ok::<_, Failure>(())
        })?;
        let end = ticks.checked_mul(bins as i64).and_then(|ticks| begin.checked_add(ticks));
        Ok(end.and_then(|end| Edges::new(begin, end, bins)))
    }

    fn add_part(&mut self, place: Place, part: KeptPart) {
        self.tasks.extend(part.drawn.into_iter().map(|span| (place.lane, place.row, shifted(span, place.shift))));
        let before = self.bins.len();
        self.bins.extend(part.bins.into_iter().map(|bin| RowBin {
            bin: place.first + bin.bin as usize,
            count: i64::from(bin.count),
            busy: bin.busy,
            name: bin.name,
            name_busy: bin.name_busy,
        }));
        self.lasting += self.bins[before..].iter().filter(|bin| bin.busy > 0).map(|bin| bin.count as u64).sum::<u64>();
        self.close_group(place, before);
    }

    fn close_group(&mut self, Place { lane, row, offset, .. }: Place, before: usize) {
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
    lanes.sort_unstable_by_key(|lane| (lane.lane, lane.rows.start));
    // No row is there twice.
    lanes.dedup_by(|next, lane| {
        let overlaps = next.lane == lane.lane && next.rows.start <= lane.rows.end;
        lane.rows.end = if overlaps { lane.rows.end.max(next.rows.end) } else { lane.rows.end };
        overlaps
    });
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
        assert_eq!(
            lanes_of("9:18-23,4,9:0-5,9:6-11,9:3-7"),
            Some(vec![LaneRows::all(4), rows(9, 0..12), rows(9, 18..24)])
        );
        assert_eq!(lanes_of("1:0-5,1"), Some(vec![LaneRows::all(1)]));
        assert_eq!(lanes_of("1:7-4000000000"), Some(vec![rows(1, 7..ROWS_MAX)]));
        assert!(rows(1, 7..ROWS_MAX).of(3).is_empty());
        for wrong in ["a", "3-1", "1-", "-1", "0-4294967295", "0-200000", "1:", ":1", "1:a", "1:3-2", "1-2:3"] {
            assert_eq!(lanes_of(wrong), None, "{wrong}");
        }
    }
}
