//! Rewriting the arguments of relation functions, before planning.
//!
//! DataFusion looks up the tables of a statement before it plans, by walking over its relations. In `critical_path(tasks)`
//! the parser sees an expression, so `tasks` would not be found. This pass makes relations of such arguments, and adds
//! those that were left out:
//!
//! ```text
//! critical_path()                        critical_path(tasks => (SELECT * FROM program_tasks), links => (SELECT * FROM links))
//! critical_path(t, TABLE(main.links))    critical_path((SELECT * FROM t), (SELECT * FROM main.links))
//! critical_path(TABLE(SELECT …), 'l')    critical_path((SELECT …), (SELECT * FROM l))
//! critical_path(slack(t), links => l)    critical_path((SELECT * FROM slack((SELECT * FROM t), …)), links => (…))
//! FROM TABLE(f(x)) · LATERAL f(x)        FROM f(x)
//! ```
//!
//! `tasks` that were left out are those of the program, without what its recorder wrote of itself, unless the statement has
//! a relation of that name. Inputs that were left out are marked by [`FunctionArg::ExprNamed`], which the parser makes for no call in our dialect.
//! Names keep their places in the text, so that errors point at them. What is wrong with a call is not said here but by
//! the planner, [`super::relations`], which sees the same arguments.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, Ident, ObjectName, Query, Select,
    SetExpr, Spanned, Statement, TableFactor, TableFunctionArgs, TableSampleKind, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, Tokenizer};
use tq_udfs::relation::{Omitted, Parameter, RelationFunction};

use crate::sql::arrays;
use crate::sql::created;
use crate::sql::decimals;
use crate::sql::diagnostic::error_at;
use crate::sql::dialect::TqDialect;
use crate::sql::immutable::refuse_changes;
use crate::sql::listed;
use crate::sql::perfetto;
use crate::sql::quantified;
use crate::sql::relations::{RelationFunctions, parameter_of};
use crate::sql::rows;
use crate::sql::rows_of_lists;
use crate::sql::scope::{self, Scopes};
use crate::sql::set_operations;
use crate::sql::settings;
use crate::sql::sorted;
use crate::sql::spelling;
use crate::sql::typed_values;
use crate::sql::unnested;
use crate::sql::unread;
use crate::sql::windows;
use crate::tables::{PROGRAM_TASKS, Table};

/// Rewrites a statement, also within EXPLAIN, COPY, CREATE VIEW and PREPARE. `SHOW tq.…` and `SHOW TABLES` become queries. TABLESAMPLE is
/// refused: DataFusion would ignore it and answer all rows. So are changes of what was read from a trace.
pub fn rewrite(statement: &mut ParsedStatement, known: &Known) -> Result<()> {
    match statement {
        ParsedStatement::Statement(statement) => {
            check_statement(statement)?;
            if let Statement::ShowVariable { variable } = statement.as_ref()
                && let Some(query) = settings::show(variable)?
            {
                **statement = query;
            }
            if let Some(query) = listed::tables(statement)? {
                **statement = query;
            }
            visit(statement.as_mut(), known)
        }
        ParsedStatement::Explain(explain) => {
            if let ParsedStatement::Statement(explained) = explain.statement.as_ref() {
                unread::check_explained(explained, explain.options.analyze)?;
            }
            rewrite(&mut explain.statement, known)
        }
        ParsedStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => visit(query.as_mut(), known),
            CopyToSource::Relation(_) => Ok(()),
        },
        ParsedStatement::CreateExternalTable(create) => {
            created::check_order(create)?;
            created::check(&create.columns, &create.constraints, true)
        }
        ParsedStatement::Reset(_) => Ok(()),
    }
}

/// Refuses a statement, prepared or not, that changes what must not change, or that has clauses which planning ignores.
fn check_statement(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Prepare { statement, .. } => return check_statement(statement),
        Statement::Explain { statement, analyze, .. } => {
            unread::check_explained(statement, *analyze)?;
            return check_statement(statement);
        }
        _ => {}
    }
    refuse_changes(statement)?;
    unread::check_change(statement)?;
    unread::check_into(statement)?;
    if let Statement::CreateTable(create) = statement {
        for column in &mut create.columns {
            unread::read_precision(&mut column.data_type, column.name.span)?;
        }
        created::check(&create.columns, &create.constraints, false)?;
    }
    Ok(())
}

