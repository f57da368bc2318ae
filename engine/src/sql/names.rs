//! Columns that planning would take for one another, and answers with a name twice.
//!
//! DataFusion tells the columns of a plan apart by names that it makes of expressions, and refuses a plan in which two are
//! equal. But different expressions have equal names: casts, parentheses and subqueries are left out of them
//! (`avg(CAST(x AS BIGINT))` and `avg(x)`, `(a + b) * c` and `a + b * c`, EXISTS and EXISTS; apache/datafusion#8921 for
//! casts), and SQL lets an answer have a name twice (`SELECT a, b AS a`).
//!
//! So a statement that is refused for its names is planned once more (`plan`), after its tree was changed (`distinguish`):
//!
//! ```text
//! CAST(x AS BIGINT)         CAST(x AS BIGINT) ⟨CAST(, AS BIGINT)⟩      a mark: same value, another name
//! (a + b) * c               (a + b) ⟨(,)⟩ * c
//! (SELECT …), EXISTS (…)    (SELECT …) ⟨,#1⟩
//! a, b AS a, avg(x), avg(x) a, b AS "a#1", avg(x), avg(x) ⟨,#2⟩
//! ```
//!
//! `⟨,⟩` stands for an operator that the parser never makes; `Marks` plans it as a function that hands its argument on, and
//! `Unmark` takes that away as soon as columns have their names. `#1` is a tag that no name of a user has: `answer` takes
//! it from the columns of the answer, which may then have a name twice; outputs whose format does not allow that make names unique.
//! Statements that are not refused stay as they are.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, SchemaError, TableReference, internal_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, Distinct, Expr as SqlExpr, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Value, Visit, VisitMut, Visitor, VisitorMut,
    visit_expressions, visit_expressions_mut,
};

use crate::sql::annotated::{Said, is_itself, itself};
use crate::sql::scope::normal;
use crate::sql::statement::walk;

/// Encloses the number of a tag in a name: invisible, and in no name that somebody types.
const TAG: char = '\u{2063}';
/// Between the beginning and the end of a marked name.
const GAP: char = '\u{2064}';
/// The operator that stands for a mark.
const MARK: &str = "\u{2063}mark\u{2063}";

/// Plans a statement, and once more with all told apart when names are in the way.
pub(super) async fn plan(state: &SessionState, statement: ParsedStatement) -> Result<LogicalPlan> {
    let mut again = statement.clone();
    if mixes_keys(&statement) {
        distinguish(&mut again, &HashSet::new());
        if let Ok(plan) = state.statement_to_plan(again).await {
            return answer(plan);
        }
        again = statement.clone();
    }
    let refused = match state.statement_to_plan(statement).await {
        Err(error) if clash(&error).is_some() => error,
        planned => return planned,
    };
    let original = again.clone();
    let mut names: HashSet<String> = clash(&refused).into_iter().collect();
    // A wildcard's names are not known here: each attempt tells one of those that are there already.
    for _ in 0..ATTEMPTS {
        distinguish(&mut again, &names);
        match state.statement_to_plan(again).await {
            Ok(plan) => return answer(plan),
            Err(error) => match clash(&error) {
                Some(name) if names.insert(name.clone()) => again = original.clone(),
                _ => break,
            },
        }
    }
    // One function may be spelled in two ways: `position(a IN b)` and `strpos(b, a)`, `E'a'` and `'a'`.
    again = original;
    walk(&mut again, &mut Marker { is_each: true, ..Marker::new(&names) });
    match state.statement_to_plan(again).await {
        Ok(plan) => answer(plan),
        Err(_) => Err(refused),
    }
}

/// Names that wildcards and other columns of a SELECT may share.
const ATTEMPTS: usize = 64;

/// The name that is in the way, without its relation.
fn clash(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::AmbiguousReference { field } => Some(field.name.clone()),
            SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
                Some(name.clone())
            }
            SchemaError::FieldNotFound { .. } => None,
        },
        DataFusionError::Plan(text) => {
            let (_, rest) = text.split_once("unique expression names but the expression \"")?;
            let name = &rest[..rest.find("\" at position")?];
            Some(name.rsplit('.').next().unwrap_or(name).to_owned())
        }
        _ => None,
    }
}

