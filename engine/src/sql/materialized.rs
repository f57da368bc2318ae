//! `WITH a AS MATERIALIZED (…)`: the rows of `a` are computed once, however often the statement reads them.
//!
//! DataFusion 55.2 puts the plan of a WITH query wherever its name stands, so a chain of them in which each one is read twice is
//! computed 2, 4, 8 … times. Its parser knows the word of PostgreSQL alone, so the tokens `AS MATERIALIZED (q)` become
//! `AS (SELECT * FROM (q) AS mark)` ([`marked`]); behind the other analyzer rules [`ComputedOnce`] turns
//! each such alias into the scan of a table whose rows are the answer of `q`. It is planned with the first scan, carried out by the first
//! reader, and kept in memory, or beyond the limit in a temporary file, until the statement is done.
//!
//! As in PostgreSQL, all columns of `q` are computed, and conditions outside do not reach into it. Without the word nothing changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, TableReference, internal_err, plan_err, project_schema};
use datafusion::datasource::{TableProvider, TableType, provider_as_source};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SpillFile, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SpillManager, execute_stream,
};
use datafusion::sql::sqlparser::ast::{Cte, CteAsMaterialized, Query, SetExpr, TableFactor, TableWithJoins};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};
use futures::future::{BoxFuture, Shared};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::OnceCell;
use tq_udfs::relation::rows::bytes_of;

use crate::sql::operators::{no_expressions, no_inputs};
use crate::sql::random::draws;

/// Behind the name of what is computed once, and before a number of its own.
const MARK: &str = " (computed once, ";

/// `WITH a AS MATERIALIZED (q)` with a mark around `q`, and `AS NOT MATERIALIZED (q)`, which is how queries are planned anyway, without
/// its words. One of WITH RECURSIVE that names itself is not marked: it must keep its form.
pub(super) fn marked(tokens: Cow<'_, [TokenWithSpan]>) -> Cow<'_, [TokenWithSpan]> {
    let spoken: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is = |at: usize, keyword| matches!(spoken.get(at).map(|at| &tokens[*at].token), Some(Token::Word(word)) if word.keyword == keyword);
    let is_open = |at: usize| spoken.get(at).is_some_and(|at| tokens[*at].token == Token::LParen);
    let begins_query = |at: usize| {
        const BEGINS: [Keyword; 5] = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES, Keyword::TABLE, Keyword::FROM];
        is_open(at) || BEGINS.iter().any(|keyword| is(at, *keyword))
    };
    let is_recursive = (0..spoken.len()).any(|at| is(at, Keyword::WITH) && is(at + 1, Keyword::RECURSIVE));
    // Places in `tokens`: the words that go, and the parentheses with what comes behind the one and before the other.
    let (mut gone, mut inserted) = (vec![], vec![]);
    for at in (0..spoken.len()).filter(|at| is(*at, Keyword::AS)) {
        let is_not = is(at + 1, Keyword::NOT) && is(at + 2, Keyword::MATERIALIZED) && is_open(at + 3);
        if is_not {
            gone.extend([spoken[at + 1], spoken[at + 2]]);
        }
        if !is(at + 1, Keyword::MATERIALIZED) || !is_open(at + 2) || !begins_query(at + 3) {
            continue;
        }
        gone.push(spoken[at + 1]);
        let open = spoken[at + 2];
        let name = name_before(&tokens, &spoken[..at]);
        let names_itself = |close: usize| {
            let is_name = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
            is_recursive && tokens[open..close].iter().any(is_name)
        };
        if let Some(close) = closing(&tokens, open)
            && !names_itself(close)
        {
            inserted.push((open, close, format!("{name}{MARK}{})", inserted.len())));
        }
    }
    if gone.is_empty() {
        return tokens;
    }
    let word = |text: &str, keyword| Token::Word(Word { value: text.to_owned(), quote_style: None, keyword });
    let mut written = Vec::with_capacity(tokens.len() + 9 * inserted.len());
    for (at, token) in tokens.iter().enumerate().filter(|(at, _)| !gone.contains(at)) {
        let mut add = |tokens: Vec<Token>| {
            written.extend(tokens.into_iter().map(|new| TokenWithSpan { token: new, span: token.span }));
        };
        if let Some((_, _, mark)) = inserted.iter().find(|(_, close, _)| *close == at) {
            let mark = Word { value: mark.clone(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            let space = || Token::Whitespace(Whitespace::Space);
            add(vec![Token::RParen, space(), word("AS", Keyword::AS), space(), Token::Word(mark)]);
        }
        add(vec![token.token.clone()]);
        if inserted.iter().any(|(open, _, _)| *open == at) {
            let space = || Token::Whitespace(Whitespace::Space);
            add(vec![
                word("SELECT", Keyword::SELECT),
                space(),
                Token::Mul,
                space(),
                word("FROM", Keyword::FROM),
                space(),
                Token::LParen,
            ]);
        }
    }
    Cow::Owned(written)
}

/// Whether a query of WITH carries a mark.
pub(super) fn is_marked(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    matches!(select.from.as_slice(), [TableWithJoins { relation: TableFactor::Derived { alias: Some(alias), .. }, .. }]
        if alias.name.value.contains(MARK))
}

/// A query of WITH as it was typed.
pub(super) fn unmark(table: &mut Cte) {
    if !is_marked(&table.query) {
        return;
    }
    let SetExpr::Select(select) = table.query.body.as_mut() else { return };
    if let Some(TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }) = select.from.pop() {
        table.query = subquery;
        table.materialized = Some(CteAsMaterialized::Materialized);
    }
}

/// The parenthesis that closes the one at `open`.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    (open..tokens.len()).find(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    })
}

