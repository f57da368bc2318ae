//! `call_tree(tasks)`: which tasks enclose which on each lane, aggregated by name: one row per path of names.
//!
//! Life of the data: tasks are kept, names and lanes numbered ([`crate::lanes`]); each lane is sorted and walked once with
//! a stack of open tasks, and every task is added to the node of its path. The size of the tree depends on the number of
//! distinct paths, not of tasks; texts are made for its nodes only.
//!
//! ```text
//! main [-----------)                      stack       count  total  self
//!   solve [---)                           main            2     16    12
//!                   main [---)            main;solve      2      4     4
//!                      solve [)           solve           1      3     3
//!                                 solve [--)
//! ```

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array, Int64Builder, StringViewArray, StringViewBuilder};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field};
use datafusion_common::hash_utils::RandomState;
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::nest::{Place, nest};
use crate::lanes::open::Open;
use crate::lanes::words::{Words, WordsReading};
use crate::lanes::{BYTES_ON_LANE, Counts, LEFT_OUT, LaneSpan, Nulls, Unfinished, on_lanes, sort_lane};
use crate::relation::call::{Call, Work, column};
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::Rows;
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter, RelationFunction, RowOrder};
use crate::self_time::note_crossing;
use crate::ticks::time_field;

/// The relation function `call_tree`.
#[derive(Debug)]
pub struct CallTree;

static PARAMETERS: [Parameter; 1] = [Parameter::Input(InputSpec {
    name: "tasks",
    omitted: Omitted::Table("tasks"),
    columns: &[
        ColumnSpec::needed("name", ColumnKind::Text),
        ColumnSpec::needed("start", ColumnKind::Integer),
        ColumnSpec::needed("finish", ColumnKind::Integer),
        ColumnSpec::optional("location", ColumnKind::Text),
        ColumnSpec::optional("task", ColumnKind::Integer),
    ],
})];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "What the tasks of the lanes consist of, by name: one row per path of names from the outermost task inwards. \
         A lane is one location of one run; paths of all lanes of a run are added up. For a tree per lane give the lane as \
         the run: `call_tree((SELECT location AS run, location, task, name, start, finish FROM tasks))`.\n\n\
         Rows: one per run and path. `node` counts from 0 in each run, depth first, names in order; `parent` is the node \
         above (NULL at the top), `depth` how many there are. `count` is the number of tasks, `total_time` the sum of \
         their durations, `self_time` the sum of their self times as the function `self_time` has them. `stack` are the names from the \
         top down, joined by `;`: `SELECT stack || ' ' || self_time FROM call_tree(tasks) WHERE self_time > 0` are the \
         folded stacks that flame-graph tools draw. For them a `;` in a name becomes `:`, a line break a blank, and a task \
         without name `[unnamed]`; the column `name` has it as it is.\n\n\
         Nesting is that of `self_time`: a task that crosses another has no parent and stands at the top, and the ticks of both are its own.\n\n\
         Units: ticks.\n\n\
         Nulls: a task without start is left out; one that never ended (finish NULL) counts, has no time, and encloses \
         what follows. A task without location is left out. Each is counted in a note. NULL is a name of its own. A task that ends before it starts counts as empty.\n\n\
         Ties: of equal spans the one with the smaller task is the outer one; without a column `task`, the one that comes \
         first.\n\n\
         Errors: a sum beyond BIGINT.\n\n\
         Cost: n log n, linear when tasks are sorted by start; 32 bytes a task beside the tasks themselves (beyond half of the memory limit, of the \
         largest lane) and about 80 a path. Stacks of a chain share their text; \
         where a tree branches, the text above is made anew.\n\n\
         Source: gprof, Graham, Kessler and McKusick 1982; folded stacks: FlameGraph, Gregg 2011.",
        "call_tree([tasks])",
    )
    .with_sql_example(
        "SELECT stack, count, total_time, self_time FROM call_tree((SELECT * FROM (VALUES\n  \
         ('main', 0, 9), ('solve', 1, 4), ('solve', 5, 7), ('dot', 2, 3)) AS tasks(name, start, finish)))\nORDER BY node",
    )
    .with_argument("tasks", "Relation: name (VARCHAR), start, finish (BIGINT); optional run, location, task.")
    .build()
});