/// Whether a GROUP BY has keys that differ in casts only, `CAST(x AS BIGINT), x`. Such a plan is not refused at once: a column
/// that is called `t.x` is taken for `x` of `t` by rules of the optimiser. And so is a cast within grouping sets.
fn mixes_keys(statement: &ParsedStatement) -> bool {
    struct Keys(bool);
    impl Visitor for Keys {
        type Break = ();
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let keys = match &select.group_by {
                GroupByExpr::Expressions(keys, _) if keys.is_empty() => return ControlFlow::Continue(()),
                GroupByExpr::Expressions(keys, _) => keys.as_slice(),
                GroupByExpr::All(_) => &[],
            };
            let is_cast = |expr: &SqlExpr| match expr {
                SqlExpr::Cast { .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            let has_casts = |key: &SqlExpr| visit_expressions(key, is_cast).is_break();
            let is_set =
                |key: &&SqlExpr| matches!(key, SqlExpr::Rollup(_) | SqlExpr::Cube(_) | SqlExpr::GroupingSets(_));
            self.0 |= keys.iter().filter(is_set).any(has_casts);
            let selected = select.projection.iter().filter_map(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                _ => None,
            });
            let mut known: HashMap<String, String> = HashMap::new();
            for expr in keys.iter().chain(selected) {
                let exact = bare(expr, false);
                self.0 |= known.entry(bare(expr, true)).or_insert_with(|| exact.clone()) != &exact;
            }
            ControlFlow::Continue(())
        }
    }
    let mut keys = Keys(false);
    let _never_breaks = match statement {
        ParsedStatement::Statement(statement) => statement.visit(&mut keys),
        ParsedStatement::Explain(explain) => return mixes_keys(&explain.statement),
        ParsedStatement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut keys),
            CopyToSource::Relation(_) => return false,
        },
        ParsedStatement::CreateExternalTable(_) | ParsedStatement::Reset(_) => return false,
    };
    keys.0
}

/// An expression without relations and parentheses, and without casts if asked to.
fn bare(expr: &SqlExpr, without_casts: bool) -> String {
    struct Bare(bool);
    impl VisitorMut for Bare {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
            let inner = match expr {
                SqlExpr::Nested(inner) => inner.as_mut(),
                SqlExpr::Cast { expr: inner, .. } if self.0 => inner.as_mut(),
                SqlExpr::CompoundIdentifier(names) => {
                    if let Some(name) = names.last() {
                        *expr = SqlExpr::Identifier(Ident::new(normal(name)));
                    }
                    return ControlFlow::Continue(());
                }
                SqlExpr::Identifier(name) => {
                    *name = Ident::new(normal(name));
                    return ControlFlow::Continue(());
                }
                _ => return ControlFlow::Continue(()),
            };
            *expr = std::mem::replace(inner, SqlExpr::Identifier(Ident::new("")));
            ControlFlow::Continue(())
        }
    }
    let mut bare = expr.clone();
    let _never_breaks = VisitMut::visit(&mut bare, &mut Bare(without_casts));
    bare.to_string()
}

/// Gives each expression that may become a column a name of its own. `taken` are names that a wildcard is known to have.
fn distinguish(statement: &mut ParsedStatement, taken: &HashSet<String>) {
    walk(statement, &mut Marker::new(taken));
}

struct Marker<'a> {
    taken: &'a HashSet<String>,
    tags: usize,
    /// Whether each expression without a name gets a tag, not only those that are spelled alike.
    is_each: bool,
    /// Equal subqueries have equal tags.
    subqueries: HashMap<String, usize>,
}

