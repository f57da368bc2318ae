//! Questions: statements that ask for rows and change, write and open nothing.
//!
//! A saved query, a template and everything in `tq check` may come from a stranger, so they may only ask, and so may
//! everything under `--read-only`. That is decided here, twice: on the statement ([`is_question`]), which knows what was
//! written, and on its plan ([`must_only_ask`]), which knows what would be done. Both lists say what is allowed, so that a
//! statement which a later version learns is refused until somebody has thought about it.
//!
//! ```text
//! EXPLAIN ANALYZE COPY (…) TO 'x.csv'      no: ANALYZE does what it explains
//! WITH t AS (SELECT 1) INSERT INTO u …     no
//! DESCRIBE tasks, SHOW TABLES              yes
//! ```
//!
//! A few settings are refused to everybody ([`refuse_settings`]): they would lift the session's limits, or change what its answers mean.

use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{LogicalPlan, Statement as PlannedStatement};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{Query, Select, SetExpr, Statement as SqlStatement, Visit, Visitor};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::sql::diagnostic::error_at;

/// Whether a statement asks for rows and changes nothing, wherever one looks in it.
pub fn is_question(statement: &ParsedStatement) -> bool {
    match statement {
        ParsedStatement::Statement(statement) => asks(statement) && statement.visit(&mut Nested).is_continue(),
        ParsedStatement::Explain(explain) => is_question(&explain.statement),
        ParsedStatement::CreateExternalTable(_) | ParsedStatement::CopyTo(_) | ParsedStatement::Reset(_) => false,
    }
}

fn asks(statement: &SqlStatement) -> bool {
    match statement {
        SqlStatement::Explain { statement, .. } => asks(statement),
        SqlStatement::Query(_)
        | SqlStatement::ExplainTable { .. }
        | SqlStatement::ShowVariable { .. }
        | SqlStatement::ShowTables { .. }
        | SqlStatement::ShowColumns { .. }
        | SqlStatement::ShowFunctions { .. }
        | SqlStatement::ShowSchemas { .. } => true,
        _ => false,
    }
}

/// Statements within statements, and queries that are none: `WITH t AS (…) INSERT …`, `SELECT … INTO t`.
struct Nested;

impl Visitor for Nested {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &SqlStatement) -> ControlFlow<()> {
        if asks(statement) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let changes = matches!(
            query.body.as_ref(),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        );
        if changes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.into.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Refuses a plan that does anything but answer, anywhere in its tree, subqueries included.
///
/// # Errors
/// The plan would do more than answer; the error says what.
pub fn must_only_ask(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| match node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::TableScan(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Extension(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::RecursiveQuery(_) => Ok(TreeNodeRecursion::Continue),
        LogicalPlan::Statement(_) | LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) => {
            Err(refused(&name_of(node)))
        }
    })?;
    Ok(())
}

/// The refusal of a statement that is no question.
pub(super) fn refused(what: &str) -> datafusion::error::DataFusionError {
    error_at(
        Span::empty(),
        format!("{what} is no question, and only questions are allowed here"),
        "SELECT, WITH, VALUES, SHOW, DESCRIBE and EXPLAIN of these ask; saved queries, templates, checks and `--read-only` \
         allow nothing else",
    )
}

/// What a statement is called by whoever wrote it.
pub(super) fn name_of_statement(statement: &ParsedStatement) -> String {
    match statement {
        ParsedStatement::CreateExternalTable(_) => "CREATE EXTERNAL TABLE".to_owned(),
        ParsedStatement::CopyTo(_) => "COPY".to_owned(),
        ParsedStatement::Reset(_) => "RESET".to_owned(),
        ParsedStatement::Explain(explain) => format!("EXPLAIN of {}", name_of_statement(&explain.statement)),
        ParsedStatement::Statement(statement) => {
            let text = statement.to_string();
            let word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
            let words: Vec<&str> = text.split_whitespace().take_while(word).take(2).collect();
            match words.as_slice() {
                [] => "this".to_owned(),
                ["WITH" | "SELECT", ..] => "a query that changes a table".to_owned(),
                words => words.join(" "),
            }
        }
    }
}

