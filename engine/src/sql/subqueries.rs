//! Subqueries within expressions: what SQL says of them where DataFusion (55.2) answers otherwise or not at all.
//!
//! ```text
//! (SELECT task …)                    may have no row and then is NULL, also if no task ever is         nullable(…)
//! EXISTS (SELECT max(y) …)           holds: there is one row; HAVING, LIMIT and OFFSET are looked at
//! x IN (SELECT count(*) …)           x = (SELECT count(*) …)
//! CASE … THEN (SELECT task …)        its rows are counted where it is chosen: only_row((SELECT first_value(task) …), (SELECT count(*) …))
//! x IN (SELECT c …), x > ALL (…)     in any clause, and NULL where SQL says so:
//!
//!   CASE WHEN some row has x = c THEN true
//!        WHEN x IS NULL THEN (NULL if there is a row, else false)
//!        WHEN some row has c IS NULL THEN NULL ELSE false END
//! ```
//! "Some row has" is a mark join below the node whose expression asks. DataFusion makes such joins for WHERE only, and its
//! marks know true and false: there it keeps what does not tell NULL from false (`WHERE x IN (…)`, `EXISTS`).
//!
//! Subqueries that speak of the query around them stay with DataFusion where it joins them rightly ([`dependent::is_plain`]),
//! and are unnested here otherwise.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::as_int64_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, internal_err, plan_err};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, replace_col};
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, ColumnarValue, Distinct, DistinctOn, Expr, ExprSchemable, FetchType, Filter, Join, JoinType,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    SkipType, Sort, Subquery, Values, Volatility, lit, when,
};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use crate::sql::dependent::{self, Asked, Unnested, Unnesting, equal, outer_columns};
use crate::sql::nullable::nullable;

/// The name of the column that a subquery answers, in our joins.
const VALUE: &str = "value";

/// Rewrites the subqueries of a plan that was just made of a statement.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut rewriter = Rewriter { joins: 0, changed: false };
    plan.transform_up_with_subqueries(|plan| rewriter.node(plan)).data()
}

struct Rewriter {
    /// How many joins were made.
    joins: usize,
    /// Whether a node was rewritten: those above it keep what they knew of its columns otherwise, as that they are never NULL.
    changed: bool,
}

impl Rewriter {
    fn node(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let plan = if self.changed { plan.recompute_schema()? } else { plan };
        let rewritten = self.rewritten(plan)?;
        self.changed |= rewritten.transformed;
        Ok(rewritten)
    }

