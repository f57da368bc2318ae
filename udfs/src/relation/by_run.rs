//! The inputs of a function run by run: runs are independent of each other and need not be in memory together.
//!
//! ```text
//! inputs ──▶ memory ──────────────────────────▶ all runs, one part           while they take no more than half of the limit
//!              └─ number of the run ─▶ files ─▶ part 0 ─▶ … ─▶ part 63       else
//! ```
//!
//! A function is a loop over parts and reads its inputs anew in each. Where all rows fit, there is one part, whose inputs stream as they come
//! but for what was read ahead to find that out. Else rows of a run are in the same part of all inputs, and each input gives those of
//! the part at hand ([`Input::stored`](crate::relation::call::Input::stored)). With 64 runs or fewer each part is a run.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use crate::relation::call::{Call, Work};
use crate::relation::parts::{InputPlan, PARTS, Share, Writing};
use crate::relation::rows::Role;
use crate::relation::runs::{Reading, Runs, Stretch};
use crate::relation::stored::{Disk, Stored};

/// The parts of a call.
pub struct ByRun {
    /// The inputs that were divided, the first one first; none where all rows are one part.
    disks: Vec<(&'static str, Arc<Disk>)>,
    /// The batches of inputs of which each part needs all.
    for_all: Vec<(&'static str, Vec<RecordBatch>)>,
    /// The number of the part that comes next.
    next: usize,
    /// What was asked of the memory pool before the first part came, and what of it outlives a part.
    before: usize,
    lasting: usize,
}

/// An input that was read ahead.
struct Ahead {
    input: &'static str,
    schema: SchemaRef,
    batches: Vec<(RecordBatch, Vec<Stretch>)>,
    /// What they take.
    bytes: usize,
}

impl ByRun {
    /// Reads as much of the inputs as it takes to know whether they fit in memory, and divides them otherwise. The first one decides which
    /// runs there are. Inputs that are asked for with [`Share::All`] are the same in all parts. Nothing is divided where an input of several
    /// runs does not say of which one its rows are.
    ///
    /// # Errors
    /// Those of the inputs; no memory and no room on disk.
    pub fn read(call: &mut Call, plans: &[InputPlan<'_>]) -> Result<ByRun> {
        let (start, lasting) = (call.work.size(), call.work.lasting());
        let mut parts = ByRun { disks: vec![], for_all: vec![], next: 0, before: start, lasting };
        let divided = || plans.iter().filter(|plan| plan.share != Share::All);
        let mut is_divisible = call.work.can_spill();
        let mut has_runs = None;
        for plan in divided() {
            let has = call.input(plan.input)?.0.has_runs();
            is_divisible &= has || !*has_runs.get_or_insert(has);
        }
        if !is_divisible {
            return Ok(parts);
        }
        let (mut runs, mut ahead) = (Runs::new(), vec![]);
        for (place, plan) in divided().enumerate() {
            // Links of one run cannot be divided: they come as they are asked for.
            if place > 0 && runs.len() < 2 {
                break;
            }
            let role = if place == 0 { Role::First } else { Role::Other };
            parts.read_ahead(call, plan, role, &mut runs, &mut ahead)?;
        }
        if parts.disks.is_empty() {
            give_back(call, ahead, start)?;
            return Ok(parts);
        }
        for plan in plans.iter().filter(|plan| plan.share == Share::All) {
            let (input, work) = call.input(plan.input)?;
            let (before, mut batches) = (work.size(), vec![]);
            while let Some(batch) = input.next_batch()? {
                work.check()?;
                work.keep(&batch)?;
                batches.push(batch);
            }
            // They are asked for again in each part.
            work.forget_rows(before);
            parts.for_all.push((plan.input, batches));
        }
        (parts.before, parts.lasting) = (call.work.size(), call.work.lasting());
        Ok(parts)
    }

    /// Goes on to the next part; `false` at the end. What was asked of the memory pool since the last one is given back, but for
    /// [`Work::grow_lasting`]. The first input of a part has rows, unless it has none at all.
    ///
    /// # Errors
    /// The query was cancelled; a file cannot be read.
    pub fn next(&mut self, call: &mut Call) -> Result<bool> {
        call.work.check()?;
        let Some((_, first)) = self.disks.first() else {
            return Ok(std::mem::replace(&mut self.next, PARTS) == 0);
        };
        let Some(part) = first.next_part(self.next) else { return Ok(false) };
        self.next = part + 1;
        call.work.forget_rows(self.before + (call.work.lasting() - self.lasting));
        for (name, disk) in &self.disks {
            let stored = Stored::new(disk, part);
            let batches = stored.batches()?;
            call.input(name)?.0.stored = Some((stored, batches));
        }
        for (name, batches) in &self.for_all {
            call.input(name)?.0.rewind_to(batches.clone());
        }
        Ok(true)
    }

    /// Reads an input to its end: into memory as long as that has room, else into files.
    fn read_ahead(
        &mut self,
        call: &mut Call,
        plan: &InputPlan<'_>,
        role: Role,
        runs: &mut Runs,
        ahead: &mut Vec<Ahead>,
    ) -> Result<()> {
        let (input, work) = call.input(plan.input)?;
        let schema = Arc::new(input.schema().clone());
        let most = match role {
            Role::First => work.limit() / 2,
            // Those that are not read ahead become smaller as they stream by.
            Role::Other => work.limit() / 4,
        };
        let before = work.size();
        let (mut reading, mut rows, mut batches) = (Reading::default(), 0, vec![]);
        let mut writing = (!self.disks.is_empty()).then(|| Writing::new(&schema, Share::Runs, work)).transpose()?;
        while let Some(batch) = input.next_batch()? {
            work.check()?;
            let (runs_of, count) = (batch.column_by_name("run"), batch.num_rows());
            let stretches = match role {
                Role::First => runs.learn(&mut reading, runs_of, count)?,
                Role::Other => runs.find(&mut reading, runs_of, count)?,
            };
            if let Some(writing) = &mut writing {
                writing.add_runs(&batch, &stretches, work)?;
                continue;
            }
            rows += count;
            let has_room = work.keep(&batch).is_ok() && work.size() - before + rows * plan.row_bytes <= most;
            batches.push((batch, stretches));
            if !has_room {
                work.forget_rows(self.before);
                for earlier in ahead.drain(..) {
                    let disk = divided(Writing::new(&earlier.schema, Share::Runs, work)?, earlier.batches, work)?;
                    self.disks.push((earlier.input, Arc::new(disk.finish(work)?)));
                }
                writing = Some(divided(Writing::new(&schema, Share::Runs, work)?, std::mem::take(&mut batches), work)?);
            }
        }
        match writing {
            Some(writing) => {
                self.disks.push((plan.input, Arc::new(writing.finish(work)?)));
                work.forget_rows(self.before + (work.lasting() - self.lasting));
            }
            None => ahead.push(Ahead { input: plan.input, schema, batches, bytes: work.size() - before }),
        }
        Ok(())
    }
}

fn divided(mut writing: Writing, batches: Vec<(RecordBatch, Vec<Stretch>)>, work: &mut Work) -> Result<Writing> {
    for (batch, stretches) in batches {
        writing.add_runs(&batch, &stretches, work)?;
    }
    Ok(writing)
}

/// Lets inputs begin with what was read ahead. The function asks for the memory of the first one again, since it keeps it; that of the others
/// is given back as they are read.
fn give_back(call: &mut Call, ahead: Vec<Ahead>, start: usize) -> Result<()> {
    let streaming: usize = ahead.iter().skip(1).map(|of_input| of_input.bytes).sum();
    let reserved = call.work.split_off(start);
    reserved.shrink(reserved.size() - streaming.min(reserved.size()));
    for (place, of_input) in ahead.into_iter().enumerate() {
        let input = call.input(of_input.input)?.0;
        if place > 0 {
            let each = of_input.bytes / of_input.batches.len().max(1);
            input.ahead = Some((reserved.split(of_input.bytes.min(reserved.size())), each));
        }
        input.rewind_to(of_input.batches.into_iter().map(|(batch, _)| batch).collect());
    }
    Ok(())
}
