//! GROUP BY words by their numbers.
//!
//! A column of words is a dictionary: few texts, and a key for each row. DataFusion (55.2) has no grouping of its own for dictionaries
//! (apache/datafusion 7647 and 23993 are about that, and open): it writes each row's text into a row of bytes, hashes and compares that.
//! The rule [`WordsAsNumbers`] groups by a number for each word instead, and puts the words back when the groups are made:
//!
//! ```text
//! AggregateExec: FinalPartitioned, gby=[name]        WordsOfNumbersExec: [name]
//!   AggregateExec: Partial, gby=[name]                 AggregateExec: FinalPartitioned, gby=[name]
//!     scan                                               AggregateExec: Partial, gby=[name]
//!                                                          NumbersOfWordsExec: [name]
//!                                                            scan
//! ```
//! Where keys are one or two words and functions plain ones, [`GroupsOfWordsExec`] stands in the place of the first half and what numbers words.
//! The number is a hash of the word, always the same one, so that the order of groups does not depend on which thread saw a word first.
//! Both operators share a table of the words that have numbers. Where a word finds its number taken, or the table full, numbers will
//! not do: the rows that are left are not read, and since no group is complete before all rows were, [`WordsOfNumbersExec`] can still
//! group by the words themselves ([`Unnumbered`]), from the first row on.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputOrderMode, PlanProperties,
};
use futures::future::ready;
use futures::{StreamExt, TryStreamExt};

use crate::sql::operators::{no_expressions, one_input, row_for_row};
use crate::sql::order::deal::DealExec;
use crate::sql::order::turns::gathered;
use crate::sql::word_groups::{GroupsOfWordsExec, MOST_KEYS, are_plain};
use crate::sql::word_table::{Itself, Known, Table, UNSEEN, are_same, number};
use crate::words::Words;

type Plan = Arc<dyn ExecutionPlan>;

#[cfg(feature = "cluster")]
use crate::sql::elsewhere::has_elsewhere;

/// Whether parts of plans are done by other processes.
#[cfg(not(feature = "cluster"))]
fn has_elsewhere(_: &ConfigOptions) -> bool {
    false
}

/// Dictionaries whose numbers a stream remembers.
const REMEMBERED: usize = 4;

/// Groups by numbers where keys are words. The rule runs before partitions and orders are required, since those of numbers and words differ.
#[derive(Debug)]
pub(super) struct WordsAsNumbers;

impl PhysicalOptimizerRule for WordsAsNumbers {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        // Numbers mean something in one process alone.
        if has_elsewhere(config) {
            return Ok(plan);
        }
        with_numbered_groups(plan)
    }

    fn name(&self) -> &'static str {
        "words_as_numbers"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with groups by numbers where keys are words; both halves of an aggregate are in it.
pub(crate) fn with_numbered_groups(plan: Plan) -> Result<Plan> {
    let numbered = |plan: Plan| match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) => Ok(grouped_by_numbers(aggregate)?.map_or_else(|| Transformed::no(plan), Transformed::yes)),
        None => Ok(Transformed::no(plan)),
    };
    plan.transform_up(numbered).data()
}

