//! Correlated subqueries of any shape, as joins.
//!
//! A subquery that speaks of columns of the query around it is, in meaning, asked once for each of that query's rows. Here it is
//! asked once for all values that those columns have: they become a relation, the *domain*, which is joined to the subquery
//! where it begins, and whose columns go along through every operator (T. Neumann, A. Kemper, "Unnesting Arbitrary
//! Queries", BTW 2015).
//!
//! ```text
//! (SELECT max(y) FILTER (WHERE c) FROM u WHERE u.a < t.a)      domain: SELECT DISTINCT t.a FROM t
//!
//! filter                  the same, over the domain × its input: the optimizer makes a join of both
//! projection, DISTINCT    with the domain's columns
//! GROUP BY, PARTITION BY  also by the domain's columns
//! aggregate, one row      domain LEFT JOIN its input, GROUP BY the domain, FILTER (WHERE there is a row)
//! join                    on the domain's columns too, where both sides have them
//! LIMIT                   row_number() for each value of the domain
//! ```
//!
//! DataFusion (55.2) pulls the conditions of a subquery up instead, which is faster and fails or errs for many shapes:
//! [`is_plain`] tells which ones may stay with it.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, FetchType, Filter, Join, JoinType, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SkipType, SubqueryAlias, Window, lit,
};

use crate::sql::subqueries::outer_columns;

/// What a subquery asks for, as far as it matters for how it may be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Its one value.
    Value,
    /// Whether there is a row, or one with a value.
    Rows,
}

/// Whether DataFusion's ways are right for a correlated subquery: all that it says of `outer` stands in conditions of WHERE, above
/// nothing but inner joins; and, if its value is asked for, in equations below one aggregate.
pub(super) fn is_plain(plan: &LogicalPlan, outer: &DFSchema, asked: Asked) -> Result<bool> {
    if !outer_columns(plan)?.iter().all(|column| outer.has_column(column)) {
        return Ok(false);
    }
    Ok(match plan {
        _ if plan.all_out_ref_exprs().is_empty() => true,
        LogicalPlan::Projection(projection) => {
            !plan.contains_outer_reference() && is_plain(&projection.input, outer, asked)?
        }
        LogicalPlan::Aggregate(aggregate) if asked == Asked::Value => {
            let is_filtered = aggregate.aggr_expr.iter().any(|expr| {
                let is_filtered =
                    |expr: &Expr| matches!(expr, Expr::AggregateFunction(call) if call.params.filter.is_some());
                expr.exists(|expr| Ok(is_filtered(expr))).unwrap_or(true)
            });
            aggregate.group_expr.is_empty()
                && !is_filtered
                && !plan.contains_outer_reference()
                && is_filtered_rows(&aggregate.input, asked)
        }
        _ => asked == Asked::Rows && is_filtered_rows(plan, asked),
    })
}

/// Whether outer columns stand in conditions only that may be pulled up as they are.
fn is_filtered_rows(plan: &LogicalPlan, asked: Asked) -> bool {
    if plan.all_out_ref_exprs().is_empty() {
        return true;
    }
    match plan {
        LogicalPlan::Filter(filter) => {
            // A condition on outer columns alone would become one of the other side of a join.
            let may_stay = |condition: &&Expr| {
                !condition.contains_outer()
                    || is_equation(condition)
                    || (asked == Asked::Rows && !condition.column_refs().is_empty())
            };
            split_conjunction(&filter.predicate).iter().all(may_stay) && is_filtered_rows(&filter.input, asked)
        }
        LogicalPlan::SubqueryAlias(alias) => is_filtered_rows(&alias.input, asked),
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            !plan.contains_outer_reference()
                && is_filtered_rows(&join.left, asked)
                && is_filtered_rows(&join.right, asked)
        }
        _ => false,
    }
}