impl RelationFunction for CallTree {
    fn name(&self) -> &'static str {
        "call_tree"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("node", DataType::Int64, false),
            Field::new("parent", DataType::Int64, true),
            Field::new("depth", DataType::Int64, false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("stack", DataType::Utf8View, false),
            Field::new("count", DataType::Int64, false),
            time_field("total_time", false),
            time_field("self_time", false),
        ]
    }

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut runs = Runs::new();
        let share = Share::Lanes("location");
        let plan = InputPlan { input: "tasks", share, row_bytes: TASK_BYTES };
        let mut parts = Parts::read(call, &[plan])?;
        let mut words = Words::default();
        let mut trees: Vec<Tree> = vec![];
        let (mut counts, mut crossing) = (Counts::default(), 0);
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let names = number_names(&mut words, tasks, &mut call.work)?;
            let (lanes, mut of_lanes) =
                on_lanes(tasks, Some("location"), Nulls::NoLane, Unfinished::Endless, &mut call.work)?;
            trees.resize_with(runs.len(), Tree::default);
            let ties = tasks.ties();
            for (lane, spans) in of_lanes.lanes() {
                call.work.check()?;
                sort_lane(spans, &ties);
                let tree = &mut trees[lanes.lane(lane).run];
                let before = tree.size();
                crossing += tree.add_lane(spans, &names);
                call.work.grow_lasting(tree.size() - before)?;
            }
            counts = counts.plus(of_lanes.counts);
        }
        counts.note(&call.work, Unfinished::Endless, "location", LEFT_OUT);
        note_crossing(crossing, &call.work);
        for run in runs.in_order() {
            emit(call, &runs, run, &trees[run], &words)?;
        }
        Ok(())
    }
}

/// Bytes that a task takes: its name, its lane, and its span on it.
const TASK_BYTES: usize = size_of::<u32>() + BYTES_ON_LANE;

/// The name of each row, as a number.
fn number_names(words: &mut Words, tasks: &Rows, work: &mut Work) -> Result<Vec<u32>> {
    let mut reading = WordsReading::default();
    work.grow(tasks.len() * size_of::<u32>())?;
    let mut names = Vec::with_capacity(tasks.len());
    for batch in tasks.batches() {
        work.check()?;
        let before = words.size();
        words.number(&mut reading, column(&batch.batch, "name")?, &mut names)?;
        work.grow_lasting(words.size() - before)?;
    }
    Ok(names)
}

/// The paths of one run.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    /// The node of a name below a node.
    below: HashMap<(u32, u32), u32, RandomState>,
}

/// A path of names. Sums of `BIGINT`s fit 128 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    parent: u32,
    name: u32,
    count: i64,
    total: i128,
    own: i128,
    /// The child that was met last: loops call the same again and again.
    recent: u32,
}

impl Tree {
    /// Adds the tasks of a sorted lane; answers how many cross others.
    fn add_lane(&mut self, spans: &[LaneSpan], names: &[u32]) -> usize {
        let mut crossing = 0;
        let mut open = Open::default();
        nest(spans, |span, place| {
            let parent = match place {
                Place::Inside(parent, _) => parent,
                Place::Top => NONE,
                Place::Across => {
                    crossing += 1;
                    NONE
                }
            };
            let node = self.node(parent, names[span.row as usize]);
            self.nodes[node as usize].count += 1;
            // When one that never ended does, nobody knows: it takes nothing.
            if !span.endless {
                self.nodes[node as usize].total += i128::from(span.ticks());
                open.begin(node, span.start, span.finish, |node, ticks| self.nodes[node as usize].own += ticks);
            }
            node
        });
        open.until(i64::MAX, |node: u32, ticks| self.nodes[node as usize].own += ticks);
        crossing
    }

    fn node(&mut self, parent: u32, name: u32) -> u32 {
        if let Some(above) = self.nodes.get(parent as usize)
            && let Some(recent) = self.nodes.get(above.recent as usize)
            && recent.name == name
        {
            return above.recent;
        }
        let next = self.nodes.len() as u32;
        let node = *self.below.entry((parent, name)).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent, name, count: 0, total: 0, own: 0, recent: NONE });
        }
        if let Some(above) = self.nodes.get_mut(parent as usize) {
            above.recent = node;
        }
        node
    }

    /// Bytes held.
    fn size(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.below.capacity() * (size_of::<(u32, u32, u32)>() + 1)
    }

    /// The nodes with their depths, depth first, siblings in the order of names; NULL last.
    fn depth_first(&self, words: &Words) -> Vec<(u32, u32)> {
        let name =
            |node: u32| Some(self.nodes[node as usize].name).filter(|name| *name != NONE).map(|name| words.text(name));
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        // Last name first, for a stack: what is pushed last comes up first.
        order.sort_by(|one, other| match (name(*one), name(*other)) {
            (Some(one), Some(other)) => other.cmp(one),
            (one, other) => one.is_some().cmp(&other.is_some()),
        });
        // Children side by side, in that order.
        let parent = |node: u32| self.nodes[node as usize].parent.wrapping_add(1) as usize;
        let mut ends = vec![0usize; self.nodes.len() + 1];
        order.iter().for_each(|node| ends[parent(*node)] += 1);
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut children = vec![0u32; order.len()];
        for node in order {
            let free = &mut ends[parent(node)];
            children[*free] = node;
            *free += 1;
        }
        let below = |above: usize| if above == 0 { 0..ends[0] } else { ends[above - 1]..ends[above] };
        let mut open: Vec<(u32, u32)> = children[below(0)].iter().map(|node| (*node, 0)).collect();
        let mut found = Vec::with_capacity(self.nodes.len());
        while let Some((node, depth)) = open.pop() {
            found.push((node, depth));
            open.extend(children[below(node as usize + 1)].iter().map(|child| (*child, depth + 1)));
        }
        found
    }
}

