//! Fragments: the parts of a plan that other processes can do, and their division.
//!
//! ```text
//! a chain      scan of a store ◀ filters, columns, the first half of an aggregate, sorts of partitions, positions
//!              divided into stretches of the table: the rows come back in its order
//! a function   a relation function over chains of filters and columns, whose runs are those of the scans
//!              divided by run: each run is whole in one part; all runs are in one part where it compares them
//! groups       both halves of an aggregate by run, over a chain or a function
//!              divided by run, if no run has so many of the rows that others would wait for it
//! ```
//! All else stays: joins, windows, the second half of other aggregates, tables in memory, and what is below an estimate
//! that goes by the number of partitions. A fragment is cut only if it comes back equal when it is encoded and decoded here: an encoding
//! that leaves something out would change answers without a word.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NegativeExpr,
    NotExpr, TryCastExpr, UnKnownColumn,
};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use datafusion_distributed::{DistributedCodec, DistributedLeafExec, NetworkCoalesceExec};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, DeduplicatingProtoConverter};
use tq_udfs::relation::OrderOfRuns;
use tq_udfs::relation::exec::RelationExec;

use super::closed::{ClosedExec, OpenedExec, travels};
use super::codec::TqCodec;
use crate::sql::order::deal::DealExec;
use crate::sql::order::in_order::InOrderExec;
use crate::sql::order::position::PositionExec;
use crate::sql::order::sees_order;
use crate::sql::order::turns::gathered;
use crate::sql::order::waiting::Turns;
use crate::sql::own_words::OwnWordsExec;
use crate::store::{Leaf, parts_of_runs};

type Plan = Arc<dyn ExecutionPlan>;

/// How plans are cut.
pub(super) struct Cut<'a> {
    /// The parts of a fragment at most.
    pub(super) tasks: usize,
    /// A fragment that reads fewer bytes stays.
    pub(super) least_bytes: u64,
    pub(super) codec: &'a Arc<TqCodec>,
    pub(super) context: &'a TaskContext,
}