impl<'a> Marker<'a> {
    fn new(taken: &'a HashSet<String>) -> Marker<'a> {
        Marker { taken, tags: 0, is_each: false, subqueries: HashMap::new() }
    }

    fn tag(&mut self) -> String {
        self.tags += 1;
        format!("{TAG}{}{TAG}", self.tags)
    }

    fn mark(&mut self, expr: &mut SqlExpr) {
        let _never_breaks = expr.visit(&mut MarkOne { marker: self, queries: 0, within: 0 });
    }

    /// Columns of an answer that are in the way of ORDER BY: `SELECT x AS a … ORDER BY t.a`.
    fn rename_ordered(&mut self, select: &mut Select, keys: &mut [OrderByExpr]) {
        for item in &mut select.projection {
            let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
            let name = normal(alias);
            let speaks = |part: &SqlExpr| match part {
                SqlExpr::CompoundIdentifier(names)
                    if part != expr && names.last().map(normal).as_ref() == Some(&name) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            if !self.taken.contains(&name) || keys.iter().all(|key| visit_expressions(&key.expr, speaks).is_continue())
            {
                continue;
            }
            let tagged = Ident::with_quote('"', name.clone() + &self.tag());
            for key in keys.iter_mut() {
                if matches!(&key.expr, SqlExpr::Identifier(key) if normal(key) == name) {
                    key.expr = SqlExpr::Identifier(tagged.clone());
                }
            }
            *alias = tagged;
        }
    }

    /// Names that come a second time.
    fn rename(&mut self, select: &mut Select) {
        let wildcard = select.projection.iter().any(|item| {
            matches!(
                item,
                SelectItem::Wildcard(_)
                    | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _)
            )
        });
        let mut seen: HashSet<String> = HashSet::new();
        for item in &mut select.projection {
            let (name, is_named) = match item {
                SelectItem::ExprWithAlias { alias, .. } => (normal(alias), true),
                SelectItem::UnnamedExpr(SqlExpr::Identifier(name)) => (normal(name), true),
                SelectItem::UnnamedExpr(SqlExpr::CompoundIdentifier(names)) => match names.last() {
                    Some(name) => (normal(name), true),
                    None => continue,
                },
                SelectItem::UnnamedExpr(expr) => (spelled(expr), false),
                _ => continue,
            };
            let again = !seen.insert(name.clone())
                || (self.is_each && !is_named)
                || (wildcard && is_named && self.taken.contains(&name));
            if !again {
                continue;
            }
            let tag = self.tag();
            match item {
                SelectItem::ExprWithAlias { alias, .. } => *alias = Ident::with_quote('"', name + &tag),
                SelectItem::UnnamedExpr(expr) if is_named => {
                    let alias = Ident::with_quote('"', name + &tag);
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
                SelectItem::UnnamedExpr(expr) => mark(expr, "", &tag),
                _ => {}
            }
        }
    }
}

/// An expression as text, in which numbers that are equal look the same: `2.5` and `2.5e0` are one name to the planner.
fn spelled(expr: &SqlExpr) -> String {
    let mut expr = expr.clone();
    let _never_breaks = visit_expressions_mut(&mut expr, |expr| {
        if let SqlExpr::Value(value) = expr
            && let Value::Number(digits, _) = &mut value.value
            && digits.contains(['.', 'e', 'E'])
            && let Ok(number) = digits.parse::<f64>()
        {
            *digits = format!("{number:?}");
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}

impl VisitorMut for Marker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(keys) = &mut order.kind
        {
            if let SetExpr::Select(select) = query.body.as_mut() {
                self.rename_ordered(select, keys);
            }
            keys.iter_mut().for_each(|key| self.mark(&mut key.expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let Some(Distinct::On(keys)) = &mut select.distinct {
            keys.iter_mut().for_each(|key| self.mark(key));
        }
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                self.mark(expr);
            }
        }
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(|key| self.mark(key));
        }
        let conditions = select.having.iter_mut().chain(&mut select.qualify);
        conditions.for_each(|condition| self.mark(condition));
        self.rename(select);
        ControlFlow::Continue(())
    }
}

/// Marks the parts of one expression; not what its subqueries have, whose columns are their own.
struct MarkOne<'a, 'b> {
    marker: &'a mut Marker<'b>,
    queries: usize,
    within: usize,
}

impl VisitorMut for MarkOne<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut SqlExpr) -> ControlFlow<()> {
        self.within += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
        self.within -= 1;
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            SqlExpr::Cast { kind, data_type, .. } => {
                let function = match kind {
                    CastKind::Cast | CastKind::DoubleColon => "CAST",
                    CastKind::TryCast | CastKind::SafeCast => "TRY_CAST",
                };
                let end = format!(" AS {data_type})");
                mark(expr, &format!("{function}("), &end);
            }
            // Around all of it they change nothing.
            SqlExpr::Nested(inner) if self.within > 0 && groups(inner) => mark(expr, "(", ")"),
            // Their names leave out what the column is of.
            SqlExpr::BinaryOp { left, op: BinaryOperator::Arrow | BinaryOperator::LongArrow, .. } => {
                let relation = match left.as_ref() {
                    SqlExpr::CompoundIdentifier(names) => names.iter().rev().nth(1),
                    _ => None,
                };
                if let Some(relation) = relation {
                    let begin = format!("{relation}.");
                    mark(expr, &begin, "");
                }
            }
            SqlExpr::Subquery(_)
            | SqlExpr::Exists { .. }
            | SqlExpr::InSubquery { .. }
            | SqlExpr::AnyOp { .. }
            | SqlExpr::AllOp { .. } => {
                if let SqlExpr::AnyOp { right, .. } | SqlExpr::AllOp { right, .. } = expr {
                    unmark(right);
                }
                let text = expr.to_string();
                let tag = match self.marker.subqueries.get(&text) {
                    Some(tag) => format!("{TAG}{tag}{TAG}"),
                    None => {
                        let tag = self.marker.tag();
                        self.marker.subqueries.insert(text, self.marker.tags);
                        tag
                    }
                };
                mark(expr, "", &tag);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether parentheses around it may change what an expression means.
fn groups(inner: &SqlExpr) -> bool {
    let is_marked = matches!(inner, SqlExpr::BinaryOp { op: BinaryOperator::Custom(op), .. } if op == MARK);
    let is_one = matches!(
        inner,
        SqlExpr::Identifier(_) | SqlExpr::CompoundIdentifier(_) | SqlExpr::Value(_) | SqlExpr::Function(_)
    );
    !is_one && !is_marked
}

fn mark(expr: &mut SqlExpr, begin: &str, end: &str) {
    let marked = std::mem::replace(expr, SqlExpr::Identifier(Ident::new("")));
    let name = Value::SingleQuotedString(format!("{begin}{GAP}{end}"));
    *expr = SqlExpr::BinaryOp {
        left: Box::new(marked),
        op: BinaryOperator::Custom(MARK.to_owned()),
        right: Box::new(SqlExpr::Value(name.into())),
    };
}

/// Takes a mark away again: ANY and ALL want the subquery itself.
fn unmark(expr: &mut SqlExpr) {
    if let SqlExpr::BinaryOp { left, op: BinaryOperator::Custom(op), .. } = expr
        && op == MARK
    {
        *expr = std::mem::replace(left, SqlExpr::Identifier(Ident::new("")));
    }
}

/// Plans marks.
#[derive(Debug)]
pub(super) struct Marks;

impl ExprPlanner for Marks {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if !matches!(&expr.op, BinaryOperator::Custom(op) if op == MARK) {
            return Ok(PlannerResult::Original(expr));
        }
        let Expr::Literal(name, _) = &expr.right else { return internal_err!("a mark without a name") };
        let name = name.try_as_str().flatten().unwrap_or_default();
        let (begin, end) = name.split_once(GAP).unwrap_or_default();
        Ok(PlannerResult::Planned(itself(expr.left, Said::Between(begin.to_owned(), end.to_owned()))))
    }
}

/// Takes marks away when columns have their names. Within GROUPING SETS they stay: there a name cannot be kept otherwise.
#[derive(Debug)]
pub(super) struct Unmark;

impl AnalyzerRule for Unmark {
    fn name(&self) -> &str {
        "unmark"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            let rewritten = plan.map_expressions(|expr| {
                if matches!(expr, Expr::GroupingSet(_)) || !expr.exists(|part| Ok(is_mark(part)))? {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                let bare = expr.transform_up(|part| match part {
                    Expr::ScalarFunction(mut call) if is_marked(&call) => {
                        Ok(Transformed::yes(call.args.pop().unwrap_or_default()))
                    }
                    other => Ok(Transformed::no(other)),
                })?;
                Ok(bare.update_data(|expr| name.restore(expr)))
            })?;
            match rewritten.transformed {
                true => rewritten.map_data(LogicalPlan::recompute_schema),
                false => Ok(rewritten),
            }
        })?;
        Ok(rewritten.data)
    }
}

fn is_mark(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if is_marked(call))
}

fn is_marked(call: &ScalarFunction) -> bool {
    matches!(is_itself(&call.func), Some(Said::Between(..)))
}

/// Takes the tags from the names of an answer. What is stored under its names gets unique ones.
fn answer(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Copy(mut copy) => {
            copy.input = Arc::new(renamed(Arc::unwrap_or_clone(copy.input), true)?);
            Ok(LogicalPlan::Copy(copy))
        }
        LogicalPlan::Ddl(DdlStatement::CreateView(mut view)) => {
            view.input = Arc::new(renamed(Arc::unwrap_or_clone(view.input), true)?);
            Ok(LogicalPlan::Ddl(DdlStatement::CreateView(view)))
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            table.input = Arc::new(renamed(Arc::unwrap_or_clone(table.input), true)?);
            Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
        }
        LogicalPlan::Ddl(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::DescribeTable(_) => Ok(plan),
        query => renamed(query, false),
    }
}

fn renamed(plan: LogicalPlan, unique: bool) -> Result<LogicalPlan> {
    let shown: Vec<String> = plan.schema().fields().iter().map(|field| without_tags(field.name())).collect();
    let names = if unique { unique_names(&shown) } else { shown };
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    // Each column has a relation of its own, so that a name may come again.
    let columns = columns.into_iter().zip(names).enumerate().map(|(place, (column, name))| match unique {
        true => column.alias(name),
        false => column.alias_qualified(Some(TableReference::bare(format!("column {place}"))), name),
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// A name without what told it apart.
pub(super) fn without_tags(name: &str) -> String {
    name.split(TAG).step_by(2).collect()
}

/// Names of which none comes twice: `a`, `a`, `a_1` are `a`, `a_2`, `a_1`.
pub fn unique_names(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<&str> = HashSet::new();
    let first: Vec<bool> = names.iter().map(|name| taken.insert(name)).collect();
    let mut given: HashSet<String> = HashSet::new();
    let others = |name: &str, first: bool| {
        let mut candidates = (1..).map(|number: u64| format!("{name}_{number}"));
        match first {
            true => name.to_owned(),
            false => candidates
                .find(|candidate| !taken.contains(candidate.as_str()) && given.insert(candidate.clone()))
                .unwrap_or_default(),
        }
    };
    names
        .iter()
        .zip(first)
        .map({
            let mut others = others;
            move |(name, first)| others(name, first)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::{cast, col, table_scan};

    use super::*;

    #[test]
    fn unique_names_spare_those_that_are_there() {
        let names = |names: &[&str]| unique_names(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["a", "b"]), ["a", "b"]);
        assert_eq!(names(&["a", "a", "a_1", "a"]), ["a", "a_2", "a_1", "a_3"]);
        assert_eq!(names(&["a", "a", "a_1", "a_1"]), ["a", "a_2", "a_1", "a_1_1"]);
    }

    /// Fails when DataFusion tells casts apart by their names: then marks of casts are no longer needed.
    #[test]
    fn casts_are_still_forgotten_in_names() {
        let schema = Schema::new(vec![Field::new("x", DataType::Float64, true)]);
        let refused = table_scan(Some("t"), &schema, None)
            .and_then(|plan| plan.project(vec![cast(col("x"), DataType::Int64), col("x")]));
        assert!(refused.is_err());
    }
}