/// Stacks are shown in pieces of about this many bytes, however deep they are.
const CHUNK_TEXT_BYTES: usize = 8 << 20;
const CHUNK_ROWS: usize = 8192;

fn emit(call: &mut Call, runs: &Runs, run: usize, tree: &Tree, words: &Words) -> Result<()> {
    call.work.grow(tree.nodes.len() * 4 * size_of::<u32>())?;
    let order = tree.depth_first(words);
    let mut number_of = vec![0i64; order.len()];
    for (number, (node, _)) in (0..).zip(&order) {
        number_of[*node as usize] = number;
    }
    let mut stacks = Stacks::default();
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        call.work.check()?;
        let (mut names, mut parents) = (StringViewBuilder::new(), Int64Builder::new());
        let mut rows = 0;
        // Each column has the text of its stacks: of deep ones as many as they are deep, so that texts are few.
        let rows_max = CHUNK_ROWS.max(rest[0].1 as usize);
        while rows < rest.len().min(rows_max) && stacks.new_bytes < CHUNK_TEXT_BYTES {
            let (node, depth) = rest[rows];
            let Node { name, parent, .. } = tree.nodes[node as usize];
            let name = (name != NONE).then(|| words.text(name));
            stacks.push(depth as usize, name.unwrap_or_default())?;
            rows += 1;
            names.append_option(name);
            parents.append_option((parent != NONE).then(|| number_of[parent as usize]));
        }
        let (nodes, others) = rest.split_at(rows);
        let numbers = order.len() - rest.len()..order.len() - others.len();
        rest = others;
        let of_nodes = |value: &dyn Fn(&Node) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(nodes.iter().map(|(node, _)| value(&tree.nodes[*node as usize]))))
        };
        let times = |value: &dyn Fn(&Node) -> i128, what: &str| -> Result<ArrayRef> {
            let mut times = Vec::with_capacity(nodes.len());
            for (node, _) in nodes {
                let node = &tree.nodes[*node as usize];
                let Ok(time) = i64::try_from(value(node)) else {
                    let name = if node.name == NONE { "NULL" } else { words.text(node.name) };
                    return exec_err!("call_tree: the {what} time of `{name}` does not fit a BIGINT");
                };
                times.push(time);
            }
            Ok(Arc::new(Int64Array::from(times)))
        };
        let columns = vec![
            runs.column(&[(run, nodes.len())], call.output().field(0).data_type())?,
            Arc::new(Int64Array::from_iter_values(numbers.map(|number| number as i64))),
            Arc::new(parents.finish()),
            Arc::new(Int64Array::from_iter_values(nodes.iter().map(|(_, depth)| i64::from(*depth)))),
            Arc::new(names.finish()),
            Arc::new(stacks.finish()),
            of_nodes(&|node| node.count),
            times(&|node| node.total, "total")?,
            times(&|node| node.own, "self")?,
        ];
        call.emit(columns)?;
    }
    Ok(())
}

/// The texts of stacks. Depth first, a stack begins with the one above it, so the stacks of a chain are beginnings of one
/// text: a chain takes the bytes of its deepest stack, where texts of their own would take the square of its depth.
#[derive(Debug, Default)]
struct Stacks {
    /// The texts that are complete, the one that grows, and where the frames of the last stack end in it.
    texts: Vec<String>,
    text: String,
    ends: Vec<usize>,
    /// Number of the text and length of each stack.
    stacks: Vec<(usize, usize)>,
    /// Bytes written since the last column.
    new_bytes: usize,
}

impl Stacks {
    /// The next stack: so many frames of the one before, and a name.
    fn push(&mut self, depth: usize, name: &str) -> Result<()> {
        self.ends.truncate(depth);
        let above = self.ends.last().copied().unwrap_or(0);
        let before = self.text.len();
        if above < before {
            // What follows belongs to stacks that were given: the next one begins a text of its own.
            let text = self.text[..above].to_owned();
            self.new_bytes += above;
            self.texts.push(std::mem::replace(&mut self.text, text));
        }
        let before = self.text.len();
        push_frame(&mut self.text, name);
        self.new_bytes += self.text.len() - before;
        if u32::try_from(self.text.len()).is_err() {
            return exec_err!("call_tree: the stack of a path is longer than a text can be (4 GB)");
        }
        self.ends.push(self.text.len());
        self.stacks.push((self.texts.len(), self.text.len()));
        Ok(())
    }

