//! `component_rows(tasks, location, rules)`: the bars of Daisen's component view and task view.
//!
//! ```text
//! level 1  row 0   [--- req_in -----------------)         a task is a child of its parent when that is shown, too
//! level 2  row 0     [req_out ---)   [req_out --)         rows are given among the children of one parent
//!          row 1        [req_out ---)
//! level 1  row 1              [--- req_in ----------)     and among those without a shown parent
//! ```
//! Life of the data: the tasks of the picture are put in the order of the trace; each finds its parent among them; the
//! children of each parent are placed first fit, in the order of their starts. When two bars conflict, and what else
//! takes up room, depends on the rules (`Rules`).

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field};
use datafusion_common::hash_utils::RandomState;
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::floating_row::{FirstFit, floating_rows, half_ticks};
use crate::graph::load::texts_that;
use crate::relation::by_run::ByRun;
use crate::relation::call::{Call, Options};
use crate::relation::parts::{InputPlan, Share};
use crate::relation::rows::{Role, Rows, without_null};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, HandedOn, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, Part,
    RelationFunction,
};
use crate::ticks::time_field;

/// The relation function `component_rows`.
#[derive(Debug)]
pub struct ComponentRows;

static PARAMETERS: [Parameter; 3] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::optional("parent", ColumnKind::Integer),
            ColumnSpec::optional("parent_id", ColumnKind::Text),
            ColumnSpec::optional("location", ColumnKind::Text),
            ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"]),
            ColumnSpec::optional("kind", ColumnKind::Text).only_for(&["kind"]),
        ],
    }),
    Parameter::Option(OptionSpec { name: "location", kind: OptionKind::Text, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "rules", kind: OptionKind::Text, default: Default::Text("plain") }),
];

static HANDED_ON: [HandedOn; 3] = [
    HandedOn { output: "location", input: "tasks", column: "location" },
    HandedOn { output: "name", input: "tasks", column: "name" },
    HandedOn { output: "kind", input: "tasks", column: "kind" },
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "The bars of Daisen's component view and task view: each task with its level and its row among the children of its \
         parent.\n\n\
         Rows: one per task of the picture, which has all tasks that are given, or those of one `location`. A task is a child \
         of its parent when that is in the picture, else it is on `level` 1. `row` counts from 0 among the children of one \
         parent, and among the tasks of level 1: tasks are placed in the order of their starts, each in the first row where it \
         conflicts with none. Take a window by giving only the tasks that overlap it.\n\n\
         Rules: `'plain'`: half-open, so tasks may touch and those without length share rows; the task chart of Daisen 2. \
         `'v3'`: as `floating_row`, where a task without length needs room; the component view of Akita v3 and v4. `'v5'`: the \
         component page of Akita v5: tasks without length are left out (level and row are NULL), a task takes its row until \
         the last of its descendants has ended, and two or more tasks of level 1 that share a parent outside of the picture \
         (or have none) stay together in neighbouring rows; `location` stands for all that is below its name.\n\n\
         Units: `start` and `finish` in ticks; levels from 1, rows from 0.\n\n\
         Nulls: a task without start or finish is left out and counted in a note. Without a column `parent` all tasks are on \
         level 1; `parent_id` tells parents apart that are no tasks. A NULL `location` takes every task that is given.\n\n\
         Ties: tasks that start together are placed in the order of `task`; in `'plain'` the one that ends first before.\n\n\
         Errors: unknown rules, a task that is there twice, tasks that are their own ancestors.\n\n\
         Cost: n log n; blocks of `'v5'` look at each row. 200 bytes a task of the picture beside the tasks themselves; beyond half of the \
         memory limit, of the largest run.\n\n\
         Source: Daisen's frontend (Akita v3, v4: TaskYIndexAssigner; v5.0.0-beta.8: the component page and the task chart).",
        "component_rows([tasks], [location => VARCHAR], [rules => VARCHAR])",
    )
    .with_sql_example(
        "SELECT name, level, row FROM component_rows((SELECT * FROM (VALUES\n  \
         (1, NULL, 'a', 0, 9), (2, 1, 'b', 1, 4), (3, 1, 'c', 2, 6), (4, 1, 'd', 4, 5), (5, NULL, 'e', 7, 12))\n  \
         AS tasks(task, parent, name, start, finish)))\nORDER BY task",
    )
    .with_argument("tasks", "Relation: task, start, finish (BIGINT); optional run, parent, parent_id, location, name, kind.")
    .with_argument("location", "The component (VARCHAR, default: all tasks that are given).")
    .with_argument("rules", "`plain`, `v3` or `v5` (VARCHAR, default `plain`).")
    .build()
});