    fn rewritten(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let plan = match plan {
            LogicalPlan::Join(join) => match self.lateral(&join)? {
                Some(joined) => return Ok(Transformed::yes(joined)),
                None => LogicalPlan::Join(join),
            },
            // A LATERAL that needs none ([`laterals`](super::laterals)).
            LogicalPlan::SubqueryAlias(mut alias) => match alias.input.as_ref() {
                LogicalPlan::Subquery(subquery) if !is_correlated(subquery) => {
                    alias.input = Arc::clone(&subquery.subquery);
                    return Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)));
                }
                _ => return Ok(Transformed::no(LogicalPlan::SubqueryAlias(alias))),
            },
            other => other,
        };
        if !has_subquery(&plan)? {
            return Ok(Transformed::no(plan));
        }
        if let LogicalPlan::Values(values) = &plan {
            return self.rows(values).map(Transformed::yes);
        }
        if let LogicalPlan::Distinct(Distinct::On(distinct)) = &plan {
            return self.distinct_on(distinct).map(Transformed::yes);
        }
        if let LogicalPlan::Sort(sort) = &plan
            && let Some(input) = with_columns_of_sort(sort)?
        {
            let columns = sort.input.schema().columns();
            let sort = LogicalPlan::Sort(Sort { input: Arc::new(input), ..sort.clone() });
            return only(self.node(sort)?.data, columns).map(Transformed::yes);
        }
        let names = NamePreserver::new(&plan);
        let plan = plan
            .map_expressions(|expr| {
                let name = names.save(&expr);
                let guarded = expr.transform_down(guarded)?.data;
                Ok(guarded.transform_up(simple)?.update_data(|expr| name.restore(expr)))
            })?
            .data;
        let rewritten = match plan {
            LogicalPlan::Filter(filter) => self.filter(filter)?,
            LogicalPlan::Join(join) => self.join(join)?,
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
                self.expressions(plan)?
            }
            other => other,
        };
        rewritten.recompute_schema().map(Transformed::yes)
    }

    /// `VALUES (1), ((SELECT …))`: a row with a subquery is one of a projection.
    fn rows(&mut self, Values { schema, values }: &Values) -> Result<LogicalPlan> {
        let asks = |row: &Vec<Expr>| -> Result<bool> {
            let mut found = false;
            for value in row {
                found |= value.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_)) || is_question(expr)))?;
            }
            Ok(found)
        };
        let mut branches: Vec<LogicalPlan> = vec![];
        let mut plain = vec![];
        let of_plain = |rows: &mut Vec<Vec<Expr>>| {
            let values = std::mem::take(rows);
            (!values.is_empty()).then(|| LogicalPlan::Values(Values { schema: Arc::clone(schema), values }))
        };
        for row in values {
            if !asks(row)? {
                plain.push(row.clone());
                continue;
            }
            branches.extend(of_plain(&mut plain));
            let named = row.iter().zip(schema.fields()).map(|(value, field)| value.clone().alias(field.name()));
            let row = LogicalPlanBuilder::empty(true).project(named)?.build()?;
            branches.push(self.node(row)?.data);
        }
        branches.extend(of_plain(&mut plain));
        let mut branches = branches.into_iter();
        let Some(first) = branches.next() else { return internal_err!("VALUES without rows") };
        branches.try_fold(first, |all, branch| LogicalPlanBuilder::from(all).union(branch)?.build())
    }

    /// `SELECT DISTINCT ON (a) (SELECT …) …`: subqueries stand in a projection, and what is distinct are its columns.
    fn distinct_on(&mut self, distinct: &DistinctOn) -> Result<LogicalPlan> {
        let mut values: Vec<Expr> = vec![];
        let mut column = |expr: &Expr| {
            let value = expr.clone().unalias();
            let at = values.iter().position(|known| *known == value).unwrap_or_else(|| {
                values.push(value);
                values.len() - 1
            });
            Expr::Column(Column::from_name(format!("__distinct_{at}")))
        };
        let on = distinct.on_expr.iter().map(&mut column).collect();
        let named = distinct.select_expr.iter().zip(distinct.schema.iter());
        let columns =
            named.map(|(expr, (relation, field))| column(expr).alias_qualified(relation.cloned(), field.name()));
        let columns = columns.collect();
        let order = distinct.sort_expr.iter().flatten();
        let order: Vec<_> = order.map(|sort| SortExpr { expr: column(&sort.expr), ..sort.clone() }).collect();
        let named = values.into_iter().enumerate().map(|(at, value)| value.alias(format!("__distinct_{at}"))).collect();
        let below = LogicalPlan::Projection(Projection::try_new(named, Arc::clone(&distinct.input))?);
        let below = Arc::new(self.node(below)?.data);
        let order = distinct.sort_expr.is_some().then_some(order);
        Ok(LogicalPlan::Distinct(Distinct::On(DistinctOn::try_new(on, columns, order, below)?)))
    }

    /// A node over one input, of whose expressions nothing is known.
    fn expressions(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let [input] = plan.inputs()[..] else { return Ok(plan) };
        let mut below = Below::new(input.clone(), &mut self.joins);
        let takes_scalars = matches!(plan, LogicalPlan::Projection(_));
        let names = NamePreserver::new(&plan);
        let mut expressions = vec![];
        let mut changed = false;
        for expr in plan.expressions() {
            let name = names.save(&expr);
            let valued = below.values(expr, takes_scalars)?;
            changed |= valued.transformed;
            expressions.push(name.restore(valued.data));
        }
        if !changed {
            return Ok(plan);
        }
        let columns = plan.schema().columns();
        let below = below.plan;
        let plan = plan.with_new_exprs(expressions, vec![below])?;
        only(plan, columns)
    }

    /// What holds for NULL as for false stays with DataFusion, which makes semi joins of it.
    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let columns = filter.input.schema().columns();
        let mut below = Below::new(Arc::unwrap_or_clone(filter.input), &mut self.joins);
        let mut conditions = vec![];
        for condition in split_conjunction_owned(filter.predicate) {
            if is_plain(&condition, &below.plan)? {
                conditions.push(condition);
            } else {
                below.tells_null = !is_positive(&condition, below.plan.schema())?;
                conditions.push(below.values(condition, true)?.data);
            }
        }
        let Some(predicate) = conjunction(conditions) else { return Ok(below.plan) };
        only(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(below.plan))?), columns)
    }

    /// `left JOIN LATERAL right`, whose right side speaks of the left one: joined on what it speaks of.
    fn lateral(&mut self, join: &Join) -> Result<Option<LogicalPlan>> {
        if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(None);
        }
        let (inner, alias) = match join.right.as_ref() {
            LogicalPlan::Subquery(subquery) => (&subquery.subquery, None),
            LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
                LogicalPlan::Subquery(subquery) => (&subquery.subquery, Some(alias.alias.clone())),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let outer = dependent::spoken_of(inner, join.left.schema())?;
        if outer.is_empty() {
            return Ok(None);
        }
        let unnested = Unnesting::new(outer.clone(), &join.left, &mut self.joins)?.unnest(inner)?;
        let Unnested { plan: right, domain } = unnested;
        // Only its own columns and the domain, under the name that it has.
        let own = inner.schema().columns().into_iter().chain(domain.iter().cloned()).map(Expr::Column);
        let right = LogicalPlanBuilder::from(right).project(own)?;
        let (right, domain) = match alias {
            None => (right.build()?, domain),
            Some(alias) => {
                let named = domain.into_iter().map(|column| Column::new(Some(alias.clone()), column.name)).collect();
                (right.alias(alias)?.build()?, named)
            }
        };
        let keys = join.on.iter().map(|(left, right)| Expr::eq(left.clone(), right.clone()));
        let conditions = keys.chain(join.filter.clone()).chain(equal(&outer, &domain)).collect::<Vec<_>>();
        let columns = join.schema.columns();
        let joined =
            LogicalPlanBuilder::from(join.left.as_ref().clone()).join_on(right, join.join_type, conditions)?.build()?;
        only(joined, columns).map(Some)
    }

    /// Subqueries in conditions of a join are answered on the side of which they speak.
    fn join(&mut self, join: Join) -> Result<LogicalPlan> {
        let Some(condition) = join.filter.clone() else { return Ok(LogicalPlan::Join(join)) };
        let columns = join.schema.columns();
        // A semi join shows one side only.
        let both = merge_schema(&[&join.left, &join.right]);
        let (mut left, mut right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
        let mut conditions = vec![];
        let mut of_both = vec![];
        for condition in split_conjunction_owned(condition) {
            // DataFusion joins correlated values for projections and filters only.
            let is_asked = |condition: &Expr| -> Result<bool> {
                let has_value = condition
                    .exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(subquery) if is_correlated(subquery))))?;
                Ok(has_value || asks(condition, &both)?)
            };
            if !is_asked(&condition)? {
                conditions.push(condition);
                continue;
            }
            let condition = condition.transform_down(|expr| {
                if !matches!(expr, Expr::ScalarSubquery(_)) && !is_question(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let mut spoken = spoken_of(&expr)?;
                spoken.retain(|column| both.has_column(column));
                for side in [&mut left, &mut right] {
                    if spoken.iter().all(|column| side.schema().has_column(column)) {
                        let mut below = Below::new(std::mem::take(side), &mut self.joins);
                        let value = below.values(expr, false)?.data;
                        *side = below.plan;
                        return Ok(Transformed::new(value, true, TreeNodeRecursion::Jump));
                    }
                }
                Ok(Transformed::no(expr))
            });
            let condition = condition.data()?;
            if is_asked(&condition)? { &mut of_both } else { &mut conditions }.push(condition);
        }
        let keys = join.on.iter().map(|(left, right)| Expr::eq(left.clone(), right.clone()));
        conditions.extend(keys);
        let Some(of_both) = conjunction(of_both) else {
            let plan = LogicalPlanBuilder::from(left).join_on(right, join.join_type, conditions)?.build()?;
            return only(plan, columns);
        };
        let plan = match join.join_type {
            JoinType::Inner => {
                let plan = LogicalPlanBuilder::from(left).join_on(right, JoinType::Inner, conditions)?.build()?;
                self.filter(Filter::try_new(of_both, Arc::new(plan))?)?
            }
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => {
                let (right, pairs) = self.pairs(of_both, &left, right)?;
                LogicalPlanBuilder::from(left).join_on(right, join.join_type, [conditions, pairs].concat())?.build()?
            }
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => {
                let (left, pairs) = self.pairs(of_both, &right, left)?;
                LogicalPlanBuilder::from(left).join_on(right, join.join_type, [conditions, pairs].concat())?.build()?
            }
            JoinType::Full => self.full(&left, &right, &columns, &conditions, of_both)?,
            kind => return plan_err!("a subquery in ON of a {kind} JOIN that speaks of both sides"),
        };
        only(plan, columns)
    }

    /// The rows of a left join, and those of the right side that are in none of them.
    fn full(
        &mut self,
        left: &LogicalPlan,
        right: &LogicalPlan,
        columns: &[Column],
        conditions: &[Expr],
        of_both: Expr,
    ) -> Result<LogicalPlan> {
        let name = |at: usize| format!("c{at}");
        let (others, pairs) = self.pairs(of_both.clone(), left, right.clone())?;
        let joined = LogicalPlanBuilder::from(left.clone())
            .join_on(others, JoinType::Left, [conditions, &pairs].concat())?
            .project(columns.iter().cloned().map(Expr::Column).enumerate().map(|(at, column)| column.alias(name(at))))?
            .build()?;
        let (kept, pairs) = self.pairs(of_both, right, left.clone())?;
        let alone = LogicalPlanBuilder::from(right.clone())
            .join_on(kept, JoinType::LeftAnti, [conditions, &pairs].concat())?
            .project(columns.iter().enumerate().map(|(at, column)| {
                let value = match left.schema().field_from_column(column) {
                    Ok(field) => lit(ScalarValue::try_from(field.data_type()).unwrap_or(ScalarValue::Null)),
                    Err(_) => Expr::Column(column.clone()),
                };
                value.alias(name(at))
            }))?
            .build()?;
        let names = columns.iter().enumerate().map(|(at, column)| {
            Expr::Column(Column::from_name(name(at))).alias_qualified(column.relation.clone(), &column.name)
        });
        LogicalPlanBuilder::from(joined).union(alone)?.project(names)?.build()
    }

    /// A condition that asks about both sides of an outer join, as keys: the pairs of values for which it holds are joined to the
    /// side that may be missing, and tell to which rows of the side that is kept it belongs.
    fn pairs(&mut self, condition: Expr, kept: &LogicalPlan, other: LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
        dependent::asked_twice(kept)?;
        dependent::asked_twice(&other)?;
        let spoken: BTreeSet<Column> = spoken_of(&condition)?.into_iter().collect();
        let values = |side: &LogicalPlan| -> Result<(LogicalPlan, Vec<Column>)> {
            let columns: Vec<Column> =
                spoken.iter().filter(|column| side.schema().has_column(column)).cloned().collect();
            let values = LogicalPlanBuilder::from(side.clone()).project(columns.iter().cloned().map(Expr::Column))?;
            Ok((values.distinct()?.build()?, columns))
        };
        let ((kept, of_kept), (others, of_other)) = (values(kept)?, values(&other)?);
        let all = LogicalPlanBuilder::from(kept).cross_join(others)?.build()?;
        let holds = self.filter(Filter::try_new(condition, Arc::new(all))?)?;
        self.joins += 1;
        let alias = format!("__subquery_{}", self.joins);
        let name = |side: &str, at: usize| format!("{side}_{at}");
        let named = |columns: &[Column], side: &str| -> Vec<Expr> {
            let columns = columns.iter().cloned().enumerate();
            columns.map(|(at, column)| Expr::Column(column).alias(name(side, at))).collect()
        };
        let all_named = named(&of_kept, "kept").into_iter().chain(named(&of_other, "other"));
        let holds = LogicalPlanBuilder::from(holds).project(all_named)?.alias(alias.as_str())?.build()?;
        let keys = |columns: &[Column], side: &str| -> Vec<Expr> {
            let names: Vec<Column> =
                (0..columns.len()).map(|at| Column::new(Some(alias.as_str()), name(side, at))).collect();
            equal(columns, &names)
        };
        let other =
            LogicalPlanBuilder::from(other).join_on(holds, JoinType::Inner, keys(&of_other, "other"))?.build()?;
        Ok((other, keys(&of_kept, "kept")))
    }
}

