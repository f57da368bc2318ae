//! Groups of words: the first half of a GROUP BY of one or two words, where a group is a place in an array.
//!
//! DataFusion's aggregate hashes the keys of each row and looks for them in a table, a third of the time of counting by name. The words of
//! a dictionary have places already, so here a row's group is found by its key alone:
//!
//! ```text
//! one word     key of the dictionary → group
//! two words    key → word, key → word; (word, word) → group
//! ```
//! Groups come in the order in which rows met them first, as from DataFusion's aggregate, with the numbers of their words ([`super::numbered`]).
//! Where they do not fit, those that there are go on to the second half, which puts equal ones together, and counting begins anew.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{Int32Type, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;

use crate::sql::operators::one_input;
use crate::sql::word_table::{Itself, Table, UNSEEN, are_same, number};

type Plan = Arc<dyn ExecutionPlan>;

/// So many keys at most.
pub(super) const MOST_KEYS: usize = 2;
/// Pairs of words that have a place each; more are looked up in a table.
const MOST_PLACES: usize = 1 << 22;
/// Dictionaries whose words a stream remembers.
const REMEMBERED: usize = 4;
/// No group, no word.
const NONE: u32 = u32::MAX;

/// The first half of an aggregate by words.
#[derive(Debug)]
pub(super) struct GroupsOfWordsExec {
    pub(super) input: Plan,
    work: Work,
    pub(super) table: Arc<Table>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is computed of which columns.
#[derive(Debug, Clone)]
struct Work {
    /// The words.
    columns: Vec<usize>,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// Of the groups: the numbers of their words, and the states of the functions.
    schema: SchemaRef,
}

/// Whether the values of these functions can be computed here. Their states are numbers, so that it is known what memory they need; those of
/// functions whose value depends on the order of rows are others.
pub(super) fn are_plain(functions: &[Arc<AggregateFunctionExpr>]) -> bool {
    functions.iter().all(|function| {
        let states = function.state_fields();
        let are_plain = states.is_ok_and(|states| states.iter().all(|state| state.data_type().is_primitive()));
        are_plain && function.groups_accumulator_supported()
    })
}

impl GroupsOfWordsExec {
    /// `schema` is that of the first half by numbers.
    pub(super) fn new(
        input: Plan,
        columns: Vec<usize>,
        functions: Vec<Arc<AggregateFunctionExpr>>,
        filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
        schema: SchemaRef,
        table: &Arc<Table>,
    ) -> GroupsOfWordsExec {
        GroupsOfWordsExec::of(input, Work { columns, functions, filters, schema }, table)
    }

    fn of(input: Plan, work: Work, table: &Arc<Table>) -> GroupsOfWordsExec {
        let partitions = Partitioning::UnknownPartitioning(input.output_partitioning().partition_count());
        let equivalences = EquivalenceProperties::new(Arc::clone(&work.schema));
        let properties = PlanProperties::new(equivalences, partitions, EmissionType::Final, input.boundedness());
        let metrics = ExecutionPlanMetricsSet::new();
        GroupsOfWordsExec { input, work, table: Arc::clone(table), properties: Arc::new(properties), metrics }
    }
}

impl DisplayAs for GroupsOfWordsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let keys: Vec<&str> = self.work.columns.iter().map(|&column| schema.field(column).name().as_str()).collect();
        let functions: Vec<&str> = self.work.functions.iter().map(|function| function.name()).collect();
        write!(f, "GroupsOfWordsExec: gby=[{}], aggr=[{}]", keys.join(", "), functions.join(", "))
    }
}