/// What a session has that calls of functions are read with.
pub struct Known {
    /// The table that stands for `tasks` that were left out.
    default_tasks: &'static str,
    functions: Arc<RelationFunctions>,
    session: SessionContext,
}

impl Known {
    /// Sessions have a view of the program's tasks; a context that somebody else set up may have just `tasks`.
    pub(super) fn of(context: &SessionContext) -> Known {
        let has_view = context.table_exist(PROGRAM_TASKS).unwrap_or(false);
        let default_tasks = if has_view { PROGRAM_TASKS } else { Table::Tasks.name() };
        Known { default_tasks, functions: RelationFunctions::of(context), session: context.clone() }
    }
}

fn visit(part: &mut impl VisitMut, known: &Known) -> Result<()> {
    match part.visit(&mut Rewriter { scopes: Scopes::default(), known }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Rewriter<'a> {
    scopes: Scopes,
    known: &'a Known,
}

impl VisitorMut for Rewriter<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        let entered = self.scopes.enter(query);
        if let Err(error) = entered
            .and_then(|()| spelling::check_query(query))
            .and_then(|()| spelling::fetch(query))
            .and_then(|()| windows::rewrite_order(query))
            .and_then(|()| sorted::rewrite_order(query))
            .and_then(|()| unnested::rewrite(query))
        {
            return ControlFlow::Break(error);
        }
        if self.scopes.is_nested() {
            spelling::limit_for_offset(query);
        }
        rows_of_lists::named(query);
        typed_values::rewrite(query);
        spelling::order_of_distinct(query);
        spelling::order_of_columns(query);
        spelling::order_of_groups(query);
        set_operations::rewrite(query)
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<DataFusionError> {
        match self.scopes.leave() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        let rewritten = unread::check_wildcards(select)
            .and_then(|()| scope::refuse_same_names(select))
            .and_then(|()| perfetto::relations_of_columns(select))
            .and_then(|()| spelling::rewrite(select))
            .and_then(|()| rows::rewrite_where(select))
            .and_then(|()| windows::rewrite(select))
            .map(|()| sorted::rewrite_groups(select));
        match rewritten {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if let Expr::Function(call) = expr {
            if let Err(error) = unread::check_call(call, &self.known.session) {
                return ControlFlow::Break(error);
            }
            self.scopes.call(call);
            sorted::rewrite_call(call);
        }
        quantified::rewrite(expr);
        match unread::read_type(expr)
            .and_then(|()| spelling::rewrite_expression(expr))
            .and_then(|()| arrays::rewrite(expr))
            .and_then(|()| rows::rewrite(expr))
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        decimals::without_scale(expr);
        ControlFlow::Continue(())
    }

    /// Called for outer factors first; a nested call that becomes a subquery here is met again inside it.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        match rewrite_factor(factor, self) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn rewrite_factor(factor: &mut TableFactor, within: &mut Rewriter<'_>) -> Result<()> {
    let sample = match &*factor {
        TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => sample.as_ref(),
        _ => None,
    };
    if let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample {
        return Err(error_at(
            factor.span(),
            format!("`{sample}` is not supported"),
            "sample by a condition, for example `WHERE task % 10 = 0`",
        ));
    }
    refuse_hints(factor)?;
    unread::check_relation(factor)?;
    rows_of_lists::rewrite(factor)?;
    call_instead_of_wrapper(factor, &within.known.functions);
    perfetto::relation_of_one(factor)?;
    let TableFactor::Table { name, args, alias, .. } = factor else { return Ok(()) };
    let Some(arguments) = args else { return within.scopes.relation(name, alias) };
    let Some(function) = within.known.functions.find(name) else { return Ok(()) };
    let span = name.span();
    rewrite_arguments(function.as_ref(), &mut arguments.args, span, within)
}

/// Refuses what other engines have behind the name of a table, and DataFusion passes over.
fn refuse_hints(factor: &TableFactor) -> Result<()> {
    let TableFactor::Table { name, with_hints, partitions, index_hints, version, .. } = factor else { return Ok(()) };
    let refused =
        |what: &str, hint: &str| Err(error_at(name.span(), format!("`{name} {what}` is not supported"), hint));
    if !partitions.is_empty() {
        return refused("PARTITION (…)", "a condition says which rows are meant: `WHERE run = 'a'`");
    }
    if let Some(version) = version {
        return refused(&version.to_string(), "a trace has no other versions; open the other file and name its run");
    }
    if !with_hints.is_empty() || !index_hints.is_empty() {
        return refused("WITH (…)", "leave the hint out: tables of a trace have neither locks nor indexes");
    }
    Ok(())
}

/// `TABLE(f(x))` and `LATERAL f(x)` are `f(x)`: a relation function takes no columns of its neighbours.
fn call_instead_of_wrapper(factor: &mut TableFactor, functions: &RelationFunctions) {
    let (name, args, alias) = match factor {
        TableFactor::TableFunction { expr: Expr::Function(call), alias } => match &call.args {
            FunctionArguments::List(list) => (call.name.clone(), list.args.clone(), alias.clone()),
            _ => return,
        },
        TableFactor::Function { name, args, alias, with_ordinality: false, .. } if functions.find(name).is_some() => {
            (name.clone(), args.clone(), alias.clone())
        }
        _ => return,
    };
    let mut call = table(name, Some(args));
    if let TableFactor::Table { alias: of_call, .. } = &mut call {
        *of_call = alias;
    }
    *factor = call;
}

fn rewrite_arguments(
    function: &dyn RelationFunction,
    arguments: &mut Vec<FunctionArg>,
    span: Span,
    within: &Rewriter<'_>,
) -> Result<()> {
    let mut given = vec![];
    let mut position = 0;
    for argument in arguments.iter_mut() {
        let parameter = parameter_of(function, argument, &mut position);
        let Some(Parameter::Input(input)) = parameter else { continue };
        given.push(input.name);
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        | FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. } = argument
        {
            relation(value)?;
        }
    }
    for input in function.inputs() {
        if let Omitted::Table(default) = input.omitted
            && !given.contains(&input.name)
        {
            let of_program = default == Table::Tasks.name() && !within.scopes.names(default);
            let default = if of_program { within.known.default_tasks } else { default };
            let default = table(ObjectName::from(vec![Ident::with_span(span, default)]), None);
            arguments.push(FunctionArg::ExprNamed {
                name: Expr::Identifier(Ident::with_span(span, input.name)),
                arg: FunctionArgExpr::Expr(select_all(&default)?),
                operator: FunctionArgOperator::RightArrow,
            });
        }
    }
    Ok(())
}