fn grouped_by_numbers(last: &AggregateExec) -> Result<Option<Plan>> {
    // A finished plan deals groups out between the halves, by keys that number and word are equal in.
    let dealt = last.input().downcast_ref::<DealExec>().filter(|_| *last.mode() != AggregateMode::Single);
    let below = dealt.map_or_else(|| last.input(), DealExec::input);
    let first = match last.mode() {
        AggregateMode::Single => last,
        AggregateMode::Final | AggregateMode::FinalPartitioned => match below.downcast_ref::<AggregateExec>() {
            Some(first) if *first.mode() == AggregateMode::Partial => first,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    if dealt.is_some_and(|dealt| !dealt.deals_by_columns()) {
        return Ok(None);
    }
    // An input in the order of the keys needs no table of groups, and aggregates with an order of their own ask for one.
    let is_plain = |step: &AggregateExec| {
        step.group_expr().is_single()
            && step.limit_options().is_none()
            && *step.input_order_mode() == InputOrderMode::Linear
            && step.aggr_expr().iter().all(|function| function.order_bys().is_empty())
    };
    if !is_plain(first) || !is_plain(last) {
        return Ok(None);
    }
    let input = first.input();
    let keys = first.group_expr().expr();
    let column = |(expr, _): &(Arc<dyn PhysicalExpr>, String)| {
        let column = expr.downcast_ref::<Column>()?;
        is_of_words(input.schema().field(column.index())).then(|| column.index())
    };
    let columns: Vec<Option<usize>> = keys.iter().map(column).collect();
    if columns.iter().all(Option::is_none) {
        return Ok(None);
    }
    let table = Arc::new(Table::default());
    let numbered: Plan =
        Arc::new(NumbersOfWordsExec::new(Arc::clone(input), columns.iter().flatten().copied().collect(), &table));
    let schema = numbered.schema();
    let mut next = input.schema().fields().len();
    let mut groups = Vec::with_capacity(keys.len() + 1);
    for ((expr, name), column) in keys.iter().zip(&columns) {
        let expr: Arc<dyn PhysicalExpr> = match column {
            Some(_) => {
                next += 1;
                Arc::new(Column::new(schema.field(next - 1).name(), next - 1))
            }
            None => Arc::clone(expr),
        };
        groups.push((expr, name.clone()));
    }
    let groups = PhysicalGroupBy::new_single(groups);
    let step = |of: &AggregateExec, groups: PhysicalGroupBy, input: Plan| {
        let (functions, filters) = (of.aggr_expr().to_vec(), of.filter_expr().to_vec());
        AggregateExec::try_new(*of.mode(), groups, functions, filters, input, Arc::clone(&schema))
    };
    let words: Option<Vec<usize>> = columns.iter().copied().collect();
    let words = words.filter(|words| words.len() <= MOST_KEYS && are_plain(first.aggr_expr()));
    let mut plan: Plan = match words {
        // Few groups come of it, which the second half puts together, also where there was none.
        Some(words) => {
            let (functions, filters) = (first.aggr_expr().to_vec(), first.filter_expr().to_vec());
            let half = |mode, groups, filters, input| {
                AggregateExec::try_new(mode, groups, functions.clone(), filters, input, Arc::clone(&schema))
            };
            let of_half = half(AggregateMode::Partial, groups.clone(), filters.clone(), numbered)?.schema();
            let input = Arc::clone(input);
            let groups_of_words = GroupsOfWordsExec::new(input, words, functions.clone(), filters, of_half, &table);
            match *first.mode() {
                AggregateMode::Single => {
                    let none = vec![None; functions.len()];
                    Arc::new(half(AggregateMode::Final, groups.as_final(), none, Arc::new(groups_of_words))?)
                }
                _ => Arc::new(groups_of_words),
            }
        }
        None => Arc::new(step(first, groups.clone(), numbered)?),
    };
    if let Some(dealt) = dealt {
        plan = Arc::new(dealt.over(plan));
    }
    if *first.mode() == AggregateMode::Partial {
        plan = Arc::new(step(last, groups.as_final(), plan)?);
    }
    let of_words = columns.iter().map(Option::is_some).collect();
    // As texts of their own: DataFusion would write all words of a dictionary anew for each batch.
    let groups = keys.iter().zip(&columns).map(|((expr, name), column)| match column {
        Some(_) => {
            (Arc::new(CastExpr::new(Arc::clone(expr), DataType::Utf8, None)) as Arc<dyn PhysicalExpr>, name.clone())
        }
        None => (Arc::clone(expr), name.clone()),
    });
    let words = Unnumbered {
        groups: PhysicalGroupBy::new_single(groups.collect()),
        functions: first.aggr_expr().to_vec(),
        filters: first.filter_expr().to_vec(),
    };
    Ok(Some(Arc::new(WordsOfNumbersExec::new(plan, of_words, words, last.schema(), &table))))
}

fn is_of_words(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8)
}

/// The properties of an operator with the partitions of its input and nothing else.
fn properties(schema: SchemaRef, input: &Plan) -> Arc<PlanProperties> {
    let partitions = Partitioning::UnknownPartitioning(input.output_partitioning().partition_count());
    let equivalences = EquivalenceProperties::new(schema);
    Arc::new(PlanProperties::new(equivalences, partitions, input.pipeline_behavior(), input.boundedness()))
}

/// Adds a column of numbers for each of some columns of words.
#[derive(Debug)]
pub(super) struct NumbersOfWordsExec {
    input: Plan,
    columns: Vec<usize>,
    table: Arc<Table>,
    properties: Arc<PlanProperties>,
}

impl NumbersOfWordsExec {
    fn new(input: Plan, columns: Vec<usize>, table: &Arc<Table>) -> NumbersOfWordsExec {
        let before = input.schema();
        let mut fields: Vec<Arc<Field>> = before.fields().iter().map(Arc::clone).collect();
        for &column in &columns {
            let field = before.field(column);
            // Rules that look for columns by their names find one of each.
            fields.push(Arc::new(Field::new(
                format!("number_of_{}", field.name()),
                DataType::Int64,
                field.is_nullable(),
            )));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, before.metadata().clone()));
        let properties = properties(schema, &input);
        NumbersOfWordsExec { input, columns, table: Arc::clone(table), properties }
    }
}

