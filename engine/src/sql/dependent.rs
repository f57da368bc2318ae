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
//! aggregate, one row      domain LEFT JOIN its input, GROUP BY the domain, FILTER (WHERE there is a row); so is a set `()` of groups
//! join                    on the domain's columns too, where both sides have them
//! LIMIT                   row_number() for each value of the domain
//! ```
//!
//! DataFusion (55.2) pulls the conditions of a subquery up instead, which is faster and fails or errs for many shapes:
//! [`is_plain`] tells which ones may stay with it.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortExpr};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprFunctionExt, FetchType, Filter, GroupingSet, Join, JoinType,
    Limit, LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, SubqueryAlias, Window, cast, lit,
};

use crate::sql::random::draws;

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

/// Refuses a plan that draws random numbers where it is asked a second time.
pub(super) fn asked_twice(plan: &LogicalPlan) -> Result<()> {
    if draws(plan)? {
        return plan_err!(
            "rows with random values are asked more than once here, and each time drawn anew: \
             `CREATE TABLE r AS …` keeps what was drawn"
        );
    }
    Ok(())
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
        asked_twice(around)?;
        let columns = outer.iter().cloned().map(Expr::Column);
        let domain = LogicalPlanBuilder::from(around.clone()).project(columns)?.distinct()?.build()?;
        Ok(Unnesting { outer, domain, names })
    }

    /// The rows of a subquery for each value of the domain. Operators of which nothing is known are refused.
    pub(super) fn unnest(&mut self, plan: &LogicalPlan) -> Result<Unnested> {
        if !self.speaks(plan) {
            let Unnested { plan: domain, domain: columns } = self.domain()?;
            let plan = LogicalPlanBuilder::from(domain).cross_join(plan.clone())?.build()?;
            return Ok(Unnested { plan, domain: columns });
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
            LogicalPlan::Aggregate(aggregate) => self.groups(aggregate)?,
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let (plan, domain) = self.narrow(input)?;
                Unnested { plan: LogicalPlan::Distinct(Distinct::All(Arc::new(plan))), domain }
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.over(&distinct.input, |unnested, replace| {
                let all = |exprs: &[Expr]| exprs.iter().map(replace).collect::<Result<Vec<_>>>();
                let on = unnested.columns().chain(all(&distinct.on_expr)?.into_iter().map(Expr::unalias)).collect();
                let columns = all(&distinct.select_expr)?.into_iter().chain(unnested.columns()).collect();
                let sorted = |sort: &SortExpr| -> Result<SortExpr> {
                    Ok(SortExpr { expr: replace(&sort.expr)?.unalias(), ..sort.clone() })
                };
                let by_domain = unnested.columns().map(|column| Ok(column.sort(true, false)));
                let order = distinct.sort_expr.as_ref().map(|order| by_domain.chain(order.iter().map(sorted)));
                let order = order.map(Iterator::collect::<Result<Vec<_>>>).transpose()?;
                let distinct = DistinctOn::try_new(on, columns, order, Arc::new(unnested.plan.clone()))?;
                Ok(LogicalPlan::Distinct(Distinct::On(distinct)))
            })?,
            LogicalPlan::Unnest(lists) => self.over(&lists.input, |unnested, _| {
                let input = LogicalPlanBuilder::from(unnested.plan.clone());
                input.unnest_columns_with_options(lists.exec_columns.clone(), lists.options.clone())?.build()
            })?,
            LogicalPlan::Values(values) => {
                let row = |cells: &Vec<Expr>| {
                    let named = cells.iter().zip(values.schema.fields());
                    let named =
                        named.map(|(cell, field)| cast(cell.clone(), field.data_type().clone()).alias(field.name()));
                    LogicalPlanBuilder::empty(true).project(named)?.build().map(Arc::new)
                };
                self.union(plan, &values.values.iter().map(row).collect::<Result<Vec<_>>>()?)?
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let (plan, domain) = self.narrow(&alias.input)?;
                let plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?);
                let rename = |column: Column| Column::new(Some(alias.alias.clone()), column.name);
                Unnested { plan, domain: domain.into_iter().map(rename).collect() }
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
                let LogicalPlan::Projection(projection) = limit.input.as_ref() else { return Err(refused("LIMIT")) };
                let below = LogicalPlan::Limit(Limit { input: Arc::clone(&projection.input), ..limit.clone() });
                let above = Projection::try_new(projection.expr.clone(), Arc::new(below))?;
                self.unnest(&LogicalPlan::Projection(above))?
            }
            // Which of the rows that are kept come first is told by keys that the answer need not have.
            LogicalPlan::Limit(limit) if is_distinct_on(&limit.input) => {
                return Err(refused("LIMIT or OFFSET of DISTINCT ON"));
            }
            LogicalPlan::Limit(limit) => {
                let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                    (limit.get_skip_type()?, limit.get_fetch_type()?)
                else {
                    return Err(refused("a LIMIT that is no constant"));
                };
                self.first(&limit.input, skip, fetch)?
            }
            LogicalPlan::Join(join) => self.join(join)?,
            LogicalPlan::Union(union) => self.union(plan, &union.inputs)?,
            // `FROM unnest(t.list)`, which stands beside nothing.
            LogicalPlan::Subquery(lateral) => self.unnest(&lateral.subquery)?,
            LogicalPlan::RecursiveQuery(_) => return Err(refused("WITH RECURSIVE")),
            other => return Err(refused(&format!("`{}`", other.display()))),
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
    ) -> Result<Unnested> {
        let unnested = self.unnest(input)?;
        let plan = node(&unnested, &|expr| self.replace(expr, &unnested.domain))?;
        Ok(Unnested { plan, domain: unnested.domain })
    }

    /// What an input has become, with its own columns and the domain's only.
    fn narrow(&mut self, input: &LogicalPlan) -> Result<(LogicalPlan, Vec<Column>)> {
        let unnested = self.unnest(input)?;
        let columns = input.schema().columns().into_iter().map(Expr::Column).chain(unnested.columns()).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(unnested.plan))?);
        Ok((plan, unnested.domain))
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
    fn one_row(&mut self, aggregate: &Aggregate) -> Result<Unnested> {
        let (Unnested { plan, domain }, found) = self.rows_or_none(&aggregate.input)?;
        let calls = self.calls(aggregate, &domain, Some(&found))?;
        let groups = domain.iter().cloned().map(Expr::Column).collect();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, calls)?);
        Ok(Unnested { plan, domain })
    }

    /// Groups of each value of the domain. A group of all rows is there without a row, the others are not: a key that is true in each of these
    /// tells them apart.
    fn groups(&mut self, aggregate: &Aggregate) -> Result<Unnested> {
        let has_total = aggregate.group_expr.iter().any(has_total);
        let (Unnested { mut plan, domain }, found) = if has_total {
            let (rows, found) = self.rows_or_none(&aggregate.input)?;
            (rows, Some(found))
        } else {
            (self.unnest(&aggregate.input)?, None)
        };
        *self.names += 1;
        let (is_some, rows) = (format!("__group_{}", self.names), format!("__rows_{}", self.names));
        let mut keys: Vec<Expr> = vec![];
        let mut key = |expr: &Expr| -> Result<Expr> {
            if !expr.contains_outer() {
                return Ok(expr.clone());
            }
            let computed = self.replace(expr, &domain)?.unalias().alias(expr.schema_name().to_string());
            if !keys.contains(&computed) {
                keys.push(computed);
            }
            Ok(in_its_place(expr))
        };
        let by_domain = || domain.iter().cloned().map(Expr::Column);
        let groups = match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => {
                let marked = |set: Vec<Expr>| -> Result<Vec<Expr>> {
                    let mark = found.is_some() && !set.is_empty();
                    let mark = mark.then(|| Expr::Column(Column::from_name(&is_some)));
                    let set = set.iter().map(&mut key).collect::<Result<Vec<_>>>()?;
                    Ok(set.into_iter().chain(mark).chain(by_domain()).collect())
                };
                let sets = sets_of(sets).into_iter().map(marked).collect::<Result<_>>()?;
                vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))]
            }
            groups => {
                let groups = groups.iter().map(&mut key).collect::<Result<Vec<_>>>()?;
                groups.into_iter().chain(by_domain()).collect()
            }
        };
        let below = keys.into_iter().chain(found.iter().map(|_| lit(true).alias(&is_some)));
        let columns = plan.schema().columns().into_iter().map(Expr::Column).chain(below).collect();
        plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
        let mut calls = self.calls(aggregate, &domain, found.as_ref())?;
        calls.extend(found.iter().map(|found| count(found.clone()).alias(&rows)));
        plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, calls)?);
        let holds = |column: &str| Expr::Column(Column::from_name(column));
        if found.is_some() && plan.schema().has_column_with_unqualified_name(&is_some) {
            let is_there = holds(&is_some).is_null().or(holds(&rows).gt(lit(0_i64)));
            plan = LogicalPlan::Filter(Filter::try_new(is_there, Arc::new(plan))?);
        }
        Ok(Unnested { plan, domain })
    }

    /// The rows of an input, and one for each value of the domain without any; with what is true in the former and NULL in the latter.
    fn rows_or_none(&mut self, input: &LogicalPlan) -> Result<(Unnested, Expr)> {
        let unnested = self.unnest(input)?;
        let found = format!("__found_{}", self.names);
        let columns = unnested.plan.schema().columns().into_iter().map(Expr::Column);
        let rows = LogicalPlanBuilder::from(unnested.plan.clone())
            .project(columns.chain([lit(true).alias(&found)]))?
            .build()?;
        let Unnested { plan: all, domain } = self.domain()?;
        let plan =
            LogicalPlanBuilder::from(all).join_on(rows, JoinType::Left, equal(&domain, &unnested.domain))?.build()?;
        Ok((Unnested { plan, domain }, Expr::Column(Column::from_name(found))))
    }

    /// The calls of an aggregate over the domain, of rows that are `found`.
    fn calls(&self, aggregate: &Aggregate, domain: &[Column], found: Option<&Expr>) -> Result<Vec<Expr>> {
        let of_rows = |expr: &Expr| {
            let asks_groups = |call: &AggregateFunction| call.func.name() == "grouping";
            let expr_of_keys = expr.clone().transform_up(|expr| match expr {
                Expr::AggregateFunction(mut call) if asks_groups(&call) => {
                    call.params
                        .args
                        .iter_mut()
                        .filter(|key| key.contains_outer())
                        .for_each(|key| *key = in_its_place(key));
                    Ok(Transformed::yes(Expr::AggregateFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            });
            self.replace(&expr_of_keys.data()?, domain)?
                .transform_up(|expr| {
                    let Expr::AggregateFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
                    if !asks_groups(&call) {
                        let filter = call.params.filter.take().map(|filter| *filter);
                        call.params.filter = conjunction(found.cloned().into_iter().chain(filter)).map(Box::new);
                    }
                    Ok(Transformed::yes(Expr::AggregateFunction(call)))
                })
                .data()
                .map(|call| call.alias(expr.schema_name().to_string()))
        };
        aggregate.aggr_expr.iter().map(of_rows).collect()
    }

    /// LIMIT and OFFSET for each value of the domain, in the order of a sort below them.
    fn first(&mut self, input: &LogicalPlan, skip: usize, fetch: Option<usize>) -> Result<Unnested> {
        let (order, input) = match input {
            LogicalPlan::Sort(sort) => (sort.expr.as_slice(), sort.input.as_ref()),
            other => (&[][..], other),
        };
        let unnested = self.unnest(input)?;
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
        Ok(Unnested { plan: plan.filter(within)?.build()?, domain: unnested.domain })
    }

    /// Both sides have the domain, but for a side whose rows stay or go with those of the other.
    fn join(&mut self, join: &Join) -> Result<Unnested> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        if join.null_aware {
            return Err(refused("NOT IN"));
        }
        let (of_left, of_right) = (self.speaks(&join.left), self.speaks(&join.right));
        let is_left_enough = !of_right && matches!(join.join_type, Inner | Left | LeftSemi | LeftAnti | LeftMark);
        let is_right_enough =
            !of_left && of_right && matches!(join.join_type, Inner | Right | RightSemi | RightAnti | RightMark);
        let plain = |plan: &Arc<LogicalPlan>| Unnested { plan: plan.as_ref().clone(), domain: vec![] };
        let left = if is_right_enough { plain(&join.left) } else { self.unnest(&join.left)? };
        let right = if is_left_enough { plain(&join.right) } else { self.unnest(&join.right)? };
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
        Ok(match join.join_type {
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
        })
    }

    fn union(&mut self, plan: &LogicalPlan, inputs: &[Arc<LogicalPlan>]) -> Result<Unnested> {
        *self.names += 1;
        let names: Vec<String> = (0..self.outer.len()).map(|at| format!("__domain_{}_{at}", self.names)).collect();
        let mut all: Option<LogicalPlanBuilder> = None;
        for input in inputs {
            let (branch, domain) = self.narrow(input)?;
            let own = input.schema().columns().into_iter().map(Expr::Column);
            let own = own.zip(plan.schema().columns()).map(|(value, column)| value.alias(column.name));
            let domain = domain.into_iter().zip(&names).map(|(column, name)| Expr::Column(column).alias(name));
            let branch = LogicalPlanBuilder::from(branch).project(own.chain(domain))?;
            all = Some(match all {
                None => branch,
                Some(all) => all.union(branch.build()?)?,
            });
        }
        let Some(all) = all else { return Err(refused("UNION")) };
        let all = all.build()?;
        let named =
            all.schema().columns().into_iter().zip(plan.schema().iter()).map(|(column, (qualifier, field))| {
                Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
            });
        let domain: Vec<Column> = all.schema().columns().into_iter().skip(plan.schema().fields().len()).collect();
        let columns = named.chain(domain.iter().cloned().map(Expr::Column)).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(all))?);
        Ok(Unnested { plan, domain })
    }
}

