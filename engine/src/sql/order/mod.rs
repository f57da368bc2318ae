//! The same rows in the same order each time: rows come as they stand in the tables unless an operator forbids it.
//!
//! DataFusion puts partitions together as their batches arrive, so that `SELECT * FROM tasks` came in as many orders as threads
//! can race. Rules mend that in the physical plan:
//!
//! 1. [`ScansInOrder`], before DataFusion's rules: a table in memory is cut into as many partitions as there are threads, one
//!    after the other. DataFusion would deal its batches out by their size.
//! 2. [`RowsInOrder`], after DataFusion has distributed the work: where partitions are put together, an operator of ours takes
//!    them in turns ([`mod@in_order`]); where rows are dealt out to partitions by a hash, the batches of several inputs arrive in
//!    turns ([`deal`]); `ORDER BY … LIMIT` has the row's position as its last key ([`position`]); ties of a merge go to the
//!    earlier partition ([`TiesInOrder`]). Dealing batches out by turns for more parallelism is left away where the order of rows would be lost by it.
//!
//! ```text
//! scan, filter, projection,       as the table                 GROUP BY, DISTINCT, join with     not as the table, but the
//! UNION ALL, LIMIT, join with     (one branch after the        two large sides                   same on each run with so
//! one small side                  other)                                                         many threads
//! ```
//!
//! No order depends on which thread is faster. It depends on the plan, the batches of the tables and the number of threads.

pub(crate) mod deal;
pub(crate) mod in_order;
mod lanes;
mod merge;
pub(crate) mod position;
#[cfg(test)]
mod tests;
pub(crate) mod turns;
pub(crate) mod waiting;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use tq_udfs::relation::exec::RelationExec;

use deal::DealExec;
use in_order::InOrderExec;
use merge::MergeExec;
use turns::{gathered, turns_of};

use crate::sql::charged::ChargeWindows;
use crate::sql::large_joins::{self, LargeJoins};
use crate::sql::long_constants::LongConstants;
use crate::sql::numbered::{NumbersOfWordsExec, WordsAsNumbers};
use crate::sql::offsets::{self, HideOffsets, ShowOffsets};
use crate::sql::omitted_rules;
use crate::sql::own_words::SortsOfOwnWords;
use crate::sql::unproven::ForgetUnproven;
use crate::sql::word_groups::GroupsOfWordsExec;
use crate::store;

/// The rule of DataFusion before which rows are brought into order: what follows looks at the finished plan.
const BEFORE: &str = "EnsureCooperative";

/// DataFusion's rules with ours among them.
pub(super) fn physical_rules(memory: &MemoryLimit) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<_> = PhysicalOptimizer::new().rules.into_iter().map(omitted_rules::instead_of).collect();
    let place = rules.iter().position(|rule| rule.name() == BEFORE).unwrap_or(rules.len());
    rules.insert(place, Arc::new(RowsInOrder));
    if let Some(place) = rules.iter().position(|rule| rule.name() == offsets::SORT_PLACING_RULE) {
        rules.insert(place + 1, Arc::new(ShowOffsets));
        rules.insert(place, Arc::new(HideOffsets));
        rules.insert(place, Arc::new(ForgetUnproven));
        rules.insert(place, Arc::new(WordsAsNumbers));
    }
    if let Some(place) = rules.iter().position(|rule| rule.name() == large_joins::AFTER) {
        rules.insert(place + 1, Arc::new(LargeJoins::within(memory)));
    }
    rules.insert(0, Arc::new(ScansInOrder));
    rules.push(Arc::new(LongConstants));
    rules.push(Arc::new(ChargeWindows));
    rules.push(Arc::new(SortsOfOwnWords));
    rules.push(Arc::new(TiesInOrder));
    rules
}

/// Has ties of a merge go to the earlier partition. The last rule: others know DataFusion's merge.
#[derive(Debug)]
struct TiesInOrder;

impl PhysicalOptimizerRule for TiesInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else { return Ok(Transformed::no(plan)) };
            Ok(Transformed::yes(Arc::new(MergeExec::new(merge, Arc::clone(merge.input())))))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "TiesInOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Cuts tables in memory into partitions that follow each other.
#[derive(Debug)]
struct ScansInOrder;

impl PhysicalOptimizerRule for ScansInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        cut_scans(plan, config.execution.target_partitions)
    }

    fn name(&self) -> &'static str {
        "ScansInOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn cut_scans(plan: Arc<dyn ExecutionPlan>, wanted: usize) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(memory) = plan.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref()) {
        return Ok(cut(memory, wanted)?.unwrap_or(plan));
    }
    let children = plan.children().into_iter().map(|child| cut_scans(Arc::clone(child), wanted));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// The same rows in `wanted` partitions; `None` where there are as many already, too few batches, or an order to keep.
fn cut(scan: &MemorySourceConfig, wanted: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let batches: Vec<_> = scan.partitions().iter().flatten().cloned().collect();
    if scan.partitions().len() >= wanted || batches.len() < wanted || !scan.sort_information().is_empty() {
        return Ok(None);
    }
    let share = |part: usize| batches[part * batches.len() / wanted..(part + 1) * batches.len() / wanted].to_vec();
    let partitions: Vec<_> = (0..wanted).map(share).collect();
    let cut = MemorySourceConfig::try_new(&partitions, scan.original_schema(), scan.projection().clone())?;
    let cut = cut.with_show_sizes(scan.show_sizes());
    let cut = cut.with_limit(datafusion::datasource::source::DataSource::fetch(scan));
    Ok(Some(DataSourceExec::from_data_source(cut)))
}

/// Replaces operators that take rows as they arrive.
#[derive(Debug)]
struct RowsInOrder;

