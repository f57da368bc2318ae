//! `JOIN … USING (a)` and `NATURAL JOIN`: one column `a` of both sides.
//!
//! In SQL an unqualified `a` above such a join is `coalesce(t.a, u.a)`, `SELECT *` shows it once and first, and `t.a` and `u.a`
//! stay what the sides say. DataFusion (55.2) takes the left side's column for `a`, which is NULL for rows that only the
//! right side of a RIGHT or FULL join has; `*` takes the side whose name sorts first, three joins over one column are
//! "ambiguous", and a USING inside of a subquery takes columns from the `*` outside of it.
//! (apache/datafusion: the canaries in `upstream.rs` tell when that changes.)
//!
//! The statement is rewritten before planning, each such join is planned here, and what stands above is DataFusion's again:
//!
//! ```text
//! t FULL JOIN u USING (a) JOIN v ON …       (t FULL JOIN u USING (a)) JOIN v ON …     the parentheses are marked: MARK
//! t.a, u.a                                  "t.a (own)", "u.a (own)"                  where they differ from `a`
//! *                                         * EXCLUDE ("t.a (own)", …)
//! u.*                                       "u.a (own)" AS a, u.y
//!
//! marked (t FULL JOIN u USING (a))          SELECT coalesce(t.a, u.a) AS t.a, t.x, u.y, t.a AS "t.a (own)", … FROM … ON t.a = u.a
//! ```
//!
//! So the schema has one `a`, and every clause and every correlated subquery finds it. In INNER and LEFT joins it is the column
//! of the left side, and the projection costs nothing. The sides' own columns are kept only if the statement names them. Which
//! columns a NATURAL join shares, and what `u.*` holds, is known only after planning: such a statement is planned twice ([`plan`]).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::FieldMetadata;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{DdlStatement, Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, lit};
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr as SqlExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned, TableAlias, TableFactor, TableWithJoins,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::sql::diagnostic::{error_at, help_if_none};
use crate::sql::names;
use crate::sql::scope::normal;

/// The alias of a join that is planned here begins so; its number follows. Nobody types this character.
const MARK: &str = "\u{1}join ";

/// What the name of a column of a side's own ends with.
pub(super) const OWN: &str = " (own)";

/// Plans a statement in which relation arguments are rewritten already.
pub(super) async fn plan(state: SessionState, statement: &ParsedStatement) -> Result<LogicalPlan> {
    let learnt = Arc::new(Mutex::new(HashMap::new()));
    let mut known = HashMap::new();
    loop {
        let mut statement = statement.clone();
        let mut pass =
            Pass { known: &known, next: 0, scopes: vec![], inside: vec![], waits: false, own: vec![], of: vec![] };
        visit(&mut statement, &mut pass)?;
        let (waits, joins) = (pass.waits, Joins { own: pass.own, of: pass.of, learnt: Arc::clone(&learnt) });
        if joins.of.is_empty() {
            return names::plan(&state, statement).await;
        }
        let mut of_this_pass = state.clone();
        of_this_pass.register_relation_planner(Arc::new(joins))?;
        let planned = names::plan(&of_this_pass, statement).await;
        let now_known = learnt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Each round learns of one more join at least, or the last one said what is wrong.
        if !waits || now_known.len() <= known.len() {
            return shown_names(planned?);
        }
        known = now_known;
    }
}

fn visit(statement: &mut ParsedStatement, pass: &mut Pass<'_>) -> Result<()> {
    let flow = match statement {
        ParsedStatement::Statement(statement) => statement.as_mut().visit(pass),
        ParsedStatement::Explain(explain) => return visit(&mut explain.statement, pass),
        ParsedStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.as_mut().visit(pass),
            CopyToSource::Relation(_) => return Ok(()),
        },
        ParsedStatement::CreateExternalTable(_) | ParsedStatement::Reset(_) => return Ok(()),
    };
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// What planning told of a join: the columns of its sides, with their relations, and what they share.
#[derive(Debug, Clone)]
struct Sides {
    columns: Vec<(Option<String>, String)>,
    keys: Vec<String>,
}