impl Unnested {
    fn columns(&self) -> impl Iterator<Item = Expr> + '_ {
        self.domain.iter().cloned().map(Expr::Column)
    }
}

/// An operator that cannot speak of the query around it.
fn is_distinct_on(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Distinct(Distinct::On(_)))
}

fn refused(what: &str) -> DataFusionError {
    plan_datafusion_err!(
        "a subquery with {what} speaks of the query around it: join what it needs of that query within it instead"
    )
}

/// Whether groups have one of all rows, which is there without a row.
fn has_total(group: &Expr) -> bool {
    match group {
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
        Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_)) => true,
        _ => false,
    }
}

/// The column that a key has become.
fn in_its_place(key: &Expr) -> Expr {
    Expr::Column(Column::from_name(key.schema_name().to_string()))
}

/// The sets that ROLLUP and CUBE stand for.
fn sets_of(groups: &GroupingSet) -> Vec<Vec<Expr>> {
    match groups {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(keys) => (0..=keys.len()).rev().map(|first| keys[..first].to_vec()).collect(),
        GroupingSet::Cube(keys) => {
            let is_in = |set: usize, at: usize| set & (1 << (keys.len() - 1 - at)) != 0;
            let of_set = |set| (0..keys.len()).filter(|at| is_in(set, *at)).map(|at| keys[at].clone()).collect();
            (0..1_usize << keys.len()).rev().map(of_set).collect()
        }
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

/// The columns of queries around it that a plan speaks of.
pub(super) fn outer_columns(plan: &LogicalPlan) -> Result<HashSet<Column>> {
    let mut columns = HashSet::new();
    for expr in plan.all_out_ref_exprs() {
        if let Expr::OuterReferenceColumn(_, column) = expr {
            columns.insert(column);
        }
    }
    Ok(columns)
}