/// The plan below a node, to which joins are added that answer the node's subqueries.
struct Below<'a> {
    plan: LogicalPlan,
    /// What the plan was before: it has the values that subqueries speak of, and asking it is the least work.
    around: LogicalPlan,
    joins: &'a mut usize,
    /// Whether NULL is another answer than false.
    tells_null: bool,
}

impl<'a> Below<'a> {
    fn new(plan: LogicalPlan, joins: &'a mut usize) -> Self {
        Below { around: plan.clone(), plan, joins, tells_null: true }
    }
}

impl Below<'_> {
    fn values(&mut self, expr: Expr, takes_scalars: bool) -> Result<Transformed<Expr>> {
        expr.transform_up(|expr| {
            let value = match &expr {
                Expr::Exists(exists) => self.some(&exists.subquery, None)?.map(|some| match exists.negated {
                    true => Expr::Not(Box::new(some)),
                    false => some,
                }),
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let any = self.any(expr, Operator::Eq, subquery)?;
                    any.map(|any| if *negated { Expr::Not(Box::new(any)) } else { any })
                }
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => match quantifier {
                    SetQuantifier::Any => self.any(expr, *op, subquery)?,
                    SetQuantifier::All => match op.negate() {
                        Some(op) => self.any(expr, op, subquery)?.map(|any| Expr::Not(Box::new(any))),
                        None => None,
                    },
                },
                Expr::ScalarSubquery(subquery) if is_hard(subquery, self.plan.schema(), Asked::Value)? => {
                    self.value(&subquery.subquery)?
                }
                Expr::ScalarSubquery(subquery) if !takes_scalars && is_correlated(subquery) => {
                    Some(self.scalar(&expr)?)
                }
                _ => None,
            };
            Ok(value.map_or_else(|| Transformed::no(expr), Transformed::yes))
        })
    }

    /// `left op ANY (subquery)`, which is never true, false and NULL at once.
    fn any(&mut self, left: &Expr, op: Operator, subquery: &Subquery) -> Result<Option<Expr>> {
        let (_, field) = subquery.subquery.schema().qualified_field(0);
        let (column_is_nullable, left_is_nullable) = (field.is_nullable(), left.nullable(self.plan.schema())?);
        let is_equal = |value: Expr| Expr::BinaryExpr(BinaryExpr::new(Box::new(left.clone()), op, Box::new(value)));
        let Some(found) = self.some(subquery, Some(&is_equal))? else { return Ok(None) };
        let null = || lit(ScalarValue::Boolean(None));
        if !self.tells_null {
            return Ok(Some(found));
        }
        if left_is_nullable || column_is_nullable {
            dependent::asked_twice(&subquery.subquery)?;
        }
        let mut case = when(found, lit(true));
        if left_is_nullable {
            let Some(rows) = self.some(subquery, None)? else { return Ok(None) };
            case = case.when(left.clone().is_null(), when(rows, null()).otherwise(lit(false))?);
        }
        if column_is_nullable {
            let Some(nulls) = self.some(subquery, Some(&|value: Expr| value.is_null()))? else { return Ok(None) };
            case = case.when(nulls, null());
        }
        case.otherwise(lit(false)).map(Some)
    }

    /// Whether some row of a subquery fulfils a condition on its value; `None` if no join can tell.
    fn some(&mut self, subquery: &Subquery, condition: Option<&dyn Fn(Expr) -> Expr>) -> Result<Option<Expr>> {
        *self.joins += 1;
        let alias = format!("__subquery_{}", self.joins);
        let inner = match condition {
            Some(_) => named(&subquery.subquery)?,
            None => LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
                .project([lit(true).alias(VALUE)])?
                .build()?,
        };
        if is_hard(subquery, self.plan.schema(), Asked::Rows)? {
            let (right, mut on) = self.unnested(&inner, &alias)?;
            on.extend(condition.map(|condition| condition(Expr::Column(Column::new(Some(alias.as_str()), VALUE)))));
            return self.join_to(right, JoinType::LeftMark, on, &alias, "mark").map(Some);
        }
        let mut pull_up = PullUpCorrelatedExpr::new().with_exists_sub_query(true);
        let inner = inner.rewrite(&mut pull_up).data()?;
        if !pull_up.can_pull_up {
            return Ok(None);
        }
        let correlated: BTreeSet<Column> =
            pull_up.correlated_subquery_cols_map.values().flat_map(|columns| columns.iter().cloned()).collect();
        let right = LogicalPlanBuilder::from(inner).alias(alias.as_str())?.build()?;
        let renamed: Vec<Column> =
            correlated.iter().map(|column| Column::new(Some(alias.as_str()), &column.name)).collect();
        let names = correlated.iter().zip(&renamed).collect();
        let mut on =
            pull_up.join_filters.into_iter().map(|filter| replace_col(filter, &names)).collect::<Result<Vec<_>>>()?;
        on.extend(condition.map(|condition| condition(Expr::Column(Column::new(Some(alias.as_str()), VALUE)))));
        self.join_to(right, JoinType::LeftMark, on, &alias, "mark").map(Some)
    }

    /// The value of a correlated subquery; `None` if it has operators that cannot be unnested.
    fn value(&mut self, plan: &LogicalPlan) -> Result<Option<Expr>> {
        *self.joins += 1;
        let alias = format!("__subquery_{}", self.joins);
        let (mut right, on) = self.unnested(&named(plan)?, &alias)?;
        if !has_one_row_at_most(plan)? {
            let columns = right.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            let (values, domain): (Vec<Expr>, Vec<Expr>) =
                columns.into_iter().partition(|column| matches!(column, Expr::Column(column) if column.name == VALUE));
            let Some(value) = values.into_iter().next() else { return Ok(None) };
            let rows = count(lit(1)).alias("rows");
            let grouped = LogicalPlanBuilder::from(right)
                .aggregate(domain.clone(), [first_value(value, vec![]).alias("first"), rows])?;
            let only = only_row(Expr::Column(Column::from_name("first")), Expr::Column(Column::from_name("rows")));
            let columns = domain.into_iter().chain([only.alias_qualified(Some(alias.as_str()), VALUE)]);
            right = grouped.project(columns)?.build()?;
        }
        self.join_to(right, JoinType::Left, on, &alias, VALUE).map(Some)
    }

    /// A subquery as a relation, and how its rows belong to those of the plan.
    fn unnested(&mut self, inner: &LogicalPlan, alias: &str) -> Result<(LogicalPlan, Vec<Expr>)> {
        let outer = dependent::spoken_of(inner, self.around.schema())?;
        if outer.is_empty() {
            // It speaks of a query farther out, which will unnest the join.
            return Ok((LogicalPlanBuilder::from(inner.clone()).alias(alias)?.build()?, vec![]));
        }
        let unnested = Unnesting::new(outer.clone(), &self.around, self.joins)?.unnest(inner)?;
        let Unnested { plan, domain } = unnested;
        let right = LogicalPlanBuilder::from(plan).alias(alias)?.build()?;
        let domain: Vec<Column> = domain.into_iter().map(|column| Column::new(Some(alias), column.name)).collect();
        Ok((right, equal(&outer, &domain)))
    }

    /// Joins a relation to the plan; the answer is one of the columns that it brings.
    fn join_to(
        &mut self,
        right: LogicalPlan,
        kind: JoinType,
        on: Vec<Expr>,
        alias: &str,
        column: &str,
    ) -> Result<Expr> {
        let on = conjunction(on).unwrap_or_else(|| lit(true));
        let left = std::mem::take(&mut self.plan);
        let columns = shown(left.schema());
        // Whoever pulls a condition out of a subquery finds its columns by name alone: two marks must not share one.
        let answer = Expr::Column(Column::new(Some(alias), column)).alias(alias);
        let columns = columns.chain([answer]).collect::<Vec<_>>();
        self.plan = LogicalPlanBuilder::from(left).join_on(right, kind, Some(on))?.project(columns)?.build()?;
        Ok(Expr::Column(Column::from_name(alias)))
    }

    /// A column of what a correlated subquery answers, which DataFusion finds for projections only.
    fn scalar(&mut self, subquery: &Expr) -> Result<Expr> {
        *self.joins += 1;
        let name = format!("__subquery_{}", self.joins);
        let plan = std::mem::take(&mut self.plan);
        let columns = shown(plan.schema());
        let columns = columns.chain([subquery.clone().alias(&name)]).collect();
        self.plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
        Ok(Expr::Column(Column::from_name(name)))
    }
}