/// `column = outer column`, in either order.
fn is_equation(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => matches!(
            (left.as_ref(), right.as_ref()),
            (Expr::Column(_), Expr::OuterReferenceColumn(..)) | (Expr::OuterReferenceColumn(..), Expr::Column(_))
        ),
        _ => false,
    }
}

/// A subquery that has become a relation of its own.
pub(super) struct Unnested {
    pub plan: LogicalPlan,
    /// The columns of `plan` that hold the domain, in the order of the outer columns.
    pub domain: Vec<Column>,
}

/// Unnests subqueries that speak of the columns of one plan.
pub(super) struct Unnesting<'a> {
    outer: Vec<Column>,
    domain: LogicalPlan,
    /// How many relations have got a name so far.
    names: &'a mut usize,
}

impl<'a> Unnesting<'a> {
    /// `outer` are columns of `around`.
    pub(super) fn new(outer: Vec<Column>, around: &LogicalPlan, names: &'a mut usize) -> Result<Self> {
        let columns = outer.iter().cloned().map(Expr::Column);
        let domain = LogicalPlanBuilder::from(around.clone()).project(columns)?.distinct()?.build()?;
        Ok(Unnesting { outer, domain, names })
    }

    /// The rows of a subquery for each value of the domain; `None` for operators that nothing is known of.
    pub(super) fn unnest(&mut self, plan: &LogicalPlan) -> Result<Option<Unnested>> {
        if !self.speaks(plan) {
            let Unnested { plan: domain, domain: columns } = self.domain()?;
            let plan = LogicalPlanBuilder::from(domain).cross_join(plan.clone())?.build()?;
            return Ok(Some(Unnested { plan, domain: columns }));
        }
        Ok(match plan {
            LogicalPlan::Filter(filter) => self.over(&filter.input, |unnested, replace| {
                Ok(LogicalPlan::Filter(Filter::try_new(replace(&filter.predicate)?, Arc::new(unnested.plan.clone()))?))
            })?,
            LogicalPlan::Projection(projection) => self.over(&projection.input, |unnested, replace| {
                let columns = projection.expr.iter().map(replace).collect::<Result<Vec<_>>>()?;
                let columns = columns.into_iter().chain(unnested.columns()).collect();
                Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(unnested.plan.clone()))?))
            })?,
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => self.one_row(aggregate)?,
            LogicalPlan::Aggregate(aggregate) => {
                if aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
                    return Ok(None);
                }
                self.over(&aggregate.input, |unnested, replace| {
                    let groups = aggregate.group_expr.iter().map(replace).collect::<Result<Vec<_>>>()?;
                    let groups = groups.into_iter().chain(unnested.columns()).collect();
                    let calls = aggregate.aggr_expr.iter().map(replace).collect::<Result<Vec<_>>>()?;
                    Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(unnested.plan.clone()), groups, calls)?))
                })?
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let narrow = self.narrow(input)?;
                narrow.map(|(plan, domain)| Unnested {
                    plan: LogicalPlan::Distinct(Distinct::All(Arc::new(plan))),
                    domain,
                })
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Some((plan, domain)) = self.narrow(&alias.input)? else { return Ok(None) };
                let plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?);
                let rename = |column: Column| Column::new(Some(alias.alias.clone()), column.name);
                Some(Unnested { plan, domain: domain.into_iter().map(rename).collect() })
            }
            LogicalPlan::Window(window) => self.over(&window.input, |unnested, replace| {
                let by_domain = |expr: &Expr| {
                    // One alias at most: the planner looks for the function below it.
                    replace(expr)?
                        .unalias_nested()
                        .data
                        .transform_up(|expr| {
                            let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
                            call.params.partition_by.extend(unnested.columns());
                            Ok(Transformed::yes(Expr::WindowFunction(call)))
                        })
                        .data()
                        .map(|call| call.alias(expr.schema_name().to_string()))
                };
                let calls = window.window_expr.iter().map(by_domain).collect::<Result<Vec<_>>>()?;
                Ok(LogicalPlan::Window(Window::try_new(calls, Arc::new(unnested.plan.clone()))?))
            })?,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.unnest(&sort.input)?,
            // ORDER BY what is not shown: the sort stands below the projection.
            LogicalPlan::Limit(limit) if matches!(limit.input.as_ref(), LogicalPlan::Projection(_)) => {
                let LogicalPlan::Projection(projection) = limit.input.as_ref() else { return Ok(None) };
                let below = LogicalPlan::Limit(Limit { input: Arc::clone(&projection.input), ..limit.clone() });
                let above = Projection::try_new(projection.expr.clone(), Arc::new(below))?;
                self.unnest(&LogicalPlan::Projection(above))?
            }
            LogicalPlan::Limit(limit) => {
                let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                    (limit.get_skip_type()?, limit.get_fetch_type()?)
                else {
                    return Ok(None);
                };
                self.first(&limit.input, skip, fetch)?
            }
            LogicalPlan::Join(join) => self.join(join)?,
            LogicalPlan::Union(union) => self.union(plan, &union.inputs)?,
            _ => None,
        })
    }

    /// Whether a plan speaks of the outer columns.
    fn speaks(&self, plan: &LogicalPlan) -> bool {
        let is_outer =
            |expr: &Expr| matches!(expr, Expr::OuterReferenceColumn(_, column) if self.outer.contains(column));
        plan.all_out_ref_exprs().iter().any(is_outer)
    }

    /// The domain once more, under names of its own.
    fn domain(&mut self) -> Result<Unnested> {
        *self.names += 1;
        let name = format!("__domain_{}", self.names);
        let columns: Vec<String> = (0..self.outer.len()).map(|at| format!("{name}_{at}")).collect();
        let named = self.domain.schema().columns().into_iter().zip(&columns);
        let named: Vec<Expr> = named.map(|(column, name)| Expr::Column(column).alias(name)).collect();
        let plan = LogicalPlanBuilder::from(self.domain.clone()).project(named)?.alias(name.as_str())?.build()?;
        let domain = plan.schema().columns();
        Ok(Unnested { plan, domain })
    }

    /// A node over one input, which `node` makes of what the input has become.
    fn over(
        &mut self,
        input: &LogicalPlan,
        node: impl FnOnce(&Unnested, &dyn Fn(&Expr) -> Result<Expr>) -> Result<LogicalPlan>,
    ) -> Result<Option<Unnested>> {
        let Some(unnested) = self.unnest(input)? else { return Ok(None) };
        let plan = node(&unnested, &|expr| self.replace(expr, &unnested.domain))?;
        Ok(Some(Unnested { plan, domain: unnested.domain }))
    }

    /// What an input has become, with its own columns and the domain's only.
    fn narrow(&mut self, input: &LogicalPlan) -> Result<Option<(LogicalPlan, Vec<Column>)>> {
        let Some(unnested) = self.unnest(input)? else { return Ok(None) };
        let columns = input.schema().columns().into_iter().map(Expr::Column).chain(unnested.columns()).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(unnested.plan))?);
        Ok(Some((plan, unnested.domain)))
    }

    /// An expression with the domain's columns for the outer ones; the name stays.
    fn replace(&self, expr: &Expr, domain: &[Column]) -> Result<Expr> {
        let replaced = expr.clone().transform_up(|expr| {
            let place = match &expr {
                Expr::OuterReferenceColumn(_, column) => self.outer.iter().position(|outer| outer == column),
                _ => None,
            };
            Ok(match place.and_then(|at| domain.get(at)) {
                Some(column) => Transformed::yes(Expr::Column(column.clone())),
                None => Transformed::no(expr),
            })
        })?;
        Ok(if replaced.transformed { replaced.data.alias(expr.schema_name().to_string()) } else { replaced.data })
    }

    /// An aggregate without GROUP BY has a row where its input has none.
    fn one_row(&mut self, aggregate: &Aggregate) -> Result<Option<Unnested>> {
        let Some(unnested) = self.unnest(&aggregate.input)? else { return Ok(None) };
        let found = format!("__found_{}", self.names);
        let columns = unnested.plan.schema().columns().into_iter().map(Expr::Column);
        let rows = LogicalPlanBuilder::from(unnested.plan.clone())
            .project(columns.chain([lit(true).alias(&found)]))?
            .build()?;
        let Unnested { plan: all, domain } = self.domain()?;
        let plan =
            LogicalPlanBuilder::from(all).join_on(rows, JoinType::Left, equal(&domain, &unnested.domain))?.build()?;
        let found = Expr::Column(Column::from_name(found));
        let of_rows = |expr: &Expr| {
            self.replace(expr, &domain)?
                .transform_up(|expr| {
                    let Expr::AggregateFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
                    let filter = call.params.filter.take().map(|filter| *filter);
                    call.params.filter = conjunction([found.clone()].into_iter().chain(filter)).map(Box::new);
                    Ok(Transformed::yes(Expr::AggregateFunction(call)))
                })
                .data()
                .map(|call| call.alias(expr.schema_name().to_string()))
        };
        let calls = aggregate.aggr_expr.iter().map(of_rows).collect::<Result<Vec<_>>>()?;
        let groups = domain.iter().cloned().map(Expr::Column).collect();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, calls)?);
        Ok(Some(Unnested { plan, domain }))
    }

    /// LIMIT and OFFSET for each value of the domain, in the order of a sort below them.
    fn first(&mut self, input: &LogicalPlan, skip: usize, fetch: Option<usize>) -> Result<Option<Unnested>> {
        let (order, input) = match input {
            LogicalPlan::Sort(sort) => (sort.expr.as_slice(), sort.input.as_ref()),
            other => (&[][..], other),
        };
        let Some(unnested) = self.unnest(input)? else { return Ok(None) };
        let sorted = |sort: &SortExpr| {
            let expr = self.replace(&sort.expr, &unnested.domain)?;
            Ok(SortExpr { expr: expr.unalias(), ..sort.clone() })
        };
        let order = order.iter().map(sorted).collect::<Result<Vec<_>>>()?;
        let number = row_number().partition_by(unnested.columns().collect());
        let number = if order.is_empty() { number } else { number.order_by(order) }.build()?;
        *self.names += 1;
        let name = format!("__row_{}", self.names);
        let plan = LogicalPlanBuilder::from(unnested.plan).window([number.alias(&name)])?;
        let number = Expr::Column(Column::from_name(name));
        let bound = |rows: usize| lit(u64::try_from(rows).unwrap_or(u64::MAX));
        let mut within = number.clone().gt(bound(skip));
        if let Some(fetch) = fetch {
            within = within.and(number.lt_eq(bound(skip.saturating_add(fetch))));
        }
        Ok(Some(Unnested { plan: plan.filter(within)?.build()?, domain: unnested.domain }))
    }

    /// Both sides have the domain, but for a side whose rows stay or go with those of the other.
    fn join(&mut self, join: &Join) -> Result<Option<Unnested>> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        if join.null_aware {
            return Ok(None);
        }
        let (of_left, of_right) = (self.speaks(&join.left), self.speaks(&join.right));
        let is_left_enough = !of_right && matches!(join.join_type, Inner | Left | LeftSemi | LeftAnti | LeftMark);
        let is_right_enough =
            !of_left && of_right && matches!(join.join_type, Inner | Right | RightSemi | RightAnti | RightMark);
        let plain = |plan: &Arc<LogicalPlan>| Unnested { plan: plan.as_ref().clone(), domain: vec![] };
        let left = if is_right_enough { Some(plain(&join.left)) } else { self.unnest(&join.left)? };
        let right = if is_left_enough { Some(plain(&join.right)) } else { self.unnest(&join.right)? };
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        let domain = if is_right_enough { right.domain.clone() } else { left.domain.clone() };
        let mut filters = join.filter.iter().map(|filter| self.replace(filter, &domain)).collect::<Result<Vec<_>>>()?;
        filters.iter_mut().for_each(|filter| *filter = filter.clone().unalias());
        if !left.domain.is_empty() && !right.domain.is_empty() {
            filters.extend(equal(&left.domain, &right.domain));
        }
        let on = |(left, right): &(Expr, Expr)| {
            Ok((self.replace(left, &domain)?.unalias(), self.replace(right, &domain)?.unalias()))
        };
        let joined = Join::try_new(
            Arc::new(left.plan),
            Arc::new(right.plan),
            join.on.iter().map(on).collect::<Result<Vec<_>>>()?,
            conjunction(filters),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            false,
        )?;
        let plan = LogicalPlan::Join(joined);
        Ok(Some(match join.join_type {
            Right | RightSemi | RightAnti | RightMark => Unnested { plan, domain: right.domain },
            Full => {
                *self.names += 1;
                let names: Vec<String> = (0..domain.len()).map(|at| format!("__domain_{}_{at}", self.names)).collect();
                let either = left.domain.iter().zip(&right.domain).zip(&names).map(|((left, right), name)| {
                    let sides = vec![Expr::Column(left.clone()), Expr::Column(right.clone())];
                    datafusion::functions::core::expr_fn::coalesce(sides).alias(name)
                });
                let columns = plan.schema().columns().into_iter().map(Expr::Column).chain(either).collect();
                let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
                Unnested { plan, domain: names.into_iter().map(Column::from_name).collect() }
            }
            _ => Unnested { plan, domain },
        }))
    }

    fn union(&mut self, plan: &LogicalPlan, inputs: &[Arc<LogicalPlan>]) -> Result<Option<Unnested>> {
        *self.names += 1;
        let names: Vec<String> = (0..self.outer.len()).map(|at| format!("__domain_{}_{at}", self.names)).collect();
        let mut all: Option<LogicalPlanBuilder> = None;
        for input in inputs {
            let Some((branch, domain)) = self.narrow(input)? else { return Ok(None) };
            let own = input.schema().columns().into_iter().map(Expr::Column);
            let own = own.zip(plan.schema().columns()).map(|(value, column)| value.alias(column.name));
            let domain = domain.into_iter().zip(&names).map(|(column, name)| Expr::Column(column).alias(name));
            let branch = LogicalPlanBuilder::from(branch).project(own.chain(domain))?;
            all = Some(match all {
                None => branch,
                Some(all) => all.union(branch.build()?)?,
            });
        }
        let Some(all) = all else { return Ok(None) };
        let all = all.build()?;
        let named =
            all.schema().columns().into_iter().zip(plan.schema().iter()).map(|(column, (qualifier, field))| {
                Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
            });
        let domain: Vec<Column> = all.schema().columns().into_iter().skip(plan.schema().fields().len()).collect();
        let columns = named.chain(domain.iter().cloned().map(Expr::Column)).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(all))?);
        Ok(Some(Unnested { plan, domain }))
    }
}

impl Unnested {
    fn columns(&self) -> impl Iterator<Item = Expr> + '_ {
        self.domain.iter().cloned().map(Expr::Column)
    }
}

/// That columns have the same values, NULL among them.
pub(super) fn equal(left: &[Column], right: &[Column]) -> Vec<Expr> {
    let is_equal = |(left, right): (&Column, &Column)| {
        let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::IsNotDistinctFrom, Box::new(right)))
    };
    left.iter().zip(right).map(is_equal).collect()
}

/// The columns of which a subquery speaks and that a plan has, in a settled order.
pub(super) fn spoken_of(plan: &LogicalPlan, schema: &DFSchema) -> Result<Vec<Column>> {
    let spoken: HashSet<Column> = outer_columns(plan)?;
    let mut columns: Vec<Column> = spoken.into_iter().filter(|column| schema.has_column(column)).collect();
    columns.sort();
    Ok(columns)
}
