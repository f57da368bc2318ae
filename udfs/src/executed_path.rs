//! `executed_path(tasks, links, messages)`: what the end of a run really waited for.
//!
//! Life of the data: `ExecutedPaths` reads the inputs and walks each run backwards from its last finish; names and
//! locations are looked up for the tasks of the path only.
//!
//! ```text
//! lane 1  [--a--)          [---b---)      links: c -> b
//! lane 2      [----c-----)
//!         aaaacccccccccc...bbbbbbbbb      a, then c (a released it), a wait, then b
//! ```
//! The critical path is the longest chain of durations, whatever the run did between them; the executed path is the chain
//! that was executed, with its waits: its length is the makespan.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::executed::walk::{Cause, Step};
use crate::executed::{ARGUMENTS, Account, ExecutedPaths, MESSAGES, TASK_BYTES, TASKS};
use crate::graph::NONE;
use crate::graph::load::{LINKS, by_run};
use crate::relation::by_run::ByRun;
use crate::relation::call::Call;
use crate::relation::parts::{InputPlan, Share};
use crate::relation::{Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `executed_path`.
#[derive(Debug)]
pub struct ExecutedPath;

static PARAMETERS: [Parameter; 3] = [TASKS, LINKS, MESSAGES];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let documentation = Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "What the end of a run really waited for: the chain of work and waiting that fills the time from its first start to \
         its last finish.\n\n\
         Rows: one per step, `step` counts from 0 in the order in which they ran. `start` and `finish` bound the piece of the \
         task that is on the path, `running` is its length, `wait` the time between the step before and this piece. All \
         `wait` and `running` of a run add up to its makespan exactly. `cause` says what released the step: the kind of the \
         link that leads from the step before (`link` when it has none), `message` when that step sent one, `lane` when it is \
         what the location did before, `work` when another location worked meanwhile, `begin` for the first step.\n\n\
         The walk goes backwards from the last finish, over the innermost task of each location. Where a task begins, it goes to \
         the latest release that is not after the start: a predecessor's finish by links of every kind but `weak` and `flow`, \
         the arrival of a message to the task, or the finish of what ran before on the location. A predecessor that runs longer \
         is cut at the start; how many were is said in a note. A link of kind `sync` whose source finishes while the target runs \
         releases the target there: the target is a wait. So does a message that arrives while a task of role `wait` or \
         `communication` runs. A task of role `wait` that nothing of this released ends with the work that finished last on another \
         location while it ran (`work`; of the same rank where names of locations begin with one, `rank 1/4037/7`), and so do waits that \
         follow all work of the run, such as those of a thread that polls; where a location that the path entered so has nothing before, \
         the path goes back to the one that waited. A wait for a message begins when the message was sent. A task that is covered by a nested one where the \
         path enters it is a step of length 0. Inputs: given ones are taken as they are; omitted ones are the tables.\n\n\
         Units: ticks.\n\n\
         Nulls: tasks whose start or finish is NULL, links and messages without a task at an end are left out and counted in a note. A \
         task without location is on no lane. A message without one of its times has the other one for both.\n\n\
         Ties: link, then message, then lane; then the smallest task. The path ends with the smallest of the tasks that finish \
         last.\n\n\
         Errors: a task that is there twice in a run, a makespan beyond BIGINT, a time of -9223372036854775808.\n\n\
         Cost: linear in tasks, links and messages, n log n in a location whose tasks are not sorted; 46 bytes a task, 200 KB or \
         less for each location that the path visits, 4 a task where a path leaves a wait, and 40 a step, beside the tasks themselves. \
         Beyond half of the memory limit runs have their turn one after the other, and the tasks of one that is too large stay on disk.\n\n\
         Source: the critical path of an execution, Yang and Miller 1988; Böhme et al., Scalasca 2012.",
        "executed_path([tasks], [links], [messages])",
    )
    .with_sql_example(
        "SELECT step, task, cause, start, wait, running FROM executed_path(\n  \
         (SELECT * FROM (VALUES (1, 'w1', 0, 4), (2, 'w2', 4, 9), (3, 'w1', 11, 15)) AS tasks(task, location, start, finish)),\n  \
         (SELECT * FROM (VALUES (1, 2), (2, 3)) AS links(source, target)),\n  \
         (SELECT NULL AS target_task WHERE false))\nORDER BY step",
    );
    ARGUMENTS.iter().fold(documentation, |all, (name, text)| all.with_argument(*name, *text)).build()
});

impl RelationFunction for ExecutedPath {
    fn name(&self) -> &'static str {
        "executed_path"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("step", DataType::Int64, false),
            Field::new("task", DataType::Int64, false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("location", DataType::Utf8View, true),
            Field::new("cause", DataType::Utf8View, false),
            time_field("start", false),
            time_field("finish", false),
            time_field("wait", false),
            time_field("running", false),
        ]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let [tasks, links] = by_run(TASK_BYTES);
        let messages = InputPlan { input: "messages", share: Share::Runs, row_bytes: 0 };
        let mut parts = ByRun::read(call, &[tasks, links, messages])?;
        let mut account = Account::default();
        while parts.next(call)? {
            let found = ExecutedPaths::find(call, false, &|_, _| true, &mut account)?;
            emit(call, &found)?;
        }
        account.note(&call.work);
        account.note_cut(&call.work);
        Ok(())
    }
}

fn emit(call: &mut Call, found: &ExecutedPaths) -> Result<()> {
    let ExecutedPaths { graphs, kinds, paths } = found;
    for (run, steps) in paths {
        let ids = &graphs.graphs[*run].ids;
        // Some steps at a time: a path may have as many as there are tasks.
        let at_once = graphs.at_once();
        for (number, steps) in steps.chunks(at_once).enumerate() {
            call.work.check()?;
            let tasks: Vec<u32> = steps.iter().map(|step| step.task).collect();
            let chosen = graphs.chosen(*run, &tasks)?;
            let integers = |value: &dyn Fn(&Step) -> i64| -> ArrayRef {
                Arc::new(Int64Array::from_iter_values(steps.iter().map(value)))
            };
            let first = (number * at_once) as i64;
            let columns = vec![
                graphs.runs.column(&[(*run, steps.len())], call.output().field(0).data_type())?,
                Arc::new((first..first + steps.len() as i64).collect::<Int64Array>()),
                integers(&|step| ids.id(step.task)),
                chosen.text("name")?,
                chosen.text("location")?,
                Arc::new(StringViewArray::from_iter_values(steps.iter().map(|step| match step.cause {
                    Cause::Begin => "begin",
                    Cause::Lane => "lane",
                    Cause::Message => "message",
                    Cause::Work => "work",
                    Cause::Link(NONE) => "link",
                    Cause::Link(kind) => kinds.text(kind),
                }))),
                integers(&|step| step.start),
                integers(&|step| step.finish),
                integers(&|step| step.wait),
                integers(&|step| step.finish - step.start),
            ];
            call.emit(columns)?;
        }
    }
    Ok(())
}