impl ExecutionPlan for GroupsOfWordsExec {
    one_input!("GroupsOfWordsExec", |this, input| Ok(Arc::new(GroupsOfWordsExec::of(
        input,
        this.work.clone(),
        &this.table
    ))));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let arguments = self.work.functions.iter().flat_map(|function| function.expressions());
        for expression in arguments.chain(self.work.filters.iter().flatten().cloned()) {
            if visit(&expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let groups = Groups::new(&self.work, &context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (table, ready) = (Arc::clone(&self.table), VecDeque::new());
        let state = Some(State { input, groups, table, context, ready, metrics });
        let rows = futures::stream::try_unfold(state, |state| async move {
            let Some(mut state) = state else { return Ok(None) };
            loop {
                if let Some(batch) = state.ready.pop_front() {
                    state.metrics.record_output(batch.num_rows());
                    return Ok(Some((batch, Some(state))));
                }
                let Some(batch) = state.input.next().await else {
                    // Of what there is at the end, the rest waits in `ready`.
                    let mut last = state.emitted()?;
                    return Ok(last.pop_front().map(|batch| {
                        state.metrics.record_output(batch.num_rows());
                        state.ready = last;
                        (batch, Some(state))
                    }));
                };
                if !state.add(&batch?)? {
                    return Ok(None);
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// A partition that is being counted.
struct State {
    input: SendableRecordBatchStream,
    groups: Groups,
    table: Arc<Table>,
    context: Arc<TaskContext>,
    ready: VecDeque<RecordBatch>,
    metrics: BaselineMetrics,
}

impl State {
    /// Takes in some rows; `false` where a word has no number: then the rows that follow are not needed.
    fn add(&mut self, batch: &RecordBatch) -> Result<bool> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let _timer = elapsed.timer();
        if !self.groups.add(batch, &self.table, &self.context)? || self.table.known().has_given_up {
            return Ok(false);
        }
        if self.groups.memory.try_resize(self.groups.size()).is_err() {
            self.ready = self.emitted()?;
            self.groups.memory.free();
        }
        Ok(true)
    }

    /// The groups so far, in batches; nothing is left of them.
    fn emitted(&mut self) -> Result<VecDeque<RecordBatch>> {
        let rows = self.context.session_config().batch_size();
        let Some(all) = self.groups.emit()? else { return Ok(VecDeque::new()) };
        let starts = (0..all.num_rows()).step_by(rows.max(1));
        Ok(starts.map(|from| all.slice(from, rows.min(all.num_rows() - from))).collect())
    }
}

/// The groups of a partition.
struct Groups {
    work: Work,
    arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    keys: Vec<Key>,
    pairs: Pairs,
    /// The words of each row of a batch, and its group.
    of_rows: [Vec<u32>; MOST_KEYS],
    groups: Vec<usize>,
    memory: MemoryReservation,
}

impl Groups {
    fn new(work: &Work, context: &TaskContext) -> Result<Groups> {
        let functions = work.functions.iter();
        Ok(Groups {
            work: work.clone(),
            arguments: functions.clone().map(|function| function.expressions()).collect(),
            accumulators: functions.map(|function| function.create_groups_accumulator()).collect::<Result<_>>()?,
            keys: work.columns.iter().map(|&column| Key { column, ..Key::default() }).collect(),
            pairs: Pairs::default(),
            of_rows: [Vec::new(), Vec::new()],
            groups: Vec::new(),
            memory: MemoryConsumer::new("groups of words").register(context.memory_pool()),
        })
    }

    /// How many there are.
    fn len(&self) -> usize {
        match &self.keys[..] {
            [words] => words.numbers.len(),
            _ => self.pairs.groups.len(),
        }
    }

    fn size(&self) -> usize {
        let states: usize = self.accumulators.iter().map(|accumulator| accumulator.size()).sum();
        states + self.pairs.size() + self.keys.iter().map(Key::size).sum::<usize>()
    }

    fn add(&mut self, batch: &RecordBatch, table: &Table, context: &TaskContext) -> Result<bool> {
        for (key, of_rows) in self.keys.iter_mut().zip(&mut self.of_rows) {
            if !key.add(batch.column(key.column), table, context, of_rows)? {
                return Ok(false);
            }
        }
        let [first, second] = &self.of_rows;
        self.groups.clear();
        match &self.keys[..] {
            [_] => self.groups.extend(first.iter().map(|word| *word as usize)),
            [one, other, ..] => {
                self.pairs.make_room(one.numbers.len(), other.numbers.len());
                self.pairs.add(first, second, &mut self.groups);
            }
            [] => {}
        }
        let all = self.len();
        for (place, accumulator) in self.accumulators.iter_mut().enumerate() {
            let array = |argument: &Arc<dyn PhysicalExpr>| argument.evaluate(batch)?.into_array(batch.num_rows());
            let arguments = self.arguments[place].iter().map(array).collect::<Result<Vec<ArrayRef>>>()?;
            let filter = self.work.filters.get(place).and_then(Option::as_ref).map(array).transpose()?;
            let filter: Option<&BooleanArray> = filter.as_ref().map(|filter| filter.as_boolean());
            accumulator.update_batch(&arguments, &self.groups, filter, all)?;
        }
        Ok(true)
    }

    fn emit(&mut self) -> Result<Option<RecordBatch>> {
        if self.len() == 0 {
            return Ok(None);
        }
        let numbers = |numbers: &mut dyn Iterator<Item = i64>| -> ArrayRef {
            Arc::new(numbers.map(|number| (number != UNSEEN).then_some(number)).collect::<Int64Array>())
        };
        let mut columns: Vec<ArrayRef> = match &self.keys[..] {
            [words] => vec![numbers(&mut words.numbers.iter().copied())],
            keys => (0..keys.len())
                .map(|place| {
                    let word = |pair: &[u32; MOST_KEYS]| keys[place].numbers[pair[place] as usize];
                    numbers(&mut self.pairs.groups.iter().map(word))
                })
                .collect(),
        };
        for accumulator in &mut self.accumulators {
            columns.extend(accumulator.state(EmitTo::All)?);
        }
        for key in &mut self.keys {
            *key = Key { column: key.column, ..Key::default() };
        }
        self.pairs = Pairs::default();
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.work.schema), columns)?))
    }
}

/// The words of a column, in the order in which rows met them first.
#[derive(Default)]
struct Key {
    column: usize,
    /// Their numbers; [`UNSEEN`] is NULL.
    numbers: Vec<i64>,
    /// Their places by number.
    places: HashMap<i64, u32, BuildHasherDefault<Itself>>,
    /// The last dictionaries, with the places of their words.
    seen: Vec<(StringArray, Vec<u32>)>,
}

impl Key {
    fn size(&self) -> usize {
        let seen: usize = self.seen.iter().map(|(_, places)| places.capacity() * size_of::<u32>()).sum();
        seen + self.numbers.capacity() * size_of::<i64>() + self.places.capacity() * size_of::<(i64, u32)>()
    }

    /// The place of the word of each row; `false` where a word has no number.
    fn add(&mut self, column: &ArrayRef, table: &Table, context: &TaskContext, rows: &mut Vec<u32>) -> Result<bool> {
        let dictionary: &DictionaryArray<Int32Type> =
            column.as_dictionary_opt().ok_or_else(|| internal_datafusion_err!("a column of words is none"))?;
        let words = dictionary.values().as_string_opt::<i32>();
        let words = words.ok_or_else(|| internal_datafusion_err!("the words of a dictionary are no texts"))?;
        let Key { numbers, places, seen, .. } = self;
        let mut place_of = |number: i64| {
            *places.entry(number).or_insert_with(|| {
                numbers.push(number);
                numbers.len() as u32 - 1
            })
        };
        let known = match seen.iter().position(|(seen, _)| are_same(seen, words)) {
            Some(place) => place,
            None => {
                if seen.len() == REMEMBERED {
                    seen.remove(0);
                }
                seen.push((words.clone(), vec![NONE; words.len()]));
                seen.len() - 1
            }
        };
        let of_words = &mut seen[known].1;
        let nulls = dictionary.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let mut known = None;
        rows.clear();
        rows.reserve(dictionary.len());
        for (row, &key) in dictionary.keys().values().iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                rows.push(place_of(UNSEEN));
                continue;
            }
            let place = &mut of_words[key as usize];
            if *place == NONE {
                let word = words.value(key as usize);
                let number = number(word);
                if !known.get_or_insert_with(|| table.known()).is_of(number, word, context) {
                    return Ok(false);
                }
                *place = place_of(number);
            }
            rows.push(*place);
        }
        Ok(true)
    }
}

/// The groups of two words.
#[derive(Default)]
struct Pairs {
    /// In their order.
    groups: Vec<[u32; MOST_KEYS]>,
    /// By the first word, then the second: so many bits of the place are its own.
    places: Vec<u32>,
    bits: u32,
    /// Where there would be too many places.
    table: Option<hashbrown::HashMap<[u32; MOST_KEYS], u32>>,
}

impl Pairs {
    fn size(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |table| table.capacity() * size_of::<([u32; MOST_KEYS], u32)>());
        table + self.places.capacity() * size_of::<u32>() + self.groups.capacity() * size_of::<[u32; MOST_KEYS]>()
    }