fn name_of(node: &LogicalPlan) -> String {
    match node {
        LogicalPlan::Statement(statement) => match statement {
            PlannedStatement::SetVariable(_) => "SET".to_owned(),
            PlannedStatement::ResetVariable(_) => "RESET".to_owned(),
            other => other.name().to_uppercase(),
        },
        LogicalPlan::Dml(dml) => dml.op.name().to_uppercase(),
        LogicalPlan::Ddl(ddl) => ddl.name().to_owned(),
        LogicalPlan::Copy(_) => "COPY".to_owned(),
        other => other.display().to_string(),
    }
}

/// Settings that nobody may change by SQL, with what to do instead.
const FIXED: &[(&str, &str)] = &[
    ("datafusion.runtime.", "`--memory 8GB` gives a session its memory; at the prompt, `\\set memory 8GB`"),
    ("datafusion.catalog.default_catalog", "a table of another catalog has its name before it"),
    ("datafusion.catalog.default_schema", "a table of another schema has its name before it, as `mine.times`"),
    ("datafusion.sql_parser.dialect", "every statement is read in the dialect of tq (docs/sql.md)"),
    ("datafusion.sql_parser.recursion_limit", "the depth of statements is limited by tq itself"),
    ("datafusion.sql_parser.collect_spans", "without places, errors could not show where something is wrong"),
    ("datafusion.optimizer.skip_failed_rules", "a rule that fails is a defect, and the statement must not hide it"),
    (
        "datafusion.execution.skip_physical_aggregate_schema_check",
        "a plan that contradicts itself is a defect, and the statement must not hide it",
    ),
];

/// Numbers with which DataFusion hangs, panics or asks for all memory at once, with the least and the largest that work
/// (55.2: `parquet.write_batch_size = 0` never ends, `target_partitions = 100000000000` aborts).
const NUMBERS: &[(&str, u64, u64)] = &[
    ("datafusion.execution.batch_size", 1, 1 << 20),
    ("datafusion.execution.target_partitions", 1, 1024),
    ("datafusion.execution.planning_concurrency", 1, 1024),
    ("datafusion.execution.meta_fetch_concurrency", 1, 1024),
    ("datafusion.execution.minimum_parallel_output_files", 1, 1024),
    ("datafusion.execution.soft_max_rows_per_output_file", 1, u64::MAX),
    ("datafusion.execution.max_buffered_batches_per_output_file", 2, 1024),
    ("datafusion.execution.objectstore_writer_buffer_size", 1 << 10, 1 << 30),
    ("datafusion.execution.parquet.maximum_parallel_row_group_writers", 1, 1024),
    ("datafusion.execution.parquet.maximum_buffered_record_batches_per_stream", 1, 1024),
    ("datafusion.execution.parquet.write_batch_size", 1, 1 << 20),
    ("datafusion.execution.parquet.max_row_group_size", 1, u64::MAX),
    ("datafusion.execution.parquet.data_page_row_count_limit", 1, u64::MAX),
    ("datafusion.execution.parquet.column_index_truncate_length", 1, u64::MAX),
    ("datafusion.execution.parquet.statistics_truncate_length", 1, u64::MAX),
    ("datafusion.optimizer.max_passes", 1, 100),
];