/// The name of a WITH query whose tokens before AS are `before`, also before a list of columns.
fn name_before<'a>(tokens: &'a [TokenWithSpan], before: &[usize]) -> &'a str {
    let mut depth = 0usize;
    for token in before.iter().rev().map(|at| &tokens[*at].token) {
        match token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 => return &word.value,
            _ => {}
        }
    }
    ""
}

/// Turns each marked query into a table that is computed once. Add it behind all other analyzer rules: they do not see what stands in there.
#[derive(Debug)]
pub struct ComputedOnce;

impl AnalyzerRule for ComputedOnce {
    fn name(&self) -> &str {
        "computed_once"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // By what the scans in it read, and by all else: plans are equal whatever their tables are.
        let mut tables: HashMap<(Vec<usize>, LogicalPlan), Arc<ComputedTable>> = HashMap::new();
        // What draws random numbers, as it stood at the first place: where another place has another plan, it would draw anew.
        let mut drawn: HashMap<TableReference, (Vec<usize>, LogicalPlan)> = HashMap::new();
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::SubqueryAlias(alias) = &plan else { return Ok(Transformed::no(plan)) };
            let Some((name, _)) = alias.alias.table().split_once(MARK) else { return Ok(Transformed::no(plan)) };
            let key = (sources(&alias.input)?, plan.clone());
            let is_dependent = reads_outer_rows(&alias.input, &mut vec![])?;
            if draws(&alias.input)? {
                let known = drawn.insert(alias.alias.clone(), key.clone());
                if known.is_some_and(|known| is_dependent || known != key) {
                    return plan_err!(
                        "`{name}` draws random numbers, depends on other queries, and is named several times: each would draw anew"
                    );
                }
            }
            if is_dependent {
                return Ok(Transformed::no(plan));
            }
            let table = match tables.get(&key) {
                Some(table) => Arc::clone(table),
                None => {
                    let table = Arc::new(ComputedTable::new(LogicalPlan::clone(&alias.input)));
                    tables.insert(key, Arc::clone(&table));
                    table
                }
            };
            let scan = LogicalPlanBuilder::scan(alias.alias.clone(), provider_as_source(table), None)?.build()?;
            Ok(Transformed::yes(scan))
        })?;
        Ok(rewritten.data)
    }
}

/// What the scans of a query read, in order. All places that name a query of WITH have its very tables.
fn sources(plan: &LogicalPlan) -> Result<Vec<usize>> {
    let mut sources = vec![];
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            sources.push(Arc::as_ptr(&scan.source).cast::<()>() as usize);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(sources)
}

/// Whether a query depends on the row of a query around it: its rows are others for each. `around` are the columns of queries within it, of
/// whose rows a subquery of theirs may depend.
fn reads_outer_rows(plan: &LogicalPlan, around: &mut Vec<DFSchemaRef>) -> Result<bool> {
    let own: Vec<DFSchemaRef> = plan.inputs().into_iter().map(|input| Arc::clone(input.schema())).collect();
    let mut reads = false;
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            let subquery = match part {
                Expr::OuterReferenceColumn(_, column) => {
                    reads |= !around.iter().any(|schema| schema.has_column(column));
                    None
                }
                Expr::ScalarSubquery(subquery) => Some(subquery),
                Expr::Exists(exists) => Some(&exists.subquery),
                Expr::InSubquery(within) => Some(&within.subquery),
                Expr::SetComparison(comparison) => Some(&comparison.subquery),
                _ => None,
            };
            if let Some(subquery) = subquery {
                let outside = around.len();
                around.extend(own.iter().cloned());
                reads |= reads_outer_rows(&subquery.subquery, around)?;
                around.truncate(outside);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    for input in plan.inputs() {
        // LATERAL: the rows of the other side.
        let outside = around.len();
        if let LogicalPlan::Subquery(_) = input {
            around.extend(own.iter().cloned());
        }
        reads |= reads_outer_rows(input, around)?;
        around.truncate(outside);
    }
    Ok(reads)
}

/// The answer of a query as a table.
#[derive(Debug)]
struct ComputedTable {
    query: LogicalPlan,
    schema: SchemaRef,
    planned: OnceCell<Arc<Computed>>,
}

impl ComputedTable {
    fn new(query: LogicalPlan) -> ComputedTable {
        let schema = Arc::clone(query.schema().inner());
        ComputedTable { query, schema, planned: OnceCell::new() }
    }
}

#[async_trait]
impl TableProvider for ComputedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let computed = self.planned.get_or_try_init(async || {
            let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
                return internal_err!("a query is computed once in sessions of DataFusion alone");
            };
            // It was analyzed with the statement.
            let query = state.optimizer().optimize(self.query.clone(), state, |_, _| {})?;
            let plan = state.query_planner().create_physical_plan(&query, state).await?;
            Ok(Arc::new(Computed { plan, rows: OnceLock::new() }))
        });
        let computed = Arc::clone(computed.await?);
        Ok(Arc::new(ComputedOnceExec::new(computed, &self.schema, projection.cloned())?))
    }
}

