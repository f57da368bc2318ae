//! `explain_change(tasks, links, messages, base, new)`: why one run took longer than another.
//!
//! Life of the data: the executed paths of both runs are found (`ExecutedPaths`). Work and waits of a path fill the
//! makespan of its run, so the sums by task name add up to the makespans, and their differences to the difference of
//! the makespans.
//!
//! ```text
//! base  load 3, wait 1, solve 5        = 9        load     work      3 -> 3    0
//! new   load 3, wait 4, solve 6        = 13       solve    work      5 -> 6   +1
//!                                                 solve    waiting   1 -> 4   +3     = +4
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::executed::walk::Step;
use crate::executed::{ARGUMENTS, Account, ExecutedPaths, MESSAGES, NAMED_TASKS};
use crate::graph::load::{Graphs, LINKS};
use crate::relation::call::Call;
use crate::relation::runs::Runs;
use crate::relation::{Default, OptionKind, OptionSpec, Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `explain_change`.
#[derive(Debug)]
pub struct ExplainChange;

static PARAMETERS: [Parameter; 5] = [NAMED_TASKS, LINKS, MESSAGES, BASE, NEW];

/// The run or runs that others are compared with.
pub(crate) const BASE: Parameter =
    Parameter::Option(OptionSpec { name: "base", kind: OptionKind::Text, default: Default::Text("base") });
/// The run or runs that are compared.
pub(crate) const NEW: Parameter =
    Parameter::Option(OptionSpec { name: "new", kind: OptionKind::Text, default: Default::Text("new") });

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let documentation = Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "Why a run took longer or shorter than another: the difference of their makespans, by what their executed paths spent.\n\n\
         Rows: per name of tasks on either path up to two, without `run`. `cause` is `work` for time in which tasks of that name \
         ran on both paths, `path` when the name is on one of the paths alone (the run took another way), `waiting` for the waits \
         before tasks of that name. `base` and `new` are what each path spent, `change` is new - base. All `change` add up to \
         the difference of the makespans exactly, and every one is the negative of what it is with the runs exchanged. See \
         `executed_path` for what is on a path; where only one of the runs has links, they are left out, and a note says so. Largest changes come first.\n\n\
         Units: ticks.\n\n\
         Nulls: tasks without name are one name, NULL. Else as in `executed_path`.\n\n\
         Ties: as in `executed_path`; changes of equal size by name, then cause.\n\n\
         Errors: `base` or `new` names no run or several (`*` in it stands for any text), a makespan beyond BIGINT, a time of -9223372036854775808.\n\n\
         Cost: that of `executed_path`.\n\n\
         Source: differences of critical paths by activity, as in Scalasca's composition of the critical path, Böhme et al. 2012.",
        "explain_change([tasks], [links], [messages], [base => VARCHAR], [new => VARCHAR])",
    )
    .with_sql_example(
        "SELECT name, cause, base, new, change FROM explain_change(\n  \
         (SELECT * FROM (VALUES ('old', 1, 'load', 0, 3), ('old', 2, 'solve', 4, 9), ('now', 3, 'load', 0, 3), \
         ('now', 4, 'solve', 7, 13))\n   AS tasks(run, task, name, start, finish)),\n  \
         (SELECT * FROM (VALUES (1, 2), (3, 4)) AS links(source, target)),\n  \
         (SELECT NULL AS target_task WHERE false), base => 'old', new => 'now')",
    );
    let documentation = ARGUMENTS.iter().fold(documentation, |all, (name, text)| all.with_argument(*name, *text));
    documentation
        .with_argument("base", "The run to compare with (VARCHAR, default 'base'); `*` stands for any text.")
        .with_argument("new", "The run that is compared (VARCHAR, default 'new'); `*` stands for any text.")
        .build()
});