impl PhysicalOptimizerRule for RowsInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        gathered(in_order(plan, true)?)
    }

    fn name(&self) -> &'static str {
        "RowsInOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with operators that keep the order of rows. `is_seen`: whether the order of this plan's rows, as that of a table,
/// can be seen in the answer; otherwise it need only be the same each time.
fn in_order(plan: Arc<dyn ExecutionPlan>, is_seen: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let seen = seen_below(&plan, is_seen);
    let children = plan.children().into_iter().enumerate().map(|(at, child)| {
        let child = in_order(Arc::clone(child), seen)?;
        // The subqueries of a plan are executed by themselves.
        if plan.is::<ScalarSubqueryExec>() && at > 0 { gathered(child) } else { Ok(child) }
    });
    let mut children = children.collect::<Result<Vec<_>>>()?;
    if emits_at_the_end(&plan)
        && let [_, probe] = children.as_mut_slice()
    {
        // The rows of the left side that found no partner come from the partition that ends last: there must be one only.
        *probe = gathered(Arc::clone(probe))?;
    }
    if let Some(relation) = plan.downcast_ref::<RelationExec>() {
        // Its functions give the same answer whatever the order of rows that have a number, and it reads the partitions itself.
        if has_numbers(relation) {
            children = relation
                .children()
                .into_iter()
                .zip(children)
                .map(|(before, after)| as_they_arrive(before, after))
                .collect();
        }
        if !is_seen && has_numbers(relation) {
            return lanes::call_of(relation, children);
        }
    }
    if (plan.is::<AggregateExec>() || plan.is::<GroupsOfWordsExec>()) && !seen {
        children = children.into_iter().map(in_any_order).collect::<Result<_>>()?;
    }
    let plan = replace_children_if_necessary(plan, children)?;
    if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
        let input = Arc::clone(coalesce.input());
        let turns = turns_of(&input);
        return Ok(Arc::new(InOrderExec::new(input, turns, coalesce.fetch())));
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return dealt(&plan, repartition, is_seen);
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Ok(position::stable(sort)?.unwrap_or(plan));
    }
    Ok(plan)
}

/// Whether the order of the rows that go into an operator can be seen in the answer.
fn seen_below(plan: &Arc<dyn ExecutionPlan>, is_seen: bool) -> bool {
    // Equal rows of the first ones are those that came first.
    if plan.is::<LocalLimitExec>() || plan.is::<GlobalLimitExec>() || plan.fetch().is_some() {
        return true;
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return sees_order(aggregate);
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        // Rows that are dealt out by turns lose their order here, unless `dealt` leaves that away.
        return is_seen && matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
    }
    if let Some(relation) = plan.downcast_ref::<RelationExec>() {
        return !has_numbers(relation);
    }
    if plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>() || plan.is::<GroupsOfWordsExec>() {
        return false;
    }
    is_seen
}

/// Whether the rows of all inputs have what settles their ties. Of tasks without the column `task`, the first one counts as the smaller.
fn has_numbers(relation: &RelationExec) -> bool {
    let specs = relation.call().function.inputs().into_iter();
    specs.zip(relation.children()).all(|(spec, input)| !spec.goes_by_place(&input.schema()))
}

/// The plan of rows whose order does not matter: scans of a store need not bring them into the order of the trace. Looks for scans below
/// operators that treat each row by itself.
fn in_any_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = store::in_any_order(plan.as_ref()) {
        return Ok(scan);
    }
    let passes = plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<NumbersOfWordsExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<UnionExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<DealExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<InOrderExec>();
    if !passes || plan.fetch().is_some() {
        return Ok(plan);
    }
    let children = plan.children().into_iter().map(|child| in_any_order(Arc::clone(child)));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// Aggregates whose value depends on the order of rows.
const SEES_ORDER: [&str; 7] =
    ["array_agg", "string_agg", "first_value", "last_value", "nth_value", "any_value", "approx_percentile_cont"];

/// Whether the values of an aggregate depend on the order of rows.
pub(crate) fn sees_order(aggregate: &AggregateExec) -> bool {
    aggregate.aggr_expr().iter().any(|function| SEES_ORDER.contains(&function.fun().name()))
}

/// Whether rows of the left side are given when the right side has ended, by one of its partitions for all.
fn emits_at_the_end(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let of_left = |join: &JoinType| {
        use JoinType::{Full, Left, LeftAnti, LeftMark, LeftSemi};
        matches!(join, Left | Full | LeftSemi | LeftAnti | LeftMark)
    };
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return *join.partition_mode() == PartitionMode::CollectLeft && of_left(join.join_type());
    }
    plan.downcast_ref::<NestedLoopJoinExec>().is_some_and(|join| of_left(join.join_type()))
}

fn as_they_arrive(before: &Arc<dyn ExecutionPlan>, after: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match (before.is::<CoalescePartitionsExec>(), after.downcast_ref::<InOrderExec>()) {
        (true, Some(gathered)) if gathered.fetch().is_none() => {
            Arc::new(CoalescePartitionsExec::new(Arc::clone(gathered.input())))
        }
        _ => after,
    }
}

fn dealt(
    plan: &Arc<dyn ExecutionPlan>,
    repartition: &RepartitionExec,
    is_seen: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let input = repartition.input();
    let inputs = input.output_partitioning().partition_count();
    Ok(match repartition.partitioning() {
        Partitioning::RoundRobinBatch(_) if is_seen => Arc::clone(input),
        Partitioning::RoundRobinBatch(_) | Partitioning::Hash(..) if inputs > 1 && !repartition.preserve_order() => {
            let turns = turns_of(input);
            Arc::new(DealExec::new(Arc::clone(input), repartition.partitioning().clone(), turns))
        }
        // One input arrives in its own order.
        _ => Arc::clone(plan),
    })
}
