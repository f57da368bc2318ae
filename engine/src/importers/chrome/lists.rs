//! Lists: what a file holds beside the columns of its tasks, put together from its blocks.
//!
//! What is joined in another order than that of the file is sorted while it comes in, and what is long may wait on disk
//! ([`crate::trace::Sorter`], [`crate::trace::List`]).

use super::chunk::{
    self, Async, Begin, Bind, Edge, End, Fact, Flow, FlowId, Mark, Measure, NO_WORD, Sample, Step, Tasks,
};
use crate::error::ImportError;
use crate::trace::{List, Room, Sorter};

/// Everything of a file that is no task column. Times are those of the file, without [`super::file::Recording::base`].
#[derive(Debug)]
pub(super) struct Lists {
    /// `B` and `E`.
    pub(super) steps: Sorter<Step>,
    /// The rows of `B`, ascending.
    pub(super) begun: List<u32>,
    pub(super) asyncs: Sorter<Async>,
    pub(super) flows: List<Flow>,
    pub(super) binds: List<Bind>,
    pub(super) marks: List<Mark>,
    pub(super) samples: List<Sample>,
    pub(super) facts: Vec<Fact>,
    /// Events so far: what `sequence` counts.
    pub(super) events: u64,
    /// `ph` of the first one.
    pub(super) first_phase: Option<u8>,
    /// The earliest time of anything but tasks and metadata.
    pub(super) earliest: Option<i64>,
    /// By lane, the last time of an `E`.
    pub(super) last_ends: Vec<i64>,
}

/// How the words of a block are called in the file.
pub(super) struct Renumber {
    pub(super) lanes: Vec<i32>,
    pub(super) texts: Vec<i32>,
    /// Rows and events before the block.
    pub(super) rows: u32,
    pub(super) events: u64,
}

impl Renumber {
    fn lane(&self, lane: i32) -> i32 {
        usize::try_from(lane).map_or(NO_WORD, |lane| self.lanes[lane])
    }

    pub(super) fn text(&self, text: i32) -> i32 {
        usize::try_from(text).map_or(NO_WORD, |text| self.texts[text])
    }

    fn id(&self, id: FlowId) -> FlowId {
        match id {
            FlowId::Number(_) => id,
            FlowId::Text(text) => FlowId::Text(self.text(text)),
        }
    }
}

impl Lists {
    pub(super) fn new(room: &Room) -> Lists {
        Lists {
            steps: Sorter::new(room),
            begun: List::new(room),
            asyncs: Sorter::new(room),
            flows: List::new(room),
            binds: List::new(room),
            marks: List::new(room),
            samples: List::new(room),
            facts: Vec::new(),
            events: 0,
            first_phase: None,
            earliest: None,
            last_ends: Vec::new(),
        }
    }

    /// Takes over the lists of the next block, whose tasks have the words of the file already.
    pub(super) fn append(&mut self, block: chunk::Lists, tasks: &Tasks, by: &Renumber) -> Result<(), ImportError> {
        let rows = by.rows;
        for step in block.steps {
            let lane = by.lane(step.lane);
            let edge = match step.edge {
                Edge::Begin(begin) => {
                    let at = begin.row as usize;
                    self.begun.push(begin.row + rows)?;
                    Edge::Begin(Begin { row: begin.row + rows, name: tasks.names[at], kind: tasks.kinds[at], ..begin })
                }
                Edge::End(end) => {
                    self.see(step.time);
                    self.see_end(lane, step.time);
                    Edge::End(End {
                        next_row: end.next_row + rows,
                        name: by.text(end.name),
                        category: by.text(end.category),
                        ..end
                    })
                }
            };
            self.steps.push(Step { lane, sequence: step.sequence + by.events, edge, ..step })?;
        }
        for part in block.asyncs {
            self.see(part.time);
            self.asyncs.push(Async {
                sequence: part.sequence + by.events,
                key: by.text(part.key),
                name: by.text(part.name),
                lane: by.lane(part.lane),
                row: part.row.map(|row| row + rows),
                ..part
            })?;
        }
        for flow in block.flows {
            self.see(flow.time);
            self.flows.push(Flow {
                sequence: flow.sequence + by.events,
                lane: by.lane(flow.lane),
                category: by.text(flow.category),
                name: by.text(flow.name),
                id: by.id(flow.id),
                told: by.text(flow.told),
                ..flow
            })?;
        }
        for bind in block.binds {
            self.binds.push(Bind { row: bind.row + rows, id: by.id(bind.id), ..bind })?;
        }
        for mark in block.marks {
            self.see(mark.time);
            self.marks.push(Mark {
                lane: by.lane(mark.lane),
                name: by.text(mark.name),
                told_kind: by.text(mark.told_kind),
                task: mark.task.map(|row| row + rows),
                ..mark
            })?;
        }
        for sample in block.samples {
            self.see(sample.time);
            self.samples.push(Sample {
                lane: by.lane(sample.lane),
                series: by.text(sample.series),
                measure: match sample.measure {
                    Measure::Told { kind, unit, task } => {
                        Measure::Told { kind: by.text(kind), unit: by.text(unit), task }
                    }
                    measure => measure,
                },
                ..sample
            })?;
        }
        self.facts.extend(block.facts.into_iter().map(|fact| Fact { lane: by.lane(fact.lane), ..fact }));
        self.events += block.events;
        self.first_phase = self.first_phase.or(block.first_phase);
        Ok(())
    }

    fn see(&mut self, time: i64) {
        self.earliest = Some(self.earliest.map_or(time, |earliest| earliest.min(time)));
    }

    fn see_end(&mut self, lane: i32, time: i64) {
        let Ok(lane) = usize::try_from(lane) else { return };
        if self.last_ends.len() <= lane {
            self.last_ends.resize(lane + 1, i64::MIN);
        }
        self.last_ends[lane] = self.last_ends[lane].max(time);
    }

    /// Forgets what only joins need.
    pub(super) fn forget_joins(&mut self, room: &Room) {
        self.begun = List::new(room);
        self.flows = List::new(room);
        self.binds = List::new(room);
        self.last_ends = Vec::new();
    }
}