/// A subquery whose column is called [`VALUE`].
fn named(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let value = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    LogicalPlanBuilder::from(plan.clone()).project([value.alias(VALUE)])?.build()
}

/// The projection below a sort with the columns that subqueries of the sort speak of and that it lacks: `SELECT a … ORDER BY (SELECT
/// … WHERE u.b = t.b)`. `None` if it lacks none.
fn with_columns_of_sort(sort: &Sort) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return Ok(None) };
    let mut missing = HashSet::new();
    for sort in &sort.expr {
        missing.extend(spoken_of(&sort.expr)?);
    }
    let below = projection.input.schema();
    missing.retain(|column| !projection.schema.has_column(column) && below.has_column(column));
    if missing.is_empty() {
        return Ok(None);
    }
    let mut missing: Vec<Column> = missing.into_iter().collect();
    missing.sort();
    let columns = projection.expr.iter().cloned().chain(missing.into_iter().map(Expr::Column)).collect();
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns, Arc::clone(&projection.input))?)))
}

/// The columns of a plan without the number of a grouping set: `grouping` is made of it before types are settled, and what stands above
/// does not see the number then.
fn shown(schema: &DFSchema) -> impl Iterator<Item = Expr> + use<> {
    let columns = schema.columns().into_iter();
    columns.filter(|column| column.name != Aggregate::INTERNAL_GROUPING_ID).map(Expr::Column)
}