impl DisplayAs for NumbersOfWordsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let names: Vec<&str> = self.columns.iter().map(|&column| schema.field(column).name().as_str()).collect();
        write!(f, "NumbersOfWordsExec: [{}]", names.join(", "))
    }
}

impl ExecutionPlan for NumbersOfWordsExec {
    one_input!("NumbersOfWordsExec", |this, input| Ok(Arc::new(NumbersOfWordsExec::new(
        input,
        this.columns.clone(),
        &this.table
    ))));
    no_expressions!();
    row_for_row!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let schema = self.schema();
        let (table, made) = (Arc::clone(&self.table), Arc::clone(&schema));
        let mut columns: Vec<Numbered> =
            self.columns.iter().map(|&column| Numbered { column, seen: Vec::new() }).collect();
        // The stream ends at the first batch with a word that has no number: the rows that follow are not needed then.
        let rows = input.map(move |batch| {
            let numbered = batch.and_then(|batch| with_numbers(&batch, &mut columns, &table, &made, &context));
            numbered.transpose()
        });
        let rows = rows.take_while(|rows| ready(rows.is_some())).filter_map(ready);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// A column of words, and what numbers the words of its last dictionaries have.
struct Numbered {
    column: usize,
    seen: Vec<(StringArray, Vec<i64>)>,
}

/// The batch with the numbers of its words; `None` once a word has none.
fn with_numbers(
    batch: &RecordBatch,
    columns: &mut [Numbered],
    table: &Table,
    schema: &SchemaRef,
    context: &TaskContext,
) -> Result<Option<RecordBatch>> {
    let mut arrays = batch.columns().to_vec();
    for column in columns.iter_mut() {
        let dictionary = batch.column(column.column).as_dictionary_opt::<Int32Type>();
        let dictionary = dictionary.ok_or_else(|| internal_datafusion_err!("a column of words is none"))?;
        match column.numbers(dictionary, table, context)? {
            Some(numbers) => arrays.push(Arc::new(numbers)),
            None => return Ok(None),
        }
    }
    if table.known().has_given_up {
        return Ok(None);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(Some(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?))
}

impl Numbered {
    /// The numbers of the words of a batch; `None` where a word has none.
    fn numbers(
        &mut self,
        dictionary: &DictionaryArray<Int32Type>,
        table: &Table,
        context: &TaskContext,
    ) -> Result<Option<Int64Array>> {
        let words = dictionary.values().as_string_opt::<i32>();
        let words = words.ok_or_else(|| internal_datafusion_err!("the words of a dictionary are no texts"))?;
        let of_words = self.of_words(words);
        let nulls = dictionary.logical_nulls();
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let mut known = None;
        let mut numbers = Vec::with_capacity(dictionary.len());
        for (row, &key) in dictionary.keys().values().iter().enumerate() {
            let key = key as usize;
            let mut number_of_row = of_words.get(key).copied().unwrap_or(UNSEEN);
            if number_of_row == UNSEEN && !is_null(row) {
                let word = words.value(key);
                number_of_row = number(word);
                if !known.get_or_insert_with(|| table.known()).is_of(number_of_row, word, context) {
                    return Ok(None);
                }
                of_words[key] = number_of_row;
            }
            numbers.push(number_of_row);
        }
        Ok(Some(Int64Array::new(numbers.into(), nulls)))
    }

    /// What is known of the words of a dictionary.
    fn of_words(&mut self, words: &StringArray) -> &mut [i64] {
        let place = match self.seen.iter().position(|(seen, _)| are_same(seen, words)) {
            Some(place) => place,
            None => {
                if self.seen.len() == REMEMBERED {
                    self.seen.remove(0);
                }
                self.seen.push((words.clone(), vec![UNSEEN; words.len()]));
                self.seen.len() - 1
            }
        };
        &mut self.seen[place].1
    }
}

/// How to group by the words themselves.
#[derive(Debug, Clone)]
struct Unnumbered {
    groups: PhysicalGroupBy,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
}

impl Unnumbered {
    /// The groups of what the numbers below `plan` are of, read anew.
    fn execute(
        &self,
        plan: &Plan,
        table: &Arc<Table>,
        wanted: &Schema,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut below = Arc::clone(plan);
        let input = loop {
            let numbers = below.downcast_ref::<NumbersOfWordsExec>().map(|numbers| (&numbers.table, &numbers.input));
            let groups = below.downcast_ref::<GroupsOfWordsExec>().map(|groups| (&groups.table, &groups.input));
            if let Some((_, input)) = numbers.or(groups).filter(|(of, _)| Arc::ptr_eq(of, table)) {
                break Arc::clone(input);
            }
            let [input] = below.children()[..] else {
                return internal_err!("the words of a group have no operator that numbers them");
            };
            below = Arc::clone(input);
        };
        let input = gathered(reset_plan_states(input)?)?;
        let (groups, functions, filters) = (self.groups.clone(), self.functions.clone(), self.filters.clone());
        let schema = input.schema();
        let groups = AggregateExec::try_new(AggregateMode::Single, groups, functions, filters, input, schema)?;
        let columns = wanted.fields().iter().enumerate().map(|(place, field)| {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
            let is_text = is_of_words(field) && *groups.schema().field(place).data_type() == DataType::Utf8;
            let column = match is_text {
                true => Arc::new(CastExpr::new(column, field.data_type().clone(), None)),
                false => column,
            };
            (column, field.name().clone())
        });
        let columns: Vec<_> = columns.collect();
        ProjectionExec::try_new(columns, Arc::new(groups))?.execute(0, context)
    }
}

/// Puts words in the place of their numbers.
#[derive(Debug)]
struct WordsOfNumbersExec {
    input: Plan,
    /// By key of the groups.
    of_words: Vec<bool>,
    unnumbered: Unnumbered,
    schema: SchemaRef,
    table: Arc<Table>,
    properties: Arc<PlanProperties>,
}

impl WordsOfNumbersExec {
    fn new(
        input: Plan,
        of_words: Vec<bool>,
        unnumbered: Unnumbered,
        schema: SchemaRef,
        table: &Arc<Table>,
    ) -> WordsOfNumbersExec {
        let properties = properties(Arc::clone(&schema), &input);
        WordsOfNumbersExec { input, of_words, unnumbered, schema, table: Arc::clone(table), properties }
    }
}

impl DisplayAs for WordsOfNumbersExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .zip(&self.of_words)
            .filter(|(_, of_words)| **of_words)
            .map(|(field, _)| field.name().as_str())
            .collect();
        write!(f, "WordsOfNumbersExec: [{}]", names.join(", "))
    }
}