impl RelationFunction for ComponentRows {
    fn name(&self) -> &'static str {
        "component_rows"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("task", DataType::Int64, false),
            Field::new("location", DataType::Utf8View, true),
            Field::new("level", DataType::Int64, true),
            Field::new("row", DataType::Int64, true),
            time_field("start", false),
            time_field("finish", false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("kind", DataType::Utf8View, true),
        ]
    }

    fn handed_on(&self) -> &'static [HandedOn] {
        &HANDED_ON
    }

    /// Only the tasks of the picture are read; those that are left out of all pictures are counted nevertheless.
    fn part(&self, _: &str, options: &Options) -> Result<Option<Part>> {
        let Some(location) = options.text("location")?.map(str::to_owned) else { return Ok(None) };
        let rules = Rules::of(options)?;
        Ok(Some(Arc::new(move |batch, left_out| {
            let Some(locations) = batch.column_by_name("location") else { return Ok(batch) };
            let is_shown = |text: &str| match text.strip_prefix(location.as_str()) {
                Some("") => true,
                Some(below) => rules == Rules::V5 && below.starts_with('.'),
                None => false,
            };
            let shown = texts_that(locations, is_shown)?;
            if shown.count_set_bits() == shown.len() {
                return Ok(batch);
            }
            let others = filter_record_batch(&batch, &BooleanArray::new(!&shown, None))?;
            let mut of_others = 0;
            without_null(others, &NEEDED, &mut of_others)?;
            left_out.fetch_add(of_others, Ordering::Relaxed);
            Ok(filter_record_batch(&batch, &BooleanArray::new(shown, None))?)
        })))
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let rules = Rules::of(&call.options)?;
        let input = call.input("tasks")?.0;
        let has_locations = input.schema().column_with_name("location").is_some();
        if let (Some(location), false) = (call.options.text("location")?, has_locations) {
            return exec_err!("component_rows: `tasks` has no column `location` to find `{location}` in");
        }
        let mut parts = ByRun::read(call, &[InputPlan { input: "tasks", share: Share::Runs, row_bytes: TASK_BYTES }])?;
        let mut left_out = 0;
        while parts.next(call)? {
            let mut runs = Runs::new();
            let tasks = Rows::read(call, "tasks", Role::First, &NEEDED, &mut runs)?;
            left_out += tasks.left_out;
            for run in runs.in_order() {
                call.work.check()?;
                let before = call.work.size();
                let mut bars = bars(&tasks, run, call)?;
                place(&mut bars, rules)?;
                for bars in bars.chunks(CHUNK_ROWS) {
                    call.work.check()?;
                    emit(call, &runs, run, &tasks, bars)?;
                }
                call.work.shrink(call.work.size() - before);
            }
        }
        let left_out = left_out + call.input("tasks")?.0.left_out();
        call.work.note_count(
            left_out,
            "task without start or finish was left out",
            "tasks without start or finish were left out",
        );
        Ok(())
    }
}

/// A task without one of these is in no picture.
const NEEDED: [&str; 3] = ["task", "start", "finish"];

/// Bytes that a task takes beside its row.
const TASK_BYTES: usize = 2 * size_of::<Bar>();

const CHUNK_ROWS: usize = 65_536;

/// How bars conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    Plain,
    V3,
    V5,
}