    /// The stacks since the last column.
    #[expect(
        unsafe_code,
        reason = "checked, each stack is read from its begin: the square of its depth, half a minute at 10⁶"
    )]
    fn finish(&mut self) -> StringViewArray {
        let growing = self.text.clone();
        let mut texts = std::mem::take(&mut self.texts);
        texts.push(growing);
        let mut column = StringViewBuilder::with_capacity(self.stacks.len());
        let mut block = (usize::MAX, 0);
        for (text, length) in std::mem::take(&mut self.stacks) {
            if length <= 12 {
                column.append_value(&texts[text][..length]);
                continue;
            }
            if block.0 != text {
                block = (text, column.append_block(Buffer::from(std::mem::take(&mut texts[text]).into_bytes())));
            }
            // SAFETY: the block is a `String`, and `length` is where a frame of it ended: a beginning of it, whole letters. It is
            // longer than the 12 bytes that views hold themselves.
            unsafe { column.append_view_unchecked(block.1, 0, length as u32) };
        }
        self.new_bytes = 0;
        column.finish()
    }
}

/// Adds a name to a stack in the form that flame-graph tools read.
fn push_frame(stack: &mut String, name: &str) {
    if !stack.is_empty() {
        stack.push(';');
    }
    if name.is_empty() {
        stack.push_str("[unnamed]");
    }
    stack.extend(name.chars().map(|letter| match letter {
        ';' => ':',
        '\n' | '\r' => ' ',
        other => other,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relation::rows::Ties;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Sums = (i64, i128, i128);

    /// Per path: count, total and self time.
    fn by_path(tree: &Tree) -> BTreeMap<Vec<u32>, Sums> {
        let path = |mut node: u32| {
            let mut path = vec![];
            while node != NONE {
                path.insert(0, tree.nodes[node as usize].name);
                node = tree.nodes[node as usize].parent;
            }
            path
        };
        let sums = |(number, node): (u32, &Node)| (path(number), (node.count, node.total, node.own));
        (0..).zip(&tree.nodes).map(sums).collect()
    }

    proptest! {
        /// The path of a task is that of its parent and its own name, asked task by task.
        #[test]
        fn equals_the_sums_over_tasks(lanes in vec(vec((0..3u32, 0..12i64, 0..6i64), 0..10), 1..3)) {
            let mut tree = Tree::default();
            let mut naive: BTreeMap<Vec<u32>, Sums> = BTreeMap::new();
            for lane in &lanes {
                let names: Vec<u32> = lane.iter().map(|task| task.0).collect();
                let span = |(row, (_, start, length)): (u32, &(u32, i64, i64))| LaneSpan::new(*start, start + length, row);
                let mut spans: Vec<LaneSpan> = (0..).zip(lane).map(span).collect();
                sort_lane(&mut spans, &Ties::by_row());
                tree.add_lane(&spans, &names);
                let mut parents = vec![None; lane.len()];
                nest(&spans, |span, place| {
                    parents[span.row as usize] = match place { Place::Inside(parent, _) => Some(parent), _ => None };
                    span.row
                });
                for row in 0..lane.len() {
                    let (mut path, mut above) = (vec![names[row]], parents[row]);
                    while let Some(parent) = above {
                        path.insert(0, names[parent as usize]);
                        above = parents[parent as usize];
                    }
                    let runs = |span: &&LaneSpan, tick: i64| span.start <= tick && tick < span.finish;
                    let is_own = |tick: &i64| spans.iter().rfind(|span| runs(span, *tick)).is_some_and(|span| span.row == row as u32);
                    let sums = naive.entry(path).or_default();
                    *sums = (sums.0 + 1, sums.1 + i128::from(lane[row].2), sums.2 + (0..18).filter(is_own).count() as i128);
                }
            }
            prop_assert_eq!(by_path(&tree), naive);
        }
    }

    #[test]
    fn nodes_come_depth_first_by_name_null_last() {
        let mut words = Words::default();
        let names: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["b", "a"]));
        words.number(&mut WordsReading::default(), &names, &mut vec![]).unwrap();
        let mut tree = Tree::default();
        for (parent, name) in [(NONE, NONE), (NONE, 0), (1, 1), (1, 0), (NONE, 1), (2, 1)] {
            tree.node(parent, name);
        }
        assert_eq!(tree.depth_first(&words), [(4, 0), (1, 0), (2, 1), (5, 2), (3, 1), (0, 0)]);
    }

    #[test]
    fn frames_are_what_flame_graph_tools_read() {
        let mut stack = String::new();
        for name in ["main", "", "<[u8; 4]>\nx"] {
            push_frame(&mut stack, name);
        }
        assert_eq!(stack, "main;[unnamed];<[u8: 4]> x");
    }
}