impl ExecutionPlan for WordsOfNumbersExec {
    one_input!("WordsOfNumbersExec", |this, input| Ok(Arc::new(WordsOfNumbersExec::new(
        input,
        this.of_words.clone(),
        this.unnumbered.clone(),
        Arc::clone(&this.schema),
        &this.table
    ))));
    no_expressions!();
    row_for_row!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut numbered = self.input.execute(partition, Arc::clone(&context))?;
        let (table, of_words) = (Arc::clone(&self.table), self.of_words.clone());
        let (input, unnumbered) = (Arc::clone(&self.input), self.unnumbered.clone());
        let (schema, made) = (self.schema(), self.schema());
        let rows = async move {
            // It comes when all rows have been numbered, or when one could not be.
            let first = numbered.next().await;
            let has_given_up = {
                let mut known = table.known();
                let has_given_up = known.has_given_up;
                if has_given_up {
                    known.forget();
                }
                has_given_up
            };
            let empty: SendableRecordBatchStream = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&made)));
            if has_given_up {
                drop(numbered);
                return match partition {
                    0 => unnumbered.execute(&input, &table, &made, context),
                    _ => Ok(empty),
                };
            }
            let schema = Arc::clone(&made);
            let batches = futures::stream::iter(first).chain(numbered);
            let rows = batches.map(move |batch| with_words(&batch?, &of_words, &table, &made));
            Ok::<SendableRecordBatchStream, DataFusionError>(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
        };
        let rows = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