/// Makes a subquery of an argument that names a relation; leaves others to the planner, which refuses them.
fn relation(value: &mut Expr) -> Result<()> {
    let replaced = match value {
        Expr::Identifier(name) => Some(select_all(&table(ObjectName::from(vec![name.clone()]), None))?),
        Expr::CompoundIdentifier(names) => Some(select_all(&table(ObjectName::from(names.clone()), None))?),
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(name) => Some(select_all(&table(quoted_name(name, literal.span), None))?),
            _ => None,
        },
        Expr::Function(call) => match &mut call.args {
            FunctionArguments::Subquery(query) if is_table_keyword(&call.name) => Some(Expr::Subquery(query.clone())),
            FunctionArguments::List(list) if is_table_keyword(&call.name) => match list.args.as_mut_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => {
                    relation(inner)?;
                    Some(inner.clone())
                }
                _ => None,
            },
            FunctionArguments::List(list) => Some(select_all(&table(call.name.clone(), Some(list.args.clone())))?),
            _ => None,
        },
        Expr::Nested(inner) => {
            relation(inner)?;
            Some((**inner).clone())
        }
        _ => None,
    };
    if let Some(replaced) = replaced {
        *value = replaced;
    }
    Ok(())
}

fn is_table_keyword(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("table")
}

