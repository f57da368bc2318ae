//! `descendants(tasks, of)`: the children of a task, their children and so on. The search is in [`crate::family`].
//!
//! ```text
//! 1
//! ├─ 2
//! │  └─ 3      descendants of 1: 2 (distance 1), 3 (distance 2), 4 (distance 1)
//! └─ 4
//! ```

use std::sync::LazyLock;

use arrow::datatypes::Field;
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::family::{HANDED_ON, PARAMETERS, Way, compute, output};
use crate::relation::call::Call;
use crate::relation::{HandedOn, Parameter, RelationFunction};

/// The relation function `descendants`.
#[derive(Debug)]
pub struct Descendants;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "The tasks below given ones: children, children of the children, and so on. \
         The column `parent` gives the tree: in the table `tasks` it is the parent that the trace declares, else the \
         task around it on its lane. To use only the latter, pass `(SELECT task, stack_parent AS parent, name FROM \
         tasks)`; for tables without a parent pass `self_time(…)`, which computes it.\n\n\
         Rows: one per task of `of` and task below it; `distance` is 1 for a child. `of_task` is the \
         task that was asked about; it is not among the answers. A task that is given twice is answered once; one that \
         does not exist has no rows and is counted in a note. An `of` without `run` applies to every run.\n\n\
         Units: `start`, `finish` and `duration` are those of the task, in ticks; `distance` is a number of steps.\n\n\
         Nulls: a task whose parent is NULL is at the top, and so is one that is its own parent or whose parent does not \
         exist; the latter two are counted in a note. Tasks without id are left out and counted.\n\n\
         Ties: none.\n\n\
         Errors: parents that form a circle (its tasks are named), a task that is there twice in a run.\n\n\
         Cost: linear in tasks and answers; 12 bytes a task beside the tasks themselves, and 16 more where ids do not follow each other; beyond half of the memory limit \
         runs have their turn one after the other, and the tasks of one that is too large stay on disk, which is read once for every 262 144 rows of the answer.\n\n\
         Source: as Perfetto's descendant_slice.",
        "descendants([tasks], of)",
    )
    .with_sql_example(
        "SELECT of_task, task, distance FROM descendants(\n  \
         (SELECT * FROM (VALUES (1, NULL), (2, 1), (3, 2), (4, 1)) AS tasks(task, parent)), (SELECT 1 AS task))\nORDER BY task",
    )
    .with_argument("tasks", "Relation: task, parent (BIGINT); optional run, name, location, start, finish, duration.")
    .with_argument("of", "Relation: task (BIGINT), the tasks that are asked about; optional run.")
    .build()
});

impl RelationFunction for Descendants {
    fn name(&self) -> &'static str {
        "descendants"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        output()
    }

    fn handed_on(&self) -> &'static [HandedOn] {
        &HANDED_ON
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        compute(call, Way::Down)
    }
}