impl RelationFunction for ExplainChange {
    fn name(&self) -> &'static str {
        "explain_change"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("name", DataType::Utf8View, true),
            Field::new("cause", DataType::Utf8View, false),
            time_field("base", false),
            time_field("new", false),
            time_field("change", false),
        ]
    }

    fn across_runs(&self) -> bool {
        true
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let (base, new) =
            (call.options.text("base")?.unwrap_or("").to_owned(), call.options.text("new")?.unwrap_or("").to_owned());
        let mut account = Account::default();
        let wanted = |runs: &Runs, run| runs.matching(&base).contains(&run) || runs.matching(&new).contains(&run);
        let paths = ExecutedPaths::find(call, true, &wanted, &mut account)?;
        account.note(&call.work);
        let runs = &paths.graphs.runs;
        if runs.is_empty() {
            return Ok(());
        }
        let sides = [("base", &base), ("new", &new)].map(|(option, pattern)| one_run(runs, option, pattern));
        let mut spent: BTreeMap<Option<String>, Spent> = BTreeMap::new();
        for (side, run) in sides.into_iter().enumerate() {
            let run = run?;
            if let Some((_, steps)) = paths.paths.iter().find(|(of, _)| *of == run) {
                add_steps(&paths.graphs, run, steps, side, &mut spent)?;
            }
        }
        emit(call, &rows(spent))
    }
}

/// What the paths spent on tasks of a name: of `base` and of `new`.
#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    work: [i64; 2],
    waiting: [i64; 2],
    steps: [usize; 2],
}

/// A row of the answer.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: Option<String>,
    cause: &'static str,
    spent: [i64; 2],
}

impl Row {
    fn change(&self) -> i64 {
        self.spent[1] - self.spent[0]
    }
}

fn one_run(runs: &Runs, option: &str, pattern: &str) -> Result<usize> {
    match runs.matching(pattern)[..] {
        [run] => Ok(run),
        ref found => {
            let names = |runs: &mut dyn Iterator<Item = String>| runs.collect::<Vec<_>>().join(", ");
            let all = names(&mut runs.in_order().into_iter().map(|run| runs.name(run)));
            if found.is_empty() {
                return exec_err!(
                    "explain_change: no run is named '{pattern}', which option `{option}` asks for; there are: {all}"
                );
            }
            let these = names(&mut found.iter().map(|run| runs.name(*run)));
            exec_err!("explain_change: option `{option}` is one run, and '{pattern}' names several: {these}")
        }
    }
}

fn add_steps(
    graphs: &Graphs,
    run: usize,
    steps: &[Step],
    side: usize,
    spent: &mut BTreeMap<Option<String>, Spent>,
) -> Result<()> {
    let tasks: Vec<u32> = steps.iter().map(|step| step.task).collect();
    let names = graphs.text(run, &tasks, "name")?;
    let names = names.as_string_view();
    for (row, step) in steps.iter().enumerate() {
        let name = names.is_valid(row).then(|| names.value(row).to_owned());
        let of_name = spent.entry(name).or_default();
        // All of a path together are the makespan, which fits.
        of_name.work[side] += step.finish - step.start;
        of_name.waiting[side] += step.wait;
        of_name.steps[side] += 1;
    }
    Ok(())
}

fn rows(spent: BTreeMap<Option<String>, Spent>) -> Vec<Row> {
    let mut rows = vec![];
    for (name, spent) in spent {
        let work = if spent.steps.contains(&0) { "path" } else { "work" };
        for (cause, spent) in [(work, spent.work), ("waiting", spent.waiting)] {
            if spent != [0, 0] {
                rows.push(Row { name: name.clone(), cause, spent });
            }
        }
    }
    // Names are in order already, NULL first, and the sort is stable.
    rows.sort_by_key(|row| std::cmp::Reverse(row.change().unsigned_abs()));
    rows
}

fn emit(call: &mut Call, rows: &[Row]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let times =
        |value: &dyn Fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.iter().map(value))) };
    call.emit(vec![
        Arc::new(rows.iter().map(|row| row.name.as_deref()).collect::<StringViewArray>()),
        Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| row.cause))),
        times(&|row| row.spent[0]),
        times(&|row| row.spent[1]),
        times(&Row::change),
    ])
}