/// A name in single quotes: `'main.tasks'` is parsed as one would write it, and what does not parse is a name as it is.
fn quoted_name(text: &str, span: Span) -> ObjectName {
    let parsed = Parser::new(&TqDialect).try_with_sql(text).and_then(|mut parser| {
        let name = parser.parse_object_name(false)?;
        parser.expect_token(&Token::EOF)?;
        Ok(name)
    });
    let idents = match parsed {
        Ok(name) => name.0.iter().filter_map(|part| part.as_ident().cloned()).collect(),
        Err(_) => vec![Ident::with_quote('"', text)],
    };
    let at_place = idents.into_iter().map(|ident| Ident { span, ..ident });
    ObjectName::from(at_place.collect::<Vec<Ident>>())
}

/// `(SELECT * FROM factor)`.
fn select_all(factor: &TableFactor) -> Result<Expr> {
    let mut tokens =
        Tokenizer::new(&TqDialect, "SELECT * FROM x").tokenize_with_location().map_err(ParserError::from)?;
    // All of it stands where the name stands that it replaces.
    let span = factor.span();
    tokens.iter_mut().for_each(|token| token.span = span);
    let mut query = Parser::new(&TqDialect).with_tokens_with_locations(tokens).parse_query()?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        for from in &mut select.from {
            from.relation = factor.clone();
        }
    }
    Ok(Expr::Subquery(query))
}