/// A column of a side's own, `relation.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    relation: String,
    name: String,
}

impl Own {
    fn column(&self) -> String {
        format!("{}.{}{OWN}", self.relation, self.name)
    }

    fn ident(&self, span: Span) -> Ident {
        Ident { value: self.column(), quote_style: Some('"'), span }
    }
}

/// One way through a statement: marks joins and renames columns.
struct Pass<'a> {
    known: &'a HashMap<usize, Sides>,
    /// The number of the next join.
    next: usize,
    scopes: Vec<Scope>,
    /// The joins in whose sides or conditions we are.
    inside: Vec<usize>,
    /// Whether something is still to be learnt.
    waits: bool,
    /// For each scope, the columns of the sides' own that it names.
    own: Vec<Vec<Own>>,
    /// For each join, its scope.
    of: Vec<usize>,
}

/// A SELECT with the query's ORDER BY.
struct Scope {
    number: usize,
    /// The names of the relations in FROM.
    relations: Vec<String>,
    /// What an unqualified name no longer means from a join on.
    hidden: Vec<(Own, usize)>,
    /// The numbers of its joins, and the names that they share.
    joins: Vec<usize>,
    keys: Vec<String>,
    ends: Ends,
}

/// A SELECT that is a query's body shares its names with the ORDER BY of the query; a branch of a UNION has them for itself.
enum Ends {
    WithQuery { is_entered: bool },
    WithSelect,
}

impl Scope {
    fn new(number: usize, ends: Ends) -> Self {
        Scope { number, relations: vec![], hidden: vec![], joins: vec![], keys: vec![], ends }
    }
}