impl Cut<'_> {
    /// The plan with its fragments done elsewhere; `None` where there are none.
    pub(super) fn cut(&self, plan: &Plan) -> Result<Option<Plan>> {
        if depends_on_partitions(plan) {
            return Ok(None);
        }
        if let Some(fragment) = self.fragment(plan)? {
            return Ok(Some(fragment));
        }
        let mut is_cut = false;
        let mut children = Vec::with_capacity(plan.children().len());
        for child in plan.children() {
            let cut = self.cut(child)?;
            is_cut |= cut.is_some();
            children.push(cut.unwrap_or_else(|| Arc::clone(child)));
        }
        if is_cut { Ok(Some(replace_children_if_necessary(Arc::clone(plan), children)?)) } else { Ok(None) }
    }

    fn fragment(&self, plan: &Plan) -> Result<Option<Plan>> {
        let is_one = plan.output_partitioning().partition_count() == 1;
        let Some(division) = division_of(plan, is_one) else { return Ok(None) };
        if !plan.schema().fields().iter().all(|field| travels(field.data_type())) {
            return Ok(None);
        }
        // Sorted rows of a key would come from several workers.
        if !is_one && matches!(plan.output_partitioning(), Partitioning::Hash(..)) && plan.output_ordering().is_some() {
            return Ok(None);
        }
        let mut bytes = 0u64;
        let mut runs: Vec<(String, usize)> = vec![];
        let mut places: HashMap<String, usize> = HashMap::new();
        plan.apply(|node| {
            if let Some(leaf) = Leaf::of(node.as_ref()) {
                bytes = bytes.saturating_add(leaf.bytes());
                for (run, rows) in leaf.runs() {
                    let place = *places.entry(run.clone()).or_insert(runs.len());
                    match runs.get_mut(place) {
                        Some((_, all)) => *all += rows,
                        None => runs.push((run, rows)),
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if runs.is_empty() || bytes < self.least_bytes {
            return Ok(None);
        }
        // One part alone would be done here.
        let tasks = self.tasks.max(2);
        let by_run = match division {
            Division::Stretches => None,
            Division::Runs => {
                if has_runs_by_name(plan) {
                    runs.sort_unstable();
                }
                Some(parts_of_runs(&runs, tasks))
            }
            Division::Groups => match parts_of_runs(&runs, tasks) {
                parts if is_even(&runs, &parts, tasks) => Some(parts),
                // Its first half is divided better.
                _ => return Ok(None),
            },
            Division::Whole => Some(runs.iter().map(|(run, _)| (run.clone(), 0)).collect()),
        };
        let mut active = 1;
        let divided = Arc::clone(plan).transform_up(|node| {
            if let Some(together) = node.downcast_ref::<InOrderExec>() {
                // Below a function, which takes rows in any order.
                return Ok(Transformed::yes(
                    Arc::new(CoalescePartitionsExec::new(Arc::clone(together.input()))) as Plan
                ));
            }
            let Some(leaf) = Leaf::of(node.as_ref()) else { return Ok(Transformed::no(node)) };
            let variants = match &by_run {
                Some(part_of) => leaf.divided_by_run(part_of, tasks)?,
                None => leaf.divided(tasks)?,
            };
            for (number, variant) in variants.iter().enumerate() {
                if Leaf::of(variant.as_ref()).is_some_and(|part| !part.runs().is_empty()) {
                    active = active.max(number + 1);
                }
            }
            Ok(Transformed::yes(Arc::new(DistributedLeafExec::try_new(Arc::clone(&node), variants)?) as Plan))
        });
        let closed: Plan = Arc::new(ClosedExec::new(divided.data()?, active));
        if !self.comes_back(&closed) {
            return Ok(None);
        }
        let coalesced = NetworkCoalesceExec::try_new(closed, tasks, 1)?;
        let opened: Plan = Arc::new(OpenedExec::new(Arc::new(coalesced), plan.properties()));
        Ok(Some(match plan.output_partitioning() {
            _ if is_one => gathered(opened)?,
            // A join above counts on it, unless a column was left away that it could name.
            by_keys @ Partitioning::Hash(keys, _) if keys.iter().all(is_there) => {
                Arc::new(DealExec::new(opened, by_keys.clone(), Turns::Whole))
            }
            _ => opened,
        }))
    }

    /// Whether a part of a fragment is the same after it was encoded and decoded.
    fn comes_back(&self, fragment: &Plan) -> bool {
        let first =
            |node: Plan| match node.downcast_ref::<DistributedLeafExec>().and_then(|leaf| leaf.variants().first()) {
                Some(first) => Ok(Transformed::yes(Arc::clone(first))),
                None => Ok(Transformed::no(node)),
            };
        let there_and_back = || -> Result<(Plan, Plan)> {
            let part = Arc::clone(fragment).transform_up(first).data()?;
            let context = self.codec.knowing(self.context);
            let codec =
                ComposedPhysicalExtensionCodec::new(vec![Arc::new(DistributedCodec), Arc::clone(self.codec) as _]);
            let converter = DeduplicatingProtoConverter::default();
            let bytes = physical_plan_to_bytes_with_proto_converter(Arc::clone(&part), &codec, &converter)?;
            let converter = DeduplicatingProtoConverter::default();
            let back = physical_plan_from_bytes_with_proto_converter(&bytes, &context, &codec, &converter)?;
            Ok((part, back))
        };
        there_and_back().is_ok_and(|(part, back)| is_same(&part, &back))
    }
}

/// Whether an aggregate is an estimate that another number of partitions makes another one.
fn depends_on_partitions(plan: &Plan) -> bool {
    let is_estimate = |function: &Arc<AggregateFunctionExpr>| ESTIMATES.contains(&function.fun().name());
    plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| aggregate.aggr_expr().iter().any(is_estimate))
}

const ESTIMATES: [&str; 3] = ["approx_percentile_cont", "approx_percentile_cont_with_weight", "approx_median"];

/// Whether all columns of an expression are still there.
fn is_there(expression: &Arc<dyn PhysicalExpr>) -> bool {
    !expression.is::<UnKnownColumn>() && expression.children().into_iter().all(is_there)
}

/// How the rows of a fragment are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Division {
    /// Anywhere, in their order.
    Stretches,
    /// By run.
    Runs,
    /// By run, where that is even.
    Groups,
    /// Not at all.
    Whole,
}

/// How a plan may be divided; `None` for one that is no fragment. `is_one`: what is above takes all rows from one partition.
fn division_of(plan: &Plan, is_one: bool) -> Option<Division> {
    // Those that are dealt out by turns come from one, too.
    let is_one = is_one || plan.output_partitioning().partition_count() == 1;
    if Leaf::of(plan.as_ref()).is_some() {
        return Some(Division::Stretches);
    }
    if let Some(relation) = plan.downcast_ref::<RelationExec>() {
        let across_runs = relation.call().function.across_runs();
        return is_call(plan).then_some(if across_runs { Division::Whole } else { Division::Runs });
    }
    if !has_known_expressions(plan) {
        return None;
    }
    if let Some(division) = division_of_groups(plan, is_one) {
        return Some(division);
    }
    let input = match plan.children().as_slice() {
        [input] => division_of(input, is_one)?,
        _ => return None,
    };
    let is_passed = (plan.is::<FilterExec>() || plan.is::<ProjectionExec>()) && plan.fetch().is_none()
        || plan.is::<CooperativeExec>()
        || plan.is::<OwnWordsExec>()
        || is_dealt_by_turns(plan);
    // Sorted or counted rows of one partition are not those of several.
    let of_partitions = !is_one && (plan.is::<SortExec>() || plan.is::<LocalLimitExec>());
    if is_passed || of_partitions {
        return Some(input);
    }
    if plan.is::<PositionExec>() {
        return (!is_one && input == Division::Stretches).then_some(input);
    }
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    if aggregate.limit_options().is_some() || depends_on_partitions(plan) {
        return None;
    }
    match aggregate.mode() {
        AggregateMode::Partial => Some(input),
        _ => None,
    }
}

/// How both halves of an aggregate by run may be divided: no run has groups in two parts.
fn division_of_groups(plan: &Plan, is_one: bool) -> Option<Division> {
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    let is_second = *aggregate.mode() == AggregateMode::FinalPartitioned && aggregate.limit_options().is_none();
    let dealt = aggregate.input();
    let are_dealt_by_keys = dealing(dealt).is_some_and(|dealt| matches!(dealt, Partitioning::Hash(..)));
    let is_by_run = || (0..aggregate.group_expr().expr().len()).any(|column| is_of_scanned_runs(plan, column));
    // The encoding loses the order of `WITHIN GROUP` where the order of rows does not matter (55.2: `AggregateFunctionExpr::order_bys`); the
    // first half does not ask for it.
    let is_of_order = |function: &Arc<AggregateFunctionExpr>| function.fun().supports_within_group_clause();
    let is_whole = !aggregate.aggr_expr().iter().any(is_of_order) && !sees_order(aggregate);
    if !is_second || !are_dealt_by_keys || !is_whole || depends_on_partitions(plan) || !is_by_run() {
        return None;
    }
    match dealt.children().as_slice() {
        [first_half] => match division_of(first_half, is_one)? {
            Division::Stretches => Some(Division::Groups),
            other => Some(other),
        },
        _ => None,
    }
}

/// Whether rows are dealt out to partitions whatever they are.
fn is_dealt_by_turns(plan: &Plan) -> bool {
    dealing(plan).is_some_and(|dealt| matches!(dealt, Partitioning::RoundRobinBatch(_)))
}

fn dealing(plan: &Plan) -> Option<&Partitioning> {
    let deals = plan.is::<DealExec>()
        || plan.downcast_ref::<RepartitionExec>().is_some_and(|repartition| !repartition.preserve_order());
    deals.then(|| plan.output_partitioning())
}

/// Whether no part has so many rows that the others would long have ended.
fn is_even(runs: &[(String, usize)], part_of: &BTreeMap<String, usize>, parts: usize) -> bool {
    let mut rows = vec![0usize; parts];
    for (run, count) in runs {
        if let Some(all) = part_of.get(run).and_then(|part| rows.get_mut(*part)) {
            *all += count;
        }
    }
    let (all, most) = (rows.iter().sum::<usize>(), rows.iter().copied().max().unwrap_or_default());
    // A quarter more than its share.
    most.saturating_mul(4) <= all.div_ceil(parts).saturating_mul(5)
}

/// Whether the runs of a function's answer come in the order of their names: parts then have stretches of that order.
fn has_runs_by_name(plan: &Plan) -> bool {
    match (plan.downcast_ref::<RelationExec>(), plan.children().as_slice()) {
        (Some(relation), _) => relation.call().function.order_of_runs() == OrderOfRuns::Names,
        (None, [input]) => has_runs_by_name(input),
        _ => false,
    }
}

/// Whether it is a call of a function over scans: of one that compares runs, or of one whose runs are those of the scans.
fn is_call(plan: &Plan) -> bool {
    let Some(relation) = plan.downcast_ref::<RelationExec>() else { return false };
    let function = &relation.call().function;
    let inputs = plan.children();
    let has_runs = |input: &&Plan| input.schema().index_of("run").is_ok_and(|run| is_of_scanned_runs(input, run));
    !inputs.is_empty()
        && relation.options().iter().all(|option| option.is::<Literal>())
        && inputs.iter().all(has_runs)
        && (function.across_runs() || function.runs_from() == "run")
}

/// Whether the plan gives rows of scans, and in this column the run that they are of.
fn is_of_scanned_runs(plan: &Plan, run: usize) -> bool {
    if let Some(leaf) = Leaf::of(plan.as_ref()) {
        return leaf.is_run(run);
    }
    if let Some(relation) = plan.downcast_ref::<RelationExec>() {
        return run == 0 && !relation.call().function.across_runs() && is_call(plan);
    }
    if plan.fetch().is_some() || !has_known_expressions(plan) {
        return false;
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let of_input = groups.is_single().then(|| groups.expr().get(run)).flatten();
        let column = of_input.and_then(|(column, _)| column_of(column));
        return column.is_some_and(|run| is_of_scanned_runs(aggregate.input(), run));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let of_input = projection.expr().get(run).and_then(|column| column_of(&column.expr));
        return of_input.is_some_and(|run| is_of_scanned_runs(projection.input(), run));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let of_input = match filter.projection() {
            Some(projection) => projection.get(run).copied(),
            None => Some(run),
        };
        return of_input.is_some_and(|run| is_of_scanned_runs(filter.input(), run));
    }
    let hands_on = plan.is::<CooperativeExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<InOrderExec>()
        || plan.is::<OwnWordsExec>()
        || dealing(plan).is_some();
    match plan.children().as_slice() {
        [input] => hands_on && is_of_scanned_runs(input, run),
        _ => false,
    }
}

/// The column of texts that an expression is, as texts of whatever kind: as numbers, two runs could be one (`1` and `01`).
fn column_of(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let is_text = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    match expression.downcast_ref::<CastExpr>() {
        Some(cast) => column_of(cast.expr()).filter(|_| is_text(cast.cast_type())),
        None => expression.downcast_ref::<Column>().map(Column::index),
    }
}

/// Whether all expressions of an operator say by themselves what they compute: a filter that changes while a join runs, or the answer of a
/// subquery, is known in one process alone.
fn has_known_expressions(plan: &Plan) -> bool {
    expressions_of(plan).is_some_and(|expressions| expressions.iter().all(is_known))
}

/// The expressions of an operator. A sort with a limit has one more, of its own: which rows cannot be among the first any more. It makes a
/// new one when it is decoded, and where it was handed to an operator below, that one is not known.
fn expressions_of(plan: &Plan) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Some(sort.expr().iter().map(|key| Arc::clone(&key.expr)).collect());
    }
    let mut all = vec![];
    let visited = plan.apply_expressions(&mut |expression| {
        all.push(Arc::clone(expression));
        Ok(TreeNodeRecursion::Continue)
    });
    visited.is_ok().then_some(all)
}