    /// For so many words of both columns.
    fn make_room(&mut self, first: usize, second: usize) {
        let bits = second.max(1).next_power_of_two().trailing_zeros().max(self.bits);
        if self.table.is_some() || first << bits <= self.places.len() && bits == self.bits {
            return;
        }
        let numbered = |groups: &[[u32; MOST_KEYS]]| groups.iter().copied().zip(0..).collect();
        // Twice as many as are needed, so that growing costs little.
        let many = (first << bits).next_power_of_two();
        if many > MOST_PLACES {
            self.table = Some(numbered(&self.groups));
            self.places = Vec::new();
            return;
        }
        self.bits = bits;
        self.places = vec![NONE; many];
        for (&[one, other], group) in self.groups.iter().zip(0..) {
            self.places[(one as usize) << bits | other as usize] = group;
        }
    }

    /// The groups of rows with these words.
    fn add(&mut self, first: &[u32], second: &[u32], of_rows: &mut Vec<usize>) {
        let groups = &mut self.groups;
        let next = |groups: &mut Vec<[u32; MOST_KEYS]>, pair: [u32; MOST_KEYS]| {
            groups.push(pair);
            groups.len() as u32 - 1
        };
        match &mut self.table {
            Some(table) => of_rows.extend(first.iter().zip(second).map(|(&one, &other)| {
                let pair = [one, other];
                *table.entry(pair).or_insert_with(|| next(groups, pair)) as usize
            })),
            None => of_rows.extend(first.iter().zip(second).map(|(&one, &other)| {
                let group = &mut self.places[(one as usize) << self.bits | other as usize];
                if *group == NONE {
                    *group = next(groups, [one, other]);
                }
                *group as usize
            })),
        }
    }
}