impl VisitorMut for Pass<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        match query.body.as_mut() {
            SetExpr::Select(select) => self.enter(select, Ends::WithQuery { is_entered: false }),
            _ => self.scopes.push(Scope::new(0, Ends::WithQuery { is_entered: true })),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let scope = self.scopes.pop();
        if let (SetExpr::Select(select), Some(scope)) = (query.body.as_mut(), scope) {
            self.leave(select, &scope);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        match self.scopes.last_mut().map(|scope| &mut scope.ends) {
            Some(Ends::WithQuery { is_entered }) if !*is_entered => *is_entered = true,
            _ => self.enter(select, Ends::WithSelect),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if let Some(scope) = self.scopes.pop_if(|scope| matches!(scope.ends, Ends::WithSelect)) {
            self.leave(select, &scope);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        self.inside.extend(number_of(factor));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if number_of(factor).is_some() {
            self.inside.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Self::Break> {
        if let SqlExpr::CompoundIdentifier(parts) = expr
            && let Some(own) = self.hidden(parts)
        {
            *expr = SqlExpr::Identifier(own.ident(expr.span()));
        }
        ControlFlow::Continue(())
    }
}

impl Pass<'_> {
    fn enter(&mut self, select: &mut Select, ends: Ends) {
        let mut scope = Scope::new(self.own.len(), ends);
        self.own.push(vec![]);
        for from in &mut select.from {
            let relations = self.joins(from, &mut scope);
            scope.relations.extend(relations);
        }
        let has_joins = !scope.joins.is_empty();
        self.scopes.push(scope);
        if has_joins {
            self.name_items(select);
        }
    }

    fn leave(&mut self, select: &mut Select, scope: &Scope) {
        for item in &mut select.projection {
            if let SelectItem::Wildcard(options) = item {
                exclude(options, &self.own[scope.number]);
            }
        }
    }

    /// Marks the joins of an element of FROM; answers the names of its relations.
    fn joins(&mut self, from: &mut TableWithJoins, scope: &mut Scope) -> Vec<String> {
        let mut relations = self.relations(&mut from.relation, scope);
        let mut pending: Vec<Join> = vec![];
        for mut join in std::mem::take(&mut from.joins) {
            let right = self.relations(&mut join.relation, scope);
            if let Some((kind, constraint)) = shares(&join) {
                let number = self.next;
                self.next += 1;
                self.of.push(scope.number);
                scope.joins.push(number);
                let keys = match constraint {
                    JoinConstraint::Using(names) => names.iter().filter_map(name_of).collect(),
                    _ => match self.known.get(&number) {
                        Some(sides) => sides.keys.clone(),
                        None => {
                            self.waits = true;
                            vec![]
                        }
                    },
                };
                scope.keys.extend(keys.iter().cloned());
                let left = matches!(kind, JoinType::Right | JoinType::Full).then_some(relations.iter());
                for relation in left.into_iter().flatten().chain(&right) {
                    for name in &keys {
                        let own = Own { relation: relation.clone(), name: name.clone() };
                        if !scope.hidden.iter().any(|(known, _)| *known == own) {
                            scope.hidden.push((own, number));
                        }
                    }
                }
                let mut left = std::mem::replace(&mut from.relation, nothing());
                if !pending.is_empty() {
                    left = nested(TableWithJoins { relation: left, joins: std::mem::take(&mut pending) }, None);
                }
                let mark = TableAlias {
                    explicit: true,
                    name: Ident::new(format!("{MARK}{number}")),
                    columns: vec![],
                    at: None,
                };
                from.relation = nested(TableWithJoins { relation: left, joins: vec![join] }, Some(mark));
            } else {
                pending.push(join);
            }
            relations.extend(right);
        }
        from.joins = pending;
        relations
    }

    /// The names by which columns of a factor are qualified.
    fn relations(&mut self, factor: &mut TableFactor, scope: &mut Scope) -> Vec<String> {
        let alias_or = |alias: &Option<TableAlias>, name: Option<String>| {
            alias.as_ref().map(|alias| normal(&alias.name)).or(name).into_iter().collect()
        };
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let inner = self.joins(table_with_joins, scope);
                alias.as_ref().map_or(inner, |alias| vec![normal(&alias.name)])
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                alias_or(alias, name.0.last().and_then(|part| part.as_ident()).map(normal))
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias_or(alias, None),
            _ => vec![],
        }
    }

    /// Items of a SELECT keep the names of the columns that they show, and `u.*` becomes its columns.
    fn name_items(&mut self, select: &mut Select) {
        let mut items = vec![];
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    match self.columns_of(&name, &options) {
                        Some(columns) => items.extend(columns),
                        None => items.push(SelectItem::QualifiedWildcard(
                            SelectItemQualifiedWildcardKind::ObjectName(name),
                            options,
                        )),
                    }
                }
                other => items.push(other),
            }
        }
        let names: Vec<Option<String>> = items.iter().map(shown_name).collect();
        let is_single =
            |name: &String| names.iter().filter(|other| other.as_ref().is_none_or(|other| other == name)).count() == 1;
        for (item, name) in items.iter_mut().zip(&names) {
            let (SelectItem::UnnamedExpr(SqlExpr::CompoundIdentifier(parts)), Some(name)) = (&*item, name) else {
                continue;
            };
            let span = parts.last().map_or(Span::empty(), |part| part.span);
            let quoted = |value: String| Ident { value, quote_style: Some('"'), span };
            if let Some(own) = self.hidden(parts) {
                if is_single(name) {
                    let expr = SqlExpr::Identifier(own.ident(span));
                    *item = SelectItem::ExprWithAlias { expr, alias: quoted(name.clone()) };
                }
            } else if let [.., relation, _] = parts.as_slice()
                && self.scopes.last().is_some_and(|scope| scope.keys.contains(name))
                && !is_single(name)
            {
                // The same column as the unqualified one.
                let own = Own { relation: normal(relation), name: name.clone() };
                let expr = SqlExpr::CompoundIdentifier(parts.clone());
                *item = SelectItem::ExprWithAlias { expr, alias: quoted(own.column()) };
            }
        }
        select.projection = items;
    }

    /// The columns of `u.*` where some of them stand elsewhere.
    fn columns_of(&mut self, name: &ObjectName, options: &WildcardAdditionalOptions) -> Option<Vec<SelectItem>> {
        let ident = name.0.last()?.as_ident()?;
        let relation = normal(ident);
        let scope = self.scopes.last()?;
        if !scope.relations.contains(&relation) || options.opt_ilike.is_some() || options.opt_replace.is_some() {
            return None;
        }
        let is_of = |column: &&(Option<String>, String)| column.0.as_ref() == Some(&relation);
        let sides = scope.joins.iter().find_map(|join| match self.known.get(join) {
            None => Some(None),
            Some(sides) => sides.columns.iter().any(|column| is_of(&column)).then_some(Some(sides)),
        });
        let sides = match sides? {
            Some(sides) => sides,
            None => {
                self.waits = true;
                return None;
            }
        };
        let left_out = excluded(options);
        let columns: Vec<String> = sides.columns.iter().filter(is_of).map(|column| column.1.clone()).collect();
        let kept = columns.into_iter().filter(|column| !left_out.contains(column));
        let quoted = |value: String| Ident { value, quote_style: Some('"'), span: ident.span };
        Some(
            kept.map(|column| {
                SelectItem::UnnamedExpr(SqlExpr::CompoundIdentifier(vec![quoted(relation.clone()), quoted(column)]))
            })
            .collect(),
        )
    }

    /// The side's own column that a qualified name means, if it goes by another name here.
    fn hidden(&mut self, parts: &[Ident]) -> Option<Own> {
        let [.., relation, name] = parts else { return None };
        let own = Own { relation: normal(relation), name: normal(name) };
        let scope = self.scopes.iter().rev().find(|scope| scope.relations.contains(&own.relation))?;
        let (_, join) = scope.hidden.iter().find(|(known, _)| *known == own)?;
        if self.inside.contains(join) {
            return None;
        }
        let named = &mut self.own[scope.number];
        if !named.contains(&own) {
            named.push(own.clone());
        }
        Some(own)
    }
}