fn with_words(batch: &RecordBatch, of_words: &[bool], table: &Table, schema: &SchemaRef) -> Result<RecordBatch> {
    let known = table.known();
    let mut arrays = Vec::with_capacity(schema.fields().len());
    for (column, array) in batch.columns().iter().enumerate() {
        arrays.push(match of_words.get(column) {
            Some(true) => {
                let numbers = array.as_primitive_opt::<Int64Type>();
                words(numbers.ok_or_else(|| internal_datafusion_err!("groups of words have no numbers"))?, &known)?
            }
            _ => Arc::clone(array),
        });
    }
    drop(known);
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

/// The words of one column.
fn words(numbers: &Int64Array, known: &Known) -> Result<ArrayRef> {
    let mut words = Words::default();
    let mut keys_of: HashMap<i64, i32, BuildHasherDefault<Itself>> = HashMap::default();
    let mut keys = Vec::with_capacity(numbers.len());
    for number in numbers {
        keys.push(match number {
            None => None,
            Some(number) => Some(match keys_of.get(&number) {
                Some(&key) => key,
                None => {
                    let key = words.intern(known.word(number)?);
                    keys_of.insert(number, key);
                    key
                }
            }),
        });
    }
    let values: ArrayRef = match words.is_empty() {
        true => Arc::new(StringArray::from(Vec::<&str>::new())),
        false => words.into_values()?,
    };
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), values)?))
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::MemTable;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    #[cfg(feature = "cluster")]
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;
    use crate::sql;
    #[cfg(feature = "cluster")]
    use crate::sql::elsewhere;
    use crate::sql::tests::answer;

    /// The columns `a` and `b` of words and `n`, in batches whose dictionaries differ.
    fn context(batches: &[[Vec<Option<String>>; 2]], threads: usize, memory: usize) -> SessionContext {
        let words = |name: &str| {
            let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Field::new(name, words, true)
        };
        let schema = Arc::new(Schema::new(vec![words("a"), words("b"), Field::new("n", DataType::Int64, false)]));
        let batch = |[a, b]: &[Vec<Option<String>>; 2]| {
            let of = |words: &[Option<String>]| -> ArrayRef {
                let dictionary: DictionaryArray<Int32Type> = words.iter().map(Option::as_deref).collect();
                Arc::new(dictionary)
            };
            let numbers = Int64Array::from_iter_values(0..a.len() as i64);
            RecordBatch::try_new(Arc::clone(&schema), vec![of(a), of(b), Arc::new(numbers)]).unwrap()
        };
        let batches: Vec<RecordBatch> = batches.iter().map(batch).collect();
        let config = SessionConfig::new().with_target_partitions(threads).with_batch_size(64);
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory))).build_arc().unwrap();
        let builder = SessionStateBuilder::new().with_default_features().with_config(config).with_runtime_env(runtime);
        let context = SessionContext::new_with_state(sql::configure(builder).build());
        context.register_table("t", Arc::new(MemTable::try_new(schema, vec![batches]).unwrap())).unwrap();
        context
    }

    /// Batches of more words than an eighth of 16 MiB holds.
    fn long_words() -> Vec<[Vec<Option<String>>; 2]> {
        let word = |batch: usize, row: usize, step: usize| Some(format!("{:01500}", (batch * 67 + row * step) % 3001));
        (0..30).map(|batch| [1, 7].map(|step| (0..70).map(|row| word(batch, row, step)).collect())).collect()
    }

    /// The lines of an answer, in no order.
    fn rows(answer: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = answer.lines().collect();
        lines.sort_unstable();
        lines
    }

    /// The groups of words are those of the same texts.
    async fn check(context: &SessionContext, questions: usize) {
        const QUESTIONS: [&str; 4] = [
            "SELECT a, count(*) AS c, sum(n) AS s FROM (SELECT {a} AS a, n FROM t) GROUP BY a",
            "SELECT b, a, min(n) AS s FROM (SELECT {a} AS a, {b} AS b, n FROM t) GROUP BY a, b",
            "SELECT a, n % 3 AS m, count(DISTINCT b) AS c FROM (SELECT {a} AS a, {b} AS b, n FROM t) GROUP BY a, m",
            "SELECT count(*), count(a), count(DISTINCT b) FROM (SELECT DISTINCT {a} AS a, {b} AS b FROM t)",
        ];
        for question in &QUESTIONS[..questions] {
            let words = question.replace("{a}", "a").replace("{b}", "b");
            let texts = question.replace("{a}", "CAST(a AS VARCHAR)").replace("{b}", "CAST(b AS VARCHAR)");
            assert_eq!(rows(&answer(context, &words).await), rows(&answer(context, &texts).await), "{question}");
            let plan = answer(context, &format!("EXPLAIN {words}")).await;
            assert!(plan.contains("NumbersOfWordsExec") || plan.contains("GroupsOfWordsExec"), "{plan}");
        }
    }

    #[tokio::test]
    async fn groups_of_words_are_groups_of_their_texts() {
        let word = |row: usize, of: usize| {
            (row % 7 != 3).then(|| if row.is_multiple_of(of) { String::new() } else { format!("w{}", row % of) })
        };
        let batches: Vec<[Vec<Option<String>>; 2]> = (0..20)
            .map(|batch| [5, 11].map(|of| (0..40 + batch).map(|row| word(row * 13 + batch, of)).collect()))
            .collect();
        for threads in [1, 2, 5] {
            check(&context(&batches, threads, 1 << 30), 4).await;
        }
    }

    /// A worker that does all of each plan.
    #[cfg(feature = "cluster")]
    struct Numbering;

    #[cfg(feature = "cluster")]
    #[async_trait::async_trait]
    impl elsewhere::Elsewhere for Numbering {
        fn spread(&self, plan: Plan, _: &dyn datafusion::catalog::Session) -> Result<Plan> {
            with_numbered_groups(plan)
        }

        async fn explained(&self, plan: Plan, _: &dyn datafusion::catalog::Session) -> Result<String> {
            Ok(displayable(with_numbered_groups(plan)?.as_ref()).indent(false).to_string())
        }
    }

    #[cfg(feature = "cluster")]
    #[tokio::test]
    async fn finished_plans_group_by_numbers_as_well() {
        let of = |name: &str, row: usize, of: usize| (row % 7 != 3).then(|| format!("{name}{}", row % of));
        let batches: Vec<[Vec<Option<String>>; 2]> = (0..20)
            .map(|batch| [5, 11].map(|many| (0..60).map(|row| of("w", row * 13 + batch, many)).collect()))
            .collect();
        for threads in [1, 3] {
            let context = context(&batches, threads, 1 << 30);
            elsewhere::ask(&context, Arc::new(Numbering));
            check(&context, 4).await;
        }
        for threads in [1, 3] {
            let context = context(&long_words(), threads, 16 << 20);
            elsewhere::ask(&context, Arc::new(Numbering));
            check(&context, 2).await;
        }
    }

    #[tokio::test]
    async fn groups_are_sorted_by_words_and_not_by_numbers() {
        let words =
            |batch: usize| (0..9).map(|row| Some(format!("w{}", (row * 7 + batch * 5) % 23))).collect::<Vec<_>>();
        let batches: Vec<[Vec<Option<String>>; 2]> = (0..9).map(|batch| [words(batch), words(batch)]).collect();
        for threads in [1, 3] {
            let context = context(&batches, threads, 1 << 30);
            let sorted = answer(&context, "SELECT a FROM (SELECT a, count(*) FROM t GROUP BY a) ORDER BY a").await;
            let lines: Vec<&str> = sorted.lines().filter(|line| line.starts_with("| w")).collect();
            assert!(lines.len() == 23 && lines.is_sorted(), "{sorted}");
        }
    }

    #[tokio::test]
    async fn words_that_the_table_has_no_room_for_are_groups_as_well() {
        let batches = long_words();
        for threads in [1, 3] {
            // An eighth of it has room for a part of the words.
            check(&context(&batches, threads, 16 << 20), 2).await;
        }
    }
}