/// Refuses SET and RESET of settings that would lift a limit of the session, hide a defect or crash the engine.
///
/// # Errors
/// Names the setting, with what to do instead.
pub fn refuse_settings(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Statement(PlannedStatement::SetVariable(set)) => {
                fixed(&set.variable)?;
                in_range(&set.variable, &set.value)?;
            }
            LogicalPlan::Statement(PlannedStatement::ResetVariable(reset)) => fixed(&reset.variable)?,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn fixed(variable: &str) -> Result<()> {
    let name = variable.to_lowercase().replace('"', "");
    match FIXED.iter().find(|(prefix, _)| name == *prefix || (prefix.ends_with('.') && name.starts_with(prefix))) {
        Some((_, instead)) => Err(error_at(Span::empty(), format!("`{name}` cannot be changed by SQL"), instead)),
        None => Ok(()),
    }
}

/// Whether a setting has a value with which DataFusion works.
///
/// # Errors
/// Says which values do.
pub(crate) fn in_range(variable: &str, value: &str) -> Result<()> {
    let name = variable.to_lowercase().replace('"', "");
    let Some((_, least, most)) = NUMBERS.iter().find(|(known, ..)| *known == name) else { return Ok(()) };
    // What is no number at all, DataFusion refuses itself.
    let Ok(number) = value.trim().trim_matches('\'').parse::<u64>() else { return Ok(()) };
    match (*least..=*most).contains(&number) {
        true => Ok(()),
        false if *most == u64::MAX => plan_err!("`{name}` is a whole number from {least} on, not `{value}`"),
        false => plan_err!("`{name}` is a whole number from {least} to {most}, not `{value}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn asks(sql: &str) -> bool {
        let statements = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        is_question(&statements[0].parsed)
    }

    #[test]
    fn questions_ask_all_the_way_down() {
        for sql in [
            "SELECT 1",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES (1)",
            "(SELECT 1) UNION ALL SELECT 2",
            "SHOW TABLES",
            "SHOW tq.time_unit",
            "SHOW ALL",
            "DESCRIBE tasks",
            "EXPLAIN SELECT 1",
            "EXPLAIN ANALYZE VERBOSE SELECT 1",
            "EXPLAIN EXPLAIN SELECT 1",
            "SELECT 'COPY x TO y; DROP TABLE t' -- COPY",
            "SELECT * FROM critical_path(TABLE(SELECT * FROM tasks), links)",
        ] {
            assert!(asks(sql), "{sql}");
        }
        for sql in [
            "COPY tasks TO 'x.csv'",
            "COPY (SELECT 1) TO 'x.csv' STORED AS CSV",
            "EXPLAIN COPY (SELECT 1) TO 'x.csv'",
            "EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'",
            "explain analyze verbose copy (SELECT 1) TO 'x.csv'",
            "EXPLAIN EXPLAIN ANALYZE COPY tasks TO 'x.csv'",
            "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
            "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
            "EXPLAIN SET datafusion.execution.batch_size = 1",
            "EXPLAIN ANALYZE EXECUTE p",
            "CREATE TABLE t AS SELECT 1",
            "CREATE VIEW v AS SELECT 1",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
            "CREATE FUNCTION f() RETURNS BIGINT RETURN 1",
            "CREATE SCHEMA s",
            "DROP TABLE t",
            "INSERT INTO t SELECT 1",
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "WITH a AS (INSERT INTO t VALUES (1) RETURNING 1) SELECT * FROM a",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "TRUNCATE t",
            "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            "SELECT * INTO t FROM tasks",
            "SELECT * FROM (SELECT * INTO t FROM tasks)",
            "SET datafusion.execution.batch_size = 1",
            "RESET datafusion.execution.batch_size",
            "PREPARE p AS SELECT 1",
            "PREPARE p AS COPY (SELECT 1) TO 'x.csv'",
            "EXECUTE p",
            "DEALLOCATE p",
            "BEGIN",
            "COMMIT",
            "USE s",
            "ANALYZE t",
            "ATTACH DATABASE 'x' AS y",
        ] {
            // What does not parse asks nothing either.
            let parsed = parse(sql);
            assert!(parsed.is_err() || !parsed.is_ok_and(|all| is_question(&all[0].parsed)), "{sql}");
        }
    }

    #[test]
    fn refusals_name_the_statement() {
        for (sql, name) in [
            ("COPY tasks TO 'x.csv'", "COPY"),
            ("EXPLAIN ANALYZE COPY tasks TO 'x.csv'", "EXPLAIN of COPY"),
            ("CREATE TABLE t AS SELECT 1", "CREATE TABLE"),
            ("INSERT INTO t SELECT 1", "INSERT INTO"),
            ("SELECT * INTO t FROM tasks", "a query that changes a table"),
            ("DROP VIEW v", "DROP VIEW"),
        ] {
            assert_eq!(name_of_statement(&parse(sql).unwrap()[0].parsed), name);
        }
    }

    #[test]
    fn settings_that_lift_a_limit_are_fixed() {
        for name in
            ["datafusion.runtime.memory_limit", "DATAFUSION.RUNTIME.temp_directory", "datafusion.sql_parser.dialect"]
        {
            assert!(fixed(name).is_err(), "{name}");
        }
        assert!(fixed("datafusion.execution.time_zone").is_ok());
        assert!(in_range("datafusion.execution.batch_size", "0").is_err());
        assert!(in_range("datafusion.execution.batch_size", "1024").is_ok());
        assert!(in_range("datafusion.execution.target_partitions", "100000000000").is_err());
    }
}