/// Plans the marked joins.
#[derive(Debug)]
struct Joins {
    own: Vec<Vec<Own>>,
    of: Vec<usize>,
    learnt: Arc<Mutex<HashMap<usize, Sides>>>,
}

impl RelationPlanner for Joins {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(number) = number_of(&relation) else { return Ok(RelationPlanning::Original(Box::new(relation))) };
        let TableFactor::NestedJoin { table_with_joins, .. } = relation else {
            return datafusion::common::internal_err!("a mark on no join");
        };
        let TableWithJoins { relation, mut joins } = *table_with_joins;
        let Some(join) = joins.pop() else { return datafusion::common::internal_err!("a mark without a join") };
        let span = join.relation.span();
        let Some((kind, constraint)) = shares(&join).map(|(kind, constraint)| (kind, constraint.clone())) else {
            return datafusion::common::internal_err!("a mark on a join without USING");
        };
        let (left, right) = match is_lateral(&join.relation) {
            true => beside(relation, join.relation, kind, context)?,
            false => (context.plan(relation)?, context.plan(join.relation)?),
        };
        let keys: Vec<(Span, String)> = match &constraint {
            JoinConstraint::Using(names) => names
                .iter()
                .filter_map(|name| name.0.first()?.as_ident().cloned())
                .map(|ident| (ident.span, context.normalize_ident(ident)))
                .collect(),
            _ => common_columns(left.schema(), right.schema()).into_iter().map(|name| (span, name)).collect(),
        };
        self.learn(number, &left, &right, &keys);
        let own = self.of.get(number).and_then(|scope| self.own.get(*scope)).map_or(&[][..], Vec::as_slice);
        let plan = joined(left, right, kind, &keys, own)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

impl Joins {
    fn learn(&self, number: usize, left: &LogicalPlan, right: &LogicalPlan, keys: &[(Span, String)]) {
        let columns = [left, right].into_iter().flat_map(|side| {
            side.schema()
                .iter()
                .map(|(relation, field)| (relation.map(|relation| relation.table().to_owned()), field.name().clone()))
        });
        let sides = Sides { columns: columns.collect(), keys: keys.iter().map(|(_, name)| name.clone()).collect() };
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).insert(number, sides);
    }
}