impl Rules {
    fn of(options: &Options) -> Result<Rules> {
        match options.text("rules")? {
            None | Some("plain") => Ok(Rules::Plain),
            Some("v3") => Ok(Rules::V3),
            Some("v5") => Ok(Rules::V5),
            Some(other) => plan_err!("component_rows: `rules` is 'plain', 'v3' or 'v5', not '{other}'"),
        }
    }
}

/// A task of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bar {
    task: i64,
    start: i64,
    finish: i64,
    parent: Option<i64>,
    /// The parent's own id, where it is no task.
    parent_id: Option<String>,
    /// Its row in the input.
    number: u32,
    level: Option<i64>,
    row: Option<i64>,
}

/// The tasks of a run that are in the picture, in the order of the trace.
fn bars(tasks: &Rows, run: usize, call: &mut Call) -> Result<Vec<Bar>> {
    let mut bars = vec![];
    let ties = tasks.ties();
    for batch in tasks.batches() {
        let ids = batch.batch.column_by_name("parent_id").map(|ids| cast(ids, &DataType::Utf8View)).transpose()?;
        let ids: Option<&StringViewArray> = ids.as_ref().map(|ids| ids.as_string_view());
        for stretch in batch.stretches.iter().filter(|stretch| stretch.run == Some(run)) {
            let integers = |name: &str| batch.batch.column_by_name(name).map(|column| column.as_primitive());
            let (Some(task), Some(start), Some(finish)) = (integers("task"), integers("start"), integers("finish"))
            else {
                continue;
            };
            let (task, start, finish): (&Int64Array, &Int64Array, &Int64Array) = (task, start, finish);
            let parents: Option<&Int64Array> = integers("parent");
            for row in stretch.rows.clone() {
                let number = batch.first + row;
                bars.push(Bar {
                    task: task.value(row),
                    start: start.value(row),
                    finish: finish.value(row),
                    parent: parents.filter(|parents| parents.is_valid(row)).map(|parents| parents.value(row)),
                    parent_id: ids.filter(|ids| ids.is_valid(row)).map(|ids| ids.value(row).to_owned()),
                    number: number as u32,
                    level: None,
                    row: None,
                });
            }
        }
    }
    call.work.grow(bars.len() * 2 * size_of::<Bar>())?;
    bars.sort_by_key(|bar| ties.key(bar.number));
    Ok(bars)
}

/// Gives each bar its level and row.
fn place(bars: &mut [Bar], rules: Rules) -> Result<()> {
    let is_placed = |bar: &Bar| rules != Rules::V5 || bar.start < bar.finish;
    let mut index: HashMap<i64, usize, RandomState> = HashMap::default();
    for (place, bar) in bars.iter().enumerate().filter(|(_, bar)| is_placed(bar)) {
        if index.insert(bar.task, place).is_some() {
            return exec_err!("component_rows: task {} is there twice", bar.task);
        }
    }
    // Children by parent; those without a parent in the picture under the number of bars.
    let mut siblings: Vec<(usize, usize)> = bars
        .iter()
        .enumerate()
        .filter(|(_, bar)| is_placed(bar))
        .map(|(place, bar)| (bar.parent.and_then(|parent| index.get(&parent).copied()).unwrap_or(bars.len()), place))
        .collect();
    siblings.sort_unstable();
    let children = |parent: usize| {
        let from = siblings.partition_point(|(of, _)| *of < parent);
        siblings[from..].iter().take_while(move |(of, _)| *of == parent).map(|(_, child)| *child)
    };
    // From the top down: a task that is not reached is its own ancestor.
    let mut order: Vec<usize> = children(bars.len()).collect();
    for &bar in &order {
        bars[bar].level = Some(1);
    }
    let mut next = 0;
    while next < order.len() {
        let parent = order[next];
        for child in children(parent) {
            bars[child].level = bars[parent].level.map(|level| level + 1);
            order.push(child);
        }
        next += 1;
    }
    if order.len() < siblings.len() {
        let lost = bars.iter().find(|bar| is_placed(bar) && bar.level.is_none()).map_or(0, |bar| bar.task);
        return exec_err!("component_rows: task {lost} is its own ancestor");
    }
    let mut finishes: Vec<i64> = bars.iter().map(|bar| bar.finish).collect();
    if rules == Rules::V5 {
        // From the bottom up: until the last descendant has ended.
        for &bar in order.iter().rev() {
            if let Some(&parent) = bars[bar].parent.as_ref().and_then(|parent| index.get(parent)) {
                finishes[parent] = finishes[parent].max(finishes[bar]);
            }
        }
    }
    for group in siblings.chunk_by(|(one, _), (other, _)| one == other) {
        let is_top = group[0].0 == bars.len();
        let mut group: Vec<usize> = group.iter().map(|(_, bar)| *bar).collect();
        let rows = match rules {
            Rules::V5 if is_top => rows_in_blocks(&mut group, bars, &finishes)?,
            Rules::Plain => {
                group.sort_by_key(|&bar| (bars[bar].start, bars[bar].finish));
                let mut rows = FirstFit::default();
                let row = |&bar: &usize| {
                    let Bar { start, finish, .. } = bars[bar];
                    rows.place(half_ticks(start) + 1, half_ticks(finish.max(start))) as i64
                };
                group.iter().map(row).collect()
            }
            Rules::V3 | Rules::V5 => rows_with_marks(&mut group, bars, &finishes)?,
        };
        for (bar, row) in group.into_iter().zip(rows) {
            bars[bar].row = Some(row);
        }
    }
    Ok(())
}