/// Takes away what joins have added.
fn only(plan: LogicalPlan, mut columns: Vec<Column>) -> Result<LogicalPlan> {
    columns.retain(|column| column.name != Aggregate::INTERNAL_GROUPING_ID);
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

fn has_subquery(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_)) || is_question(expr)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_question(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}

/// Whether an expression over a schema has subqueries that DataFusion does not answer in any place.
fn asks(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    expr.exists(|expr| match expr {
        Expr::ScalarSubquery(subquery) => is_hard(subquery, schema, Asked::Value),
        expr => Ok(is_question(expr)),
    })
}

/// Whether a subquery speaks of queries around it. What the planner noted leaves out what subqueries within it say.
fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.subquery.all_out_ref_exprs().is_empty()
}

/// Whether a subquery speaks of the query around it in a way that only unnesting is right for.
fn is_hard(subquery: &Subquery, schema: &DFSchema, asked: Asked) -> Result<bool> {
    Ok(is_correlated(subquery) && !dependent::is_plain(&subquery.subquery, schema, asked)?)
}

/// The columns of which an expression and its subqueries speak.
fn spoken_of(expr: &Expr) -> Result<HashSet<Column>> {
    let mut columns: HashSet<Column> = expr.column_refs().into_iter().cloned().collect();
    expr.apply(|expr| {
        let subquery = match expr {
            Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::SetComparison(SetComparison { subquery, .. })
            | Expr::ScalarSubquery(subquery) => subquery,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(outer_columns(&subquery.subquery)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

/// Whether DataFusion's joins answer a condition of WHERE: within its subqueries it may take NULL for false.
fn is_plain(condition: &Expr, input: &LogicalPlan) -> Result<bool> {
    match condition {
        Expr::InSubquery(InSubquery { subquery, expr, negated: true }) => knows_null(expr, subquery, input),
        Expr::Not(inner) => match inner.as_ref() {
            Expr::InSubquery(InSubquery { subquery, expr, negated: false }) => knows_null(expr, subquery, input),
            _ => is_positive(condition, input.schema()),
        },
        // Its mark joins take a column that two branches of a UNION have for two.
        Expr::BinaryExpr(_) => Ok(!asks(condition, input.schema())?),
        _ => is_positive(condition, input.schema()),
    }
}

/// Whether `NOT IN` may become an anti join: the one that knows NULL takes one key, which is a column.
fn knows_null(expr: &Expr, subquery: &Subquery, input: &LogicalPlan) -> Result<bool> {
    if asks(expr, input.schema())? {
        return Ok(false);
    }
    let (_, field) = subquery.subquery.schema().qualified_field(0);
    if !field.is_nullable() && !expr.nullable(input.schema())? {
        return Ok(!is_correlated(subquery));
    }
    Ok(matches!(expr, Expr::Column(_)) && !is_correlated(subquery))
}

/// Whether no `IN` stands below a negation or within another expression.
fn is_positive(condition: &Expr, schema: &DFSchema) -> Result<bool> {
    match condition {
        Expr::Exists(Exists { subquery, .. }) => Ok(!is_hard(subquery, schema, Asked::Rows)?),
        Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
            Ok(!asks(expr, schema)? && !is_hard(subquery, schema, Asked::Rows)?)
        }
        Expr::Not(inner) if matches!(inner.as_ref(), Expr::Exists(_)) => is_positive(inner, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            Ok(is_positive(left, schema)? && is_positive(right, schema)?)
        }
        other => Ok(!asks(other, schema)?),
    }
}

/// Subqueries that may have several rows, in branches of a CASE: it is an error of the branch.
fn guarded(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::Case(mut case) = expr else { return Ok(Transformed::no(expr)) };
    let mut changed = false;
    let later = case.when_then_expr.iter_mut().enumerate().flat_map(|(at, (when, then))| {
        let when = (at > 0).then_some(when);
        when.into_iter().chain([then])
    });
    for branch in later.chain(&mut case.else_expr) {
        let counted = std::mem::take(branch.as_mut()).transform_down(|part| {
            let Expr::ScalarSubquery(subquery) = &part else { return Ok(Transformed::no(part)) };
            if has_one_row_at_most(&subquery.subquery)? || dependent::asked_twice(&subquery.subquery).is_err() {
                return Ok(Transformed::no(part));
            }
            let rows = named(&subquery.subquery)?;
            let of_all = |value: Expr| -> Result<Expr> {
                let rows =
                    LogicalPlanBuilder::from(rows.clone()).aggregate(Vec::<Expr>::new(), [value.alias(VALUE)])?;
                let plan = Arc::new(rows.build()?);
                Ok(Expr::ScalarSubquery(subquery.with_plan(plan)))
            };
            let first = of_all(first_value(Expr::Column(Column::from_name(VALUE)), vec![]))?;
            Ok(Transformed::new(only_row(first, of_all(count(lit(1)))?), true, TreeNodeRecursion::Jump))
        })?;
        changed |= counted.transformed;
        **branch = counted.data;
    }
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

fn only_row(first: Expr, rows: Expr) -> Expr {
    ScalarUDF::from(OnlyRow { signature: Signature::any(2, Volatility::Volatile) }).call(vec![first, rows])
}

/// What can be said of a subquery without a join.
fn simple(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(Exists { subquery, negated }) => {
            let known = match exists(&subquery.subquery)? {
                Known::Always(holds) => lit(holds),
                Known::Scalar(condition) => condition.is_true(),
                Known::Rows(inner) => {
                    let subquery = subquery.with_plan(Arc::new(inner));
                    // Outside of WHERE a row is counted sooner than joined.
                    return Ok(Transformed::yes(Expr::Exists(Exists { subquery, negated })));
                }
            };
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(known)) } else { known }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_one_row(&subquery.subquery) => {
            let scalar = Expr::ScalarSubquery(subquery);
            Ok(Transformed::yes(if negated { (*expr).not_eq(scalar) } else { (*expr).eq(scalar) }))
        }
        Expr::ScalarSubquery(mut subquery) => {
            // The planner noted what laterals within it said of each other too.
            if !is_correlated(&subquery) {
                subquery.outer_ref_columns.clear();
            }
            let has_a_row = is_one_row(&subquery.subquery);
            let subquery = Expr::ScalarSubquery(subquery);
            if has_a_row {
                return Ok(Transformed::no(subquery));
            }
            let name = subquery.schema_name().to_string();
            Ok(Transformed::yes(nullable(subquery).alias(name)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// What EXISTS asks for.
enum Known {
    Always(bool),
    /// Whether an expression of a subquery with one row is true.
    Scalar(Expr),
    Rows(LogicalPlan),
}

/// Whether a plan has a row, without what does not matter for that.
fn exists(plan: &LogicalPlan) -> Result<Known> {
    Ok(match plan {
        _ if is_one_row(plan) => Known::Always(true),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => exists(&sort.input)?,
        LogicalPlan::Distinct(Distinct::All(input)) => exists(input)?,
        LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (_, FetchType::Literal(Some(0))) => Known::Always(false),
            (SkipType::Literal(0), FetchType::Literal(_)) => exists(&limit.input)?,
            (SkipType::Literal(_), FetchType::Literal(_)) if is_one_row(&limit.input) => Known::Always(false),
            (SkipType::Literal(skip), FetchType::Literal(_)) if !plan.all_out_ref_exprs().is_empty() => {
                let counted = LogicalPlanBuilder::from(limit.input.as_ref().clone())
                    .aggregate(Vec::<Expr>::new(), [count(lit(1))])?
                    .build()?;
                let skipped = i64::try_from(skip).unwrap_or(i64::MAX);
                Known::Scalar(scalar(counted).gt(lit(skipped)))
            }
            _ => Known::Rows(plan.clone()),
        },
        LogicalPlan::Projection(projection) => match exists(&projection.input)? {
            Known::Rows(_) => Known::Rows(plan.clone()),
            known => known,
        },
        // HAVING over one row.
        LogicalPlan::Filter(filter) if is_one_row(&filter.input) && !plan.all_out_ref_exprs().is_empty() => {
            let holds = LogicalPlanBuilder::from(filter.input.as_ref().clone())
                .project([filter.predicate.clone().alias(VALUE)])?
                .build()?;
            Known::Scalar(scalar(holds))
        }
        _ => Known::Rows(plan.clone()),
    })
}

fn scalar(plan: LogicalPlan) -> Expr {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Default::default() })
}

/// Whether a plan has one row, whatever is in its tables: aggregates without GROUP BY.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Projection(projection) => {
            let unnests = |expr: &Expr| expr.exists(|expr| Ok(matches!(expr, Expr::Unnest(_)))).unwrap_or(true);
            !projection.expr.iter().any(unnests) && is_one_row(&projection.input)
        }
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_none() && is_one_row(&sort.input),
        LogicalPlan::Window(window) => is_one_row(&window.input),
        LogicalPlan::Distinct(Distinct::All(input)) => is_one_row(input),
        _ => false,
    }
}

/// Whether a plan has no more than one row, whatever is in its tables.
fn has_one_row_at_most(plan: &LogicalPlan) -> Result<bool> {
    Ok(match plan {
        _ if is_one_row(plan) => true,
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0 | 1))) || has_one_row_at_most(&limit.input)?
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Window(_) => match plan.inputs()[..] {
            [input] => has_one_row_at_most(input)?,
            _ => false,
        },
        _ => false,
    })
}

/// `only_row(value, rows)`: the value of a scalar subquery, and an error where it has more rows than one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRow {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyRow {
    fn name(&self) -> &str {
        "only_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [value, counts] = args.args.as_slice() else {
            return datafusion::common::exec_err!("only_row takes two arguments");
        };
        let counts = counts.to_array(rows)?;
        if as_int64_array(&counts)?.iter().flatten().any(|rows| rows > 1) {
            return datafusion::common::exec_err!("Scalar subquery returned more than one row");
        }
        Ok(value.clone())
    }
}