/// The sides of a join whose right one may speak of the left one. DataFusion lets it in joins only, so it plans one of all pairs.
fn beside(
    left: TableFactor,
    right: TableFactor,
    kind: JoinType,
    context: &mut dyn RelationPlannerContext,
) -> Result<(LogicalPlan, LogicalPlan)> {
    let span = right.span();
    let join = Join { relation: right, global: false, join_operator: JoinOperator::CrossJoin(JoinConstraint::None) };
    let pairs = context.plan(nested(TableWithJoins { relation: left, joins: vec![join] }, None))?;
    let LogicalPlan::Join(pairs) = pairs else {
        return datafusion::common::internal_err!("a join that is none");
    };
    let (left, right) = (Arc::unwrap_or_clone(pairs.left), Arc::unwrap_or_clone(pairs.right));
    let speaks = match &right {
        LogicalPlan::SubqueryAlias(alias) => matches!(alias.input.as_ref(), LogicalPlan::Subquery(_)),
        other => matches!(other, LogicalPlan::Subquery(_)),
    };
    if speaks && matches!(kind, JoinType::Right | JoinType::Full) {
        let message = "the right side of a RIGHT or FULL JOIN cannot speak of the left side: it has rows without one";
        return Err(error_at(span, message.to_owned(), "LEFT JOIN LATERAL keeps the rows of the left side"));
    }
    Ok((left, right))
}

fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    keys: &[(Span, String)],
    own: &[Own],
) -> Result<LogicalPlan> {
    let mut pairs = vec![];
    for (at, (span, name)) in keys.iter().enumerate() {
        if keys[..at].iter().any(|(_, other)| other == name) {
            return Err(error_at(*span, format!("USING has `{name}` twice"), "name each column once"));
        }
        let of = |side: &LogicalPlan| {
            let found = side.schema().qualified_field_with_unqualified_name(name);
            found
                .map(|(relation, field)| (Column::new(relation.cloned(), name), Arc::clone(field)))
                .map_err(|error| help_if_none(error, *span, None))
        };
        pairs.push((of(&left)?, of(&right)?));
    }
    let names = |schema: &DFSchema| schema.columns().into_iter().collect::<Vec<Column>>();
    let (of_left, of_right) = (names(left.schema()), names(right.schema()));
    let (left_keys, right_keys): (Vec<Column>, Vec<Column>) =
        pairs.iter().map(|((left, _), (right, _))| (left.clone(), right.clone())).unzip();
    let builder = LogicalPlanBuilder::from(left);
    let join = match (pairs.is_empty(), kind) {
        (true, JoinType::Inner) => builder.cross_join(right)?,
        (true, _) => builder.join_on(right, kind, [lit(true)])?,
        (false, _) => builder.join(right, kind, (left_keys.clone(), right_keys.clone()), None)?,
    };
    let column = |column: &Column| Expr::Column(column.clone());
    let mut columns = vec![];
    for ((left, left_field), (right, right_field)) in &pairs {
        let same_type = left_field.data_type() == right_field.data_type();
        let merged = match kind {
            JoinType::Right if same_type => column(right),
            JoinType::Right => coalesce(vec![column(right), column(left)]),
            JoinType::Full => coalesce(vec![column(left), column(right)]),
            _ => {
                columns.push(column(left));
                continue;
            }
        };
        // A time of both sides is a time.
        let metadata = (left_field.metadata() == right_field.metadata() && !left_field.metadata().is_empty())
            .then(|| FieldMetadata::from(left_field.metadata()));
        columns.push(merged.alias_qualified_with_metadata(left.relation.clone(), &left.name, metadata));
    }
    columns.extend(of_left.iter().filter(|name| !left_keys.contains(name)).map(column));
    columns.extend(of_right.iter().filter(|name| !right_keys.contains(name)).map(column));
    for own in own {
        let is_it = |side: &Column| {
            side.name == own.name && side.relation.as_ref().is_some_and(|relation| relation.table() == own.relation)
        };
        let own_name = own.column();
        let is_there = of_left.iter().chain(&of_right).any(|column| column.name == own_name);
        let left_too = if matches!(kind, JoinType::Right | JoinType::Full) { left_keys.as_slice() } else { &[] };
        let found = left_too.iter().chain(&right_keys).find(|key| is_it(key));
        if let Some(key) = found.filter(|_| !is_there) {
            columns.push(column(key).alias(own_name));
        }
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(join.build()?))?))
}