/// Sorts a group by start; what starts together stays in the order of the trace. The rows are those of `floating_row`.
fn rows_with_marks(group: &mut [usize], bars: &[Bar], finishes: &[i64]) -> Result<Vec<i64>> {
    group.sort_by_key(|&bar| bars[bar].start);
    let (starts, finishes): (Vec<i64>, Vec<i64>) = group.iter().map(|&bar| (bars[bar].start, finishes[bar])).unzip();
    match floating_rows(&starts, &finishes) {
        Ok(rows) => Ok(rows),
        Err(error) => exec_err!("component_rows: {error}"),
    }
}

/// What stays together at level 1 of v5: tasks that share a parent that is not shown, or one task.
struct Block {
    bars: Vec<usize>,
    /// Of each bar, within the block.
    rows: Vec<i64>,
    height: usize,
    start: i64,
    finish: i64,
}

/// Rows of level 1 in v5: blocks by their starts, singles before groups, each at the lowest row where all rows that it needs
/// are free.
fn rows_in_blocks(group: &mut Vec<usize>, bars: &[Bar], finishes: &[i64]) -> Result<Vec<i64>> {
    type Parent<'a> = (Option<i64>, Option<&'a str>);
    let mut by_parent: HashMap<Parent<'_>, Vec<usize>, RandomState> = HashMap::default();
    for &bar in group.iter() {
        by_parent.entry((bars[bar].parent, bars[bar].parent_id.as_deref())).or_default().push(bar);
    }
    let (mut singles, mut groups): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        by_parent.into_values().partition(|bars| bars.len() == 1);
    singles.sort_unstable();
    groups.sort_unstable();
    let mut blocks = vec![];
    for mut of_block in singles.into_iter().chain(groups) {
        let rows = rows_with_marks(&mut of_block, bars, finishes)?;
        let height = rows.iter().max().map_or(0, |row| *row as usize + 1);
        let start = of_block.iter().map(|&bar| bars[bar].start).min().unwrap_or(0);
        let finish = of_block.iter().map(|&bar| finishes[bar]).max().unwrap_or(0);
        blocks.push(Block { bars: of_block, rows, height, start, finish });
    }
    blocks.sort_by_key(|block| block.start);
    group.clear();
    let mut rows = vec![];
    let mut blocked_until: Vec<i64> = vec![];
    for block in blocks {
        // From the last row that is in the way upwards; beyond the rows that exist everything is free.
        let mut base = 0;
        while let Some(in_the_way) =
            (base..(base + block.height).min(blocked_until.len())).rev().find(|&row| blocked_until[row] > block.start)
        {
            base = in_the_way + 1;
        }
        blocked_until.resize(blocked_until.len().max(base + block.height), i64::MIN);
        blocked_until[base..base + block.height].fill(block.finish);
        group.extend(block.bars);
        rows.extend(block.rows.into_iter().map(|row| base as i64 + row));
    }
    Ok(rows)
}