fn is_known(expression: &Arc<dyn PhysicalExpr>) -> bool {
    let of_function = |call: &ScalarFunctionExpr| call.fun().signature().volatility != Volatility::Volatile;
    let is_known_itself = expression.is::<Column>()
        || expression.is::<Literal>()
        || expression.is::<BinaryExpr>()
        || expression.is::<CastExpr>()
        || expression.is::<TryCastExpr>()
        || expression.is::<IsNullExpr>()
        || expression.is::<IsNotNullExpr>()
        || expression.is::<NotExpr>()
        || expression.is::<NegativeExpr>()
        || expression.is::<LikeExpr>()
        || expression.is::<InListExpr>()
        || expression.is::<CaseExpr>()
        || expression.downcast_ref::<ScalarFunctionExpr>().is_some_and(of_function);
    is_known_itself && expression.children().into_iter().all(is_known)
}

/// Whether two plans do the same. That a column holds times (metadata of its field) is not in the encoding of a call: nothing that computes
/// asks for it, and where rows come back they get the schema of the plan that stood there.
fn is_same(one: &Plan, other: &Plan) -> bool {
    let shown = |plan: &Plan| DisplayableExecutionPlan::new(plan.as_ref()).one_line().to_string();
    let (fields, others) = (one.schema(), other.schema());
    one.name() == other.name()
        && fields.fields().len() == others.fields().len()
        && fields.fields().iter().zip(others.fields()).all(|(one, other)| is_same_field(one, other))
        && one.output_partitioning().partition_count() == other.output_partitioning().partition_count()
        && shown(one) == shown(other)
        && has_same_expressions(one, other)
        && has_same_aggregates(one, other)
        && one.children().len() == other.children().len()
        && one.children().into_iter().zip(other.children()).all(|(one, other)| is_same(one, other))
}