/// A query that is carried out once.
struct Computed {
    plan: Arc<dyn ExecutionPlan>,
    /// The work, which goes on with the next reader where one that began it has gone.
    rows: OnceLock<Shared<BoxFuture<'static, Outcome>>>,
}

type Outcome = std::result::Result<Arc<Rows>, Arc<DataFusionError>>;

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computed").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// The rows of a query.
enum Rows {
    Memory(Vec<RecordBatch>, #[expect(dead_code, reason = "held as long as the rows are")] MemoryReservation),
    Disk(SpillManager, Option<Arc<dyn SpillFile>>),
}

impl Computed {
    async fn rows(&self, context: Arc<TaskContext>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let plan = Arc::clone(&self.plan);
        let rows = self
            .rows
            .get_or_init(|| compute(plan, context).map(|rows| rows.map(Arc::new).map_err(Arc::new)).boxed().shared());
        let rows = rows.clone().await.map_err(DataFusionError::Shared)?;
        Ok(match rows.as_ref() {
            Rows::Memory(batches, _) => stream::iter(batches.clone()).map(Ok).boxed(),
            Rows::Disk(_, None) => stream::empty().boxed(),
            Rows::Disk(spills, Some(file)) => spills.read_spill_as_stream(Arc::clone(file), None)?.boxed(),
        })
    }
}

async fn compute(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Rows> {
    let memory = MemoryConsumer::new("the rows of WITH … AS MATERIALIZED").register(context.memory_pool());
    let mut arriving = execute_stream(plan, Arc::clone(&context))?;
    let mut batches = vec![];
    while let Some(batch) = arriving.try_next().await? {
        let fits = memory.try_grow(bytes_of(&batch)).is_ok();
        batches.push(batch);
        if !fits {
            memory.free();
            return write(batches, arriving, &context).await;
        }
    }
    Ok(Rows::Memory(batches, memory))
}

/// Puts rows into a file: those in memory, and those that still come.
async fn write(
    batches: Vec<RecordBatch>,
    mut arriving: SendableRecordBatchStream,
    context: &TaskContext,
) -> Result<Rows> {
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let spills = SpillManager::new(context.runtime_env(), metrics, arriving.schema());
    let mut file = spills.create_in_progress_file("the rows of WITH … AS MATERIALIZED")?;
    for batch in batches {
        file.append_batch(&batch)?;
    }
    while let Some(batch) = arriving.try_next().await? {
        file.append_batch(&batch)?;
    }
    let file = file.finish()?;
    Ok(Rows::Disk(spills, file))
}

/// Reads the rows of a query that is carried out once, however many read it.
#[derive(Debug)]
struct ComputedOnceExec {
    computed: Arc<Computed>,
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
}

impl ComputedOnceExec {
    fn new(computed: Arc<Computed>, schema: &SchemaRef, projection: Option<Vec<usize>>) -> Result<ComputedOnceExec> {
        let schema = project_schema(schema, projection.as_ref())?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(ComputedOnceExec { computed, projection, properties: Arc::new(properties) })
    }
}

impl DisplayAs for ComputedOnceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputedOnceExec")
    }
}

impl ExecutionPlan for ComputedOnceExec {
    // Rules that look at the plan of one reader would change what others read: it is not shown as an input.
    no_inputs!();
    no_expressions!();

    fn name(&self) -> &'static str {
        "ComputedOnceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (computed, projection) = (Arc::clone(&self.computed), self.projection.clone());
        let rows = stream::once(async move { computed.rows(context).await }).try_flatten();
        let projected = rows.map(move |batch| match &projection {
            Some(columns) => Ok(batch?.project(columns)?),
            None => batch,
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), projected)))
    }
}
