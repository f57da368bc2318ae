//! What a picture consists of: lanes with their rows of tasks, and names with their colours.

use serde::{Deserialize, Serialize};
use tq_udfs::lanes::{LaneSpan, sort_lane};
use tq_udfs::overview::rows::{Row, RowSpan, rows_of};
use tq_udfs::relation::rows::Ties;

use super::busy::{BusyLanes, covered};
use crate::output::Picture;

/// Lanes with more rows have an index of their tasks.
const FEW_ROWS: usize = 64;

/// No colour of its own.
pub(super) const GREY: u16 = u16::MAX;

/// A location, with or without tasks.
#[derive(Serialize, Deserialize)]
pub(super) struct Lane {
    pub(super) run: String,
    pub(super) location: String,
    pub(super) name: Option<String>,
    pub(super) kind: String,
    pub(super) role: Option<String>,
    pub(super) parent: Option<u32>,
    pub(super) tasks: i64,
    /// First start and last finish.
    pub(super) reach: Option<(i64, i64)>,
    /// The rows of its tasks; empty where they are on disk.
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
    /// The row of each task, by task, where there are many rows.
    #[serde(skip)]
    pub(super) row_of: Vec<(i64, u32)>,
    pub(super) busy: i64,
    /// How much later than the first run its run began.
    pub(super) shift: i64,
}

/// A name of tasks.
#[derive(Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) colour: u16,
    pub(super) tasks: i64,
}

/// A task on its way to its lane.
pub(super) struct Read {
    pub(super) run: u32,
    pub(super) location: u32,
    pub(super) task: i64,
    pub(super) start: i64,
    pub(super) finish: Option<i64>,
    pub(super) name: u32,
}

impl Name {
    /// With the colour that reports give it; they must have given it one before (`report::begin_with_hues`).
    pub(super) fn coloured(text: &str, kind: &str, tasks: i64, picture: &Picture) -> Name {
        let colour = picture.names.hue_of(text).map_or(GREY, |hue| hue as u16);
        Name { text: text.to_owned(), kind: kind.to_owned(), colour, tasks }
    }
}

impl Lane {
    /// First start and last finish of its tasks.
    pub(super) fn reach(&self) -> Option<(i64, i64)> {
        self.reach
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = RowSpan> {
        self.rows.iter().flat_map(|row| (0..row.len()).map(|place| row.span(place)))
    }

    /// Distributes its tasks to rows that do not overlap, and computes its busy time.
    pub(super) fn fill(&mut self, mut spans: Vec<LaneSpan>, read: &[Read], mut busy: Option<&mut BusyLanes>) {
        sort_lane(&mut spans, &Ties::by_row());
        covered(spans.iter().map(|span| (span.start, span.finish)), |start, finish| {
            self.busy = self.busy.saturating_add(finish.saturating_sub(start));
            if let Some(busy) = &mut busy {
                busy.add(start, finish);
            }
        });
        self.rows = rows_of(&spans, |span| {
            let task = &read[span.row as usize];
            (task.name, task.task)
        });
        self.tasks = spans.len() as i64;
        self.reach =
            spans.first().map(|first| (first.start, spans.iter().map(|span| span.finish).fold(first.finish, i64::max)));
        if self.rows.len() > FEW_ROWS {
            let rows = (0..).zip(&self.rows);
            self.row_of = rows
                .flat_map(|(number, row)| (0..row.len()).map(move |place| (row.span(place).task, number)))
                .collect();
            self.row_of.sort_unstable();
        }
    }

    /// A lane for tasks whose location is not in the table `locations`, or NULL.
    pub(super) fn unknown(run: String, location: String) -> Lane {
        let (name, role, parent) = (None, None, None);
        Lane {
            run,
            location,
            name,
            kind: String::new(),
            role,
            parent,
            tasks: 0,
            reach: None,
            rows: Vec::new(),
            row_of: Vec::new(),
            busy: 0,
            shift: 0,
        }
    }
}