fn is_same_field(one: &Field, other: &Field) -> bool {
    one.name() == other.name() && one.data_type() == other.data_type() && one.is_nullable() == other.is_nullable()
}

fn has_same_expressions(one: &Plan, other: &Plan) -> bool {
    match (expressions_of(one), expressions_of(other)) {
        (Some(ours), Some(theirs)) => are_same(ours.iter(), theirs.iter()),
        _ => false,
    }
}

fn are_same<'e>(
    ours: impl ExactSizeIterator<Item = &'e Arc<dyn PhysicalExpr>>,
    theirs: impl ExactSizeIterator<Item = &'e Arc<dyn PhysicalExpr>>,
) -> bool {
    ours.len() == theirs.len() && ours.zip(theirs).all(|(one, other)| is_same_expression(one, other))
}

fn is_same_expression(one: &Arc<dyn PhysicalExpr>, other: &Arc<dyn PhysicalExpr>) -> bool {
    let ours = one.children();
    if !are_same(ours.iter().copied(), other.children().into_iter()) {
        return false;
    }
    if let (Some(one), Some(other)) = (one.downcast_ref::<Literal>(), other.downcast_ref::<Literal>()) {
        return one.value() == other.value();
    }
    match (one.downcast_ref::<ScalarFunctionExpr>(), other.downcast_ref::<ScalarFunctionExpr>()) {
        (Some(one), Some(other)) => is_same_call(one, other),
        (None, None) if ours.is_empty() => one == other,
        (None, None) => {
            let ours = ours.into_iter().map(Arc::clone).collect();
            Arc::clone(other).with_new_children(ours).is_ok_and(|other| *one == other)
        }
        _ => false,
    }
}