/// The names that both sides have, in the order of the left one.
fn common_columns(left: &DFSchema, right: &DFSchema) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for field in left.fields() {
        if right.fields().iter().any(|other| other.name() == field.name()) && !names.contains(field.name()) {
            names.push(field.name().clone());
        }
    }
    names
}

/// Columns of the sides' own show their plain names in answers.
fn shown_names(plan: LogicalPlan) -> Result<LogicalPlan> {
    let has_input = matches!(
        plan,
        LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::CreateMemoryTable(_))
    );
    if has_input {
        return Ok(plan.map_children(|input| shown_names(input).map(Transformed::yes))?.data);
    }
    if !plan.schema().fields().iter().any(|field| field.name().contains(OWN)) {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().map(|column| {
        let Some(name) = column.name.strip_suffix(OWN).and_then(|name| name.rsplit_once('.')) else {
            let name = column.name.replace(OWN, "");
            let is_other = name != column.name && !plan.schema().has_column_with_unqualified_name(&name);
            return if is_other { Expr::Column(column).alias(name) } else { Expr::Column(column) };
        };
        let (relation, name) = (format!("{}{OWN}", name.0), name.1.to_owned());
        Expr::Column(column).alias_qualified(Some(TableReference::bare(relation)), name)
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(plan.clone()))?))
}

/// Whether a side of a join may speak of the relations before it.
fn is_lateral(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Derived { lateral, .. } | TableFactor::Function { lateral, .. } => *lateral,
        TableFactor::UNNEST { .. } => true,
        _ => false,
    }
}

/// The kind of a join that shares columns, with its constraint. Semi and anti joins show the columns of one side only.
fn shares(join: &Join) -> Option<(JoinType, &JoinConstraint)> {
    let (kind, constraint) = match &join.join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (JoinType::Inner, constraint),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (JoinType::Left, constraint),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (JoinType::Right, constraint),
        JoinOperator::FullOuter(constraint) => (JoinType::Full, constraint),
        _ => return None,
    };
    let is_sharing = match constraint {
        JoinConstraint::Using(names) => names.iter().all(|name| name.0.len() == 1),
        JoinConstraint::Natural => true,
        JoinConstraint::On(_) | JoinConstraint::None => false,
    };
    is_sharing.then_some((kind, constraint))
}

fn number_of(factor: &TableFactor) -> Option<usize> {
    let TableFactor::NestedJoin { alias: Some(alias), .. } = factor else { return None };
    alias.name.value.strip_prefix(MARK)?.parse().ok()
}

fn nested(table_with_joins: TableWithJoins, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::NestedJoin { table_with_joins: Box::new(table_with_joins), alias }
}

/// Stands for a moment where a factor is taken away.
fn nothing() -> TableFactor {
    TableFactor::TableFunction { expr: SqlExpr::Identifier(Ident::new("")), alias: None }
}

fn name_of(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(normal)
}

/// The name of an item in the answer; `None`: any.
fn shown_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(SqlExpr::Identifier(name)) | SelectItem::ExprWithAlias { alias: name, .. } => {
            Some(normal(name))
        }
        SelectItem::UnnamedExpr(SqlExpr::CompoundIdentifier(parts)) => parts.last().map(normal),
        SelectItem::UnnamedExpr(other) => Some(other.to_string()),
        _ => None,
    }
}

fn excluded(options: &WildcardAdditionalOptions) -> Vec<String> {
    let mut names = vec![];
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => names.extend(name_of(name)),
        Some(ExcludeSelectItem::Multiple(list)) => names.extend(list.iter().filter_map(name_of)),
        None => {}
    }
    if let Some(ExceptSelectItem { first_element, additional_elements }) = &options.opt_except {
        names.extend(std::iter::once(first_element).chain(additional_elements).map(normal));
    }
    names
}

fn exclude(options: &mut WildcardAdditionalOptions, own: &[Own]) {
    if own.is_empty() {
        return;
    }
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => vec![],
    };
    names.extend(own.iter().map(|own| ObjectName::from(vec![own.ident(Span::empty())])));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
}