fn table(name: ObjectName, arguments: Option<Vec<FunctionArg>>) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: arguments.map(|args| TableFunctionArgs { args, settings: None }),
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn known() -> Known {
        Known { default_tasks: PROGRAM_TASKS, functions: Arc::default(), session: SessionContext::new() }
    }

    fn check(sql: &str, expected: &str) {
        let mut statement = parse(sql).unwrap().remove(0).parsed.clone();
        rewrite(&mut statement, &known()).unwrap();
        assert_eq!(statement.to_string(), expected);
    }

    #[test]
    fn arguments_become_subqueries() {
        check(
            "SELECT * FROM critical_path(t, main.\"L\") AS c",
            "SELECT * FROM critical_path((SELECT * FROM t), (SELECT * FROM main.\"L\")) AS c",
        );
        check(
            "SELECT * FROM critical_path('t', 'main.links', break_weak => true)",
            "SELECT * FROM critical_path((SELECT * FROM t), (SELECT * FROM main.links), break_weak => true)",
        );
        check(
            "SELECT * FROM critical_path('my tasks', ((links)))",
            "SELECT * FROM critical_path((SELECT * FROM \"my tasks\"), (SELECT * FROM links))",
        );
        check(
            "SELECT * FROM critical_path(TABLE(SELECT 1 AS task), TABLE(l))",
            "SELECT * FROM critical_path((SELECT 1 AS task), (SELECT * FROM l))",
        );
        check(
            "SELECT * FROM critical_path((SELECT * FROM t), (WITH a AS (SELECT 1) SELECT * FROM a))",
            "SELECT * FROM critical_path((SELECT * FROM t), (WITH a AS (SELECT 1) SELECT * FROM a))",
        );
    }

    #[test]
    fn omitted_inputs_are_added() {
        let tasks = "tasks => (SELECT * FROM program_tasks)";
        let links = "links => (SELECT * FROM links)";
        check("SELECT * FROM critical_path()", &format!("SELECT * FROM critical_path({tasks}, {links})"));
        check("SELECT * FROM Critical_Path(t)", &format!("SELECT * FROM Critical_Path((SELECT * FROM t), {links})"));
        check(
            "SELECT * FROM critical_path(links => l, break_weak := true)",
            &format!("SELECT * FROM critical_path(links => (SELECT * FROM l), break_weak := true, {tasks})"),
        );
    }

    #[test]
    fn omitted_tasks_are_those_of_the_statement_where_it_has_some() {
        let call = |tasks: &str| format!("self_time(tasks => (SELECT * FROM {tasks}))");
        let (ours, its) = (call("program_tasks"), call("tasks"));
        for (written, expected) in [
            ("WITH Tasks AS (SELECT 1) SELECT * FROM {}", &its),
            ("WITH tasks AS (SELECT * FROM {}) SELECT 1", &ours),
            ("WITH RECURSIVE tasks AS (SELECT * FROM {}) SELECT 1", &its),
            ("WITH tasks AS (SELECT 1), b AS (SELECT * FROM {}) SELECT 1", &its),
            ("WITH b AS (SELECT * FROM {}), tasks AS (SELECT 1) SELECT 1", &ours),
            ("WITH tasks AS (SELECT 1) SELECT (SELECT max(a) FROM (SELECT * FROM {}) AS t)", &its),
            ("SELECT (WITH tasks AS (SELECT 1) SELECT 1) FROM {}", &ours),
            ("SELECT * FROM (WITH tasks AS (SELECT 1) SELECT 1) AS t, {}", &ours),
            ("WITH a AS (WITH tasks AS (SELECT 1) SELECT * FROM tasks) SELECT * FROM {}", &ours),
            ("WITH a AS (SELECT (SELECT 1)), tasks AS (SELECT * FROM {}) SELECT 1", &ours),
        ] {
            check(&written.replace("{}", "self_time()"), &written.replace("{}", expected));
        }
    }

    #[test]
    fn nested_and_wrapped_calls() {
        check(
            "SELECT * FROM critical_path(critical_path(a, b), l)",
            "SELECT * FROM critical_path((SELECT * FROM critical_path((SELECT * FROM a), (SELECT * FROM b))), \
             (SELECT * FROM l))",
        );
        check(
            "SELECT * FROM TABLE(critical_path(a, b)) AS c",
            "SELECT * FROM critical_path((SELECT * FROM a), (SELECT * FROM b)) AS c",
        );
        check(
            "SELECT * FROM r, LATERAL critical_path(a, b) AS c",
            "SELECT * FROM r, critical_path((SELECT * FROM a), (SELECT * FROM b)) AS c",
        );
    }

    #[test]
    fn every_statement_is_searched() {
        let call = "critical_path((SELECT * FROM a), (SELECT * FROM b))";
        for frame in [
            "EXPLAIN SELECT * FROM {}",
            "CREATE VIEW v AS SELECT * FROM {}",
            "PREPARE p AS SELECT * FROM {}",
            "COPY (SELECT * FROM {}) TO 'x.csv' STORED AS CSV",
            "SELECT (SELECT max(step) FROM {}) AS m",
            "SELECT * FROM t JOIN {} USING (task)",
            "INSERT INTO t SELECT * FROM {}",
        ] {
            let written = parse(&frame.replace("{}", "critical_path(a, b)")).unwrap().remove(0).parsed.clone();
            let mut statement = written.clone();
            rewrite(&mut statement, &known()).unwrap();
            assert_eq!(statement.to_string(), written.to_string().replace("critical_path(a, b)", call));
        }
    }

    #[test]
    fn other_calls_stay() {
        for sql in ["SELECT * FROM range(0, 3)", "SELECT critical_path(a) FROM t", "SELECT * FROM critical_path"] {
            check(sql, sql);
        }
    }

    #[test]
    fn tablesample_is_refused() {
        for sql in [
            "SELECT * FROM tasks TABLESAMPLE (10 PERCENT)",
            "SELECT * FROM (SELECT 1) AS t TABLESAMPLE BERNOULLI (10)",
            "EXPLAIN SELECT * FROM a JOIN tasks TABLESAMPLE (5 ROWS) ON true",
        ] {
            let mut statement = parse(sql).unwrap().remove(0).parsed.clone();
            let error = rewrite(&mut statement, &known()).unwrap_err().to_string();
            assert!(error.contains("TABLESAMPLE") && error.contains("not supported"), "{error}");
        }
    }
}