fn emit(call: &mut Call, runs: &Runs, run: usize, tasks: &Rows, bars: &[Bar]) -> Result<()> {
    let output = Arc::clone(call.output());
    let numbers: Vec<u32> = bars.iter().map(|bar| bar.number).collect();
    let gathered =
        |name: &str| -> Result<ArrayRef> { tasks.gather(name, &numbers, output.field_with_name(name)?.data_type()) };
    let integers =
        |value: &dyn Fn(&Bar) -> Option<i64>| -> ArrayRef { Arc::new(bars.iter().map(value).collect::<Int64Array>()) };
    let columns = vec![
        runs.column(&[(run, bars.len())], output.field(0).data_type())?,
        integers(&|bar| Some(bar.task)),
        gathered("location")?,
        integers(&|bar| bar.level),
        integers(&|bar| bar.row),
        integers(&|bar| Some(bar.start)),
        integers(&|bar| Some(bar.finish)),
        gathered("name")?,
        gathered("kind")?,
    ];
    call.emit(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn bar(task: i64, parent: Option<i64>, start: i64, finish: i64) -> Bar {
        Bar { task, start, finish, parent, parent_id: None, number: task as u32, level: None, row: None }
    }

    proptest! {
        /// First fit by looking at every pair.
        #[test]
        fn rows_are_the_first_that_fit(
            spans in vec((0..20i64, 0..6i64, 0..8usize), 0..24), v3 in any::<bool>(),
        ) {
            let rules = if v3 { Rules::V3 } else { Rules::Plain };
            // A parent comes before its children, or is none of them.
            let parent = |task: usize, parent: usize| (parent < task).then_some(parent as i64);
            let mut bars: Vec<Bar> = spans.iter().enumerate()
                .map(|(task, (start, length, of))| bar(task as i64, parent(task, *of), *start, start + length))
                .collect();
            place(&mut bars, rules).unwrap();
            for one in &bars {
                let level = one.parent.map_or(1, |parent| bars[parent as usize].level.unwrap() + 1);
                prop_assert_eq!(one.level, Some(level));
                let key = |bar: &Bar| (bar.start, if v3 { 0 } else { bar.finish }, bar.task);
                let earlier: Vec<&Bar> =
                    bars.iter().filter(|other| other.parent == one.parent && key(other) < key(one)).collect();
                let conflicts = |row: i64| earlier.iter().any(|placed| placed.row == Some(row) && match rules {
                    Rules::Plain => placed.finish > one.start,
                    _ => match (placed.start < placed.finish, one.start < one.finish) {
                        (true, true) => placed.finish > one.start,
                        (_, false) => one.start <= placed.finish,
                        (false, true) => placed.start == one.start,
                    },
                });
                prop_assert_eq!(one.row, (0..).find(|row| !conflicts(*row)));
            }
        }
    }

    #[test]
    fn v5_keeps_a_row_for_descendants_and_leaves_out_marks() {
        // a [--)          b begins after a, but its child c still runs
        // c   [------)    child of a
        // b      [--)
        // m   |           without length
        let mut bars = vec![bar(0, None, 0, 3), bar(1, None, 6, 9), bar(2, Some(0), 2, 9), bar(3, None, 2, 2)];
        bars[0].parent_id = Some("x".to_owned());
        place(&mut bars, Rules::V5).unwrap();
        let placed: Vec<_> = bars.iter().map(|bar| (bar.level, bar.row)).collect();
        assert_eq!(placed, [(Some(1), Some(0)), (Some(1), Some(1)), (Some(2), Some(0)), (None, None)]);
    }

    #[test]
    fn own_ancestors_are_an_error() {
        let mut bars = vec![bar(0, Some(1), 0, 3), bar(1, Some(0), 0, 3)];
        assert!(place(&mut bars, Rules::V3).unwrap_err().to_string().contains("its own ancestor"));
    }
}