/// Whether two calls are the same, but for their arguments.
fn is_same_call(one: &ScalarFunctionExpr, other: &ScalarFunctionExpr) -> bool {
    let options = |call: &ScalarFunctionExpr| -> BTreeMap<String, Option<String>> {
        call.config_options().entries().into_iter().map(|entry| (entry.key, entry.value)).collect()
    };
    one.name() == other.name()
        && one.fun() == other.fun()
        && one.return_type() == other.return_type()
        && one.nullable() == other.nullable()
        && (std::ptr::eq(one.config_options(), other.config_options()) || options(one) == options(other))
}

fn has_same_aggregates(one: &Plan, other: &Plan) -> bool {
    let (one, other) = match (one.downcast_ref::<AggregateExec>(), other.downcast_ref::<AggregateExec>()) {
        (Some(one), Some(other)) => (one, other),
        (None, None) => return true,
        _ => return false,
    };
    let is_same_key = |(one, other): (&PhysicalSortExpr, &PhysicalSortExpr)| {
        one.options == other.options && is_same_expression(&one.expr, &other.expr)
    };
    let is_same = |(one, other): (&Arc<AggregateFunctionExpr>, &Arc<AggregateFunctionExpr>)| {
        one.name() == other.name()
            && one.fun() == other.fun()
            && is_same_field(&one.field(), &other.field())
            && are_same(one.expressions().iter(), other.expressions().iter())
            && one.is_distinct() == other.is_distinct()
            && one.ignore_nulls() == other.ignore_nulls()
            && one.is_reversed() == other.is_reversed()
            && one.order_bys().len() == other.order_bys().len()
            && one.order_bys().iter().zip(other.order_bys()).all(is_same_key)
    };
    let is_same_filter = |(one, other): (&Option<_>, &Option<_>)| match (one, other) {
        (Some(one), Some(other)) => is_same_expression(one, other),
        (None, None) => true,
        _ => false,
    };
    one.aggr_expr().len() == other.aggr_expr().len()
        && one.aggr_expr().iter().zip(other.aggr_expr()).all(is_same)
        && one.filter_expr().len() == other.filter_expr().len()
        && one.filter_expr().iter().zip(other.filter_expr()).all(is_same_filter)
        && one.input_order_mode() == other.input_order_mode()
}
