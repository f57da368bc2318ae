//! Client: plans are cut, workers asked, and rows collected before the first is shown.
//!
//! ```text
//! probe all ─▶ cut for those that answer ─▶ run, collect all rows ─▶ answer
//!    ▲                                          │ an error
//!    └── a worker does not answer any more ◀────┴─▶ all answer, and no connection broke: it is the query's
//! ```
//! A query is tried three times at most. What it has shown by then is nothing, so a second try repeats no row.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as DataFusionSession;
use datafusion::common::{DFSchema, DataFusionError, Result, exec_err, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, SpillManager,
};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt, WorkerResolver, display_plan_ascii};
use futures::{StreamExt, TryStreamExt};
use tq_udfs::relation::notes::{Note, Notes};
use url::Url;

use super::VERSION;
use super::channel::{Access, Channels};
use super::closed::{CUT_OFF, Parts};
use super::codec::TqCodec;
use super::fragments::Cut;
use super::options::{Opened, TqOptions, settings_of};
use super::status::{State, state_of};
use super::workers::{Workers, address, causes, reason};
use crate::options::TraceSpec;
use crate::remote::is_url;
use crate::session::Session;
use crate::sql::elsewhere::{Elsewhere, ask};
use crate::sql::emitted::{with_charged_values, with_config};
use crate::sql::operators::{no_expressions, one_input};
use crate::store::{DIFFERS, Segments};

/// A query is tried so often.
const TRIES: usize = 3;

/// From now on, queries of the session are answered with the help of workers. `traces`, `run_pattern` and `run_args` are those that the
/// session was opened with; traces are stores, by absolute paths or URLs.
///
/// # Errors
/// An address or the token cannot be one; a trace is no path that others see.
pub fn join(
    session: &Session,
    traces: &[TraceSpec],
    run_pattern: Option<&str>,
    run_args: &[(String, String)],
    workers: &Workers,
) -> Result<()> {
    let (urls, access) = (workers.urls()?, workers.access()?);
    let mut named = Vec::with_capacity(traces.len());
    for trace in traces {
        let is_seen = trace.path.is_absolute() || is_url(&trace.path);
        let path = trace.path.to_str().filter(|_| is_seen);
        let Some(path) = path else { return exec_err!("`{}` is no path that others see", trace.path.display()) };
        named.push((trace.name.clone(), path.to_owned()));
    }
    let slice = session.slice();
    let opened = Opened {
        traces: named,
        run_pattern: run_pattern.map(str::to_owned),
        run_args: run_args.to_vec(),
        slice: (slice.from, slice.to),
        tick: session.tick().symbol().to_owned(),
        max_value: session.max_value(),
    };
    let codec = codec_of(session)?;
    let cluster = Cluster {
        workers: urls,
        access,
        least_bytes: workers.least_bytes,
        opened: opened.to_text()?,
        codec: Arc::new(codec),
    };
    // With one partition DataFusion plans no first half of anything.
    let state = session.context().state_ref();
    let mut state = state.write();
    let execution = &mut state.config_mut().options_mut().execution;
    execution.target_partitions = execution.target_partitions.max(2);
    drop(state);
    ask(session.context(), Arc::new(Shared(Arc::new(cluster))));
    Ok(())
}

/// What encodes and decodes in a session.
pub(super) fn codec_of(session: &Session) -> Result<TqCodec> {
    let context = session.context();
    let main = context.catalog("tq").and_then(|catalog| catalog.schema("main"));
    let Some(main) = main else { return internal_err!("the session has no schema `main`") };
    // Functions that a program added are not those of workers.
    let functions = tq_udfs::relation_functions();
    Ok(TqCodec { segments: Arc::new(Segments::of(main.as_ref())?), functions, of_plans: session.functions_of_plans() })
}

struct Cluster {
    workers: Vec<Url>,
    access: Access,
    least_bytes: u64,
    opened: String,
    codec: Arc<TqCodec>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}

struct Shared(Arc<Cluster>);

#[async_trait]
impl Elsewhere for Shared {
    fn spread(&self, plan: Arc<dyn ExecutionPlan>, session: &dyn DataFusionSession) -> Result<Arc<dyn ExecutionPlan>> {
        let is_cut = self.0.cut(&plan, self.0.workers.len(), &session.task_ctx())?.is_some();
        if is_cut { Ok(Arc::new(ClusterExec::new(plan, Arc::clone(&self.0)))) } else { Ok(plan) }
    }

    async fn explained(&self, plan: Arc<dyn ExecutionPlan>, session: &dyn DataFusionSession) -> Result<String> {
        let context = session.task_ctx();
        match self.0.cut(&plan, self.0.workers.len(), &context)? {
            Some(cut) => {
                let config = self.0.config(session.config(), &self.0.workers)?;
                let (plan, _) = in_stages(cut, config).await?;
                Ok(display_plan_ascii(plan.as_ref(), false))
            }
            None => {
                let shown = DisplayableExecutionPlan::new(plan.as_ref()).indent(false).to_string();
                let all = Cut { tasks: 2, least_bytes: 0, codec: &self.0.codec, context: &context };
                Ok(match all.cut(&plan)? {
                    Some(_) => format!("at the client: it reads less than TQ_CLUSTER_LEAST_BYTES\n{shown}"),
                    None => format!("at the client: no part is one that workers do\n{shown}"),
                })
            }
        }
    }
}

impl Cluster {
    fn cut(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        tasks: usize,
        context: &TaskContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        Cut { tasks, least_bytes: self.least_bytes, codec: &self.codec, context }.cut(plan)
    }

    /// The configuration of a query that these workers help with.
    fn config(&self, config: &SessionConfig, workers: &[Url]) -> Result<SessionConfig> {
        let options = TqOptions { opened: self.opened.clone(), settings: settings_of(config.options())? };
        config
            .clone()
            .with_distributed_option_extension(options)
            .with_distributed_worker_resolver(These(workers.to_vec()))
            .with_distributed_channel_resolver(Channels::new(self.access.clone()))
            .with_distributed_user_codec_arc(Arc::clone(&self.codec) as _)
            .with_distributed_metrics_collection(false)
    }

    /// Asks all workers who they are: those that answer, and why the others do not.
    ///
    /// # Errors
    /// A worker refuses us, or is of another version: nobody would want to do without it silently.
    async fn probe(&self, workers: &[Url]) -> Result<(Vec<Url>, Vec<String>)> {
        let channels = Channels::new(self.access.clone());
        let channels = &channels;
        let asked = workers.iter().map(|url| async move { (url, state_of(channels, url).await) });
        let (mut answering, mut silent) = (vec![], vec![]);
        for (url, state) in futures::future::join_all(asked).await {
            let worker = address(url);
            match state {
                State::Ready => answering.push(url.clone()),
                State::OfVersion(version) => {
                    return exec_err!("worker {worker} is of version {version:?}, and this is {VERSION}");
                }
                State::Refuses => {
                    return match self.access.token {
                        Some(_) => {
                            exec_err!("worker {worker} refuses the token: TQ_TOKEN must be the same here and there")
                        }
                        None => exec_err!("worker {worker} wants a token, and TQ_TOKEN is not set here"),
                    };
                }
                State::Silent(why) => silent.push(format!("worker {worker} {why}")),
            }
        }
        Ok((answering, silent))
    }

    /// All rows of a plan, in spite of workers that are lost meanwhile.
    async fn answer(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let parts = Parts::of(metrics);
        let mut all_silent: Vec<String> = vec![];
        for number in 1..=TRIES {
            let (answering, silent) = self.probe(&self.workers).await?;
            if answering.is_empty() {
                let silent = silent.join("; ");
                return exec_err!(
                    "no worker answers: {silent} (`--cluster off`, at the prompt `\\cluster off`, does without)"
                );
            }
            for text in silent {
                if let Some(notes) = Notes::of(context) {
                    notes.add(Note { function: "cluster".to_owned(), text: text.clone() });
                }
                all_silent.push(text);
            }
            let error = match self.rows(plan, &answering, context, (metrics, &parts)).await {
                Ok(rows) => return Ok(rows),
                Err(error) if error.to_string().contains(DIFFERS) => {
                    return exec_err!(
                        "{DIFFERS} since it was opened here, or a worker has another one at its place: ask again, at the prompt after `\\open`"
                    );
                }
                Err(error) => error,
            };
            // Whoever was killed may need a moment to be gone.
            let is_broken = is_of_connection(&error);
            let lost = self.probe(&answering).await?.1;
            if !is_broken && lost.is_empty() {
                return Err(error);
            }
            all_silent.extend(lost);
            if number == TRIES {
                all_silent.dedup();
                let who = match all_silent.is_empty() {
                    true => {
                        format!("worker {}", self.workers.iter().map(address).collect::<Vec<_>>().join(", worker "))
                    }
                    false => all_silent.join("; "),
                };
                return exec_err!("workers were lost in each of {TRIES} tries: {who}; {}", reason(&error));
            }
        }
        internal_err!("a query is tried at least once")
    }

    /// All rows, by these workers.
    async fn rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        workers: &[Url],
        context: &Arc<TaskContext>,
        (metrics, parts): (&ExecutionPlanMetricsSet, &Parts),
    ) -> Result<SendableRecordBatchStream> {
        let Some(cut) = self.cut(plan, workers.len(), context)? else {
            return with_charged_values(Arc::clone(plan))?.execute(0, Arc::clone(context));
        };
        let cut = with_charged_values(cut)?;
        parts.begin(&cut);
        // What is said in a try that fails is of a part of the rows, and said again in the next one.
        let said = Arc::new(Notes::default());
        let config = self.config(context.session_config(), workers)?.with_extension(Arc::new(parts.clone()));
        let (plan, config) = in_stages(cut, config.with_extension(Arc::clone(&said))).await?;
        let of_try = Arc::new(with_config(context, config, context.runtime_env()));
        let rows = plan.execute(0, Arc::clone(&of_try))?;
        let rows = collected(rows, &of_try, metrics).await?;
        if let Some(notes) = Notes::of(context) {
            said.take_said().into_iter().for_each(|(function, said)| notes.say(function, said));
        }
        Ok(rows)
    }
}

/// The workers of a try.
struct These(Vec<Url>);

impl WorkerResolver for These {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// A plan that is there already.
#[derive(Debug)]
struct Ready(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for Ready {
    async fn create_physical_plan(&self, _: &LogicalPlan, _: &dyn DataFusionSession) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}

/// A plan with fragments as datafusion-distributed executes it, and the configuration with which. Its planner alone gives stages their
/// names; it leaves the fragments as they are.
async fn in_stages(
    plan: Arc<dyn ExecutionPlan>,
    config: SessionConfig,
) -> Result<(Arc<dyn ExecutionPlan>, SessionConfig)> {
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_query_planner(Arc::new(Ready(plan)))
        .with_distributed_planner()
        .build();
    let nothing =
        LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) });
    let plan = state.query_planner().create_physical_plan(&nothing, &state).await?;
    Ok((plan, state.config().clone()))
}

/// Rows that are all there: in memory as far as it goes, the others in a file.
async fn collected(
    mut rows: SendableRecordBatchStream,
    context: &Arc<TaskContext>,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<SendableRecordBatchStream> {
    let schema = rows.schema();
    let consumer = MemoryConsumer::new("the rows of workers").with_can_spill(true);
    let memory = consumer.register(context.memory_pool());
    let spills = SpillManager::new(context.runtime_env(), SpillMetrics::new(metrics, 0), Arc::clone(&schema));
    let (mut batches, mut file) = (vec![], None);
    while let Some(batch) = rows.try_next().await? {
        if file.is_none() && memory.try_grow(batch.get_array_memory_size()).is_ok() {
            batches.push(Ok(batch));
            continue;
        }
        if file.is_none() {
            file = Some(spills.create_in_progress_file("the rows of workers")?);
        }
        if let Some(file) = &mut file {
            file.append_batch(&batch)?;
        }
    }
    let rest = match file.as_mut().map(|file| file.finish()).transpose()?.flatten() {
        Some(file) => spills.read_spill_as_stream(file, None)?,
        None => Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), futures::stream::empty())),
    };
    let there = futures::stream::iter(batches).map(move |batch| {
        // Held until the last is taken.
        let _memory = &memory;
        batch
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, there.chain(rest))))
}

/// Whether an error says that a connection broke, and nothing of the query.
fn is_of_connection(error: &DataFusionError) -> bool {
    let text = error.to_string();
    if text.contains(CUT_OFF) || text.contains("waiting for the plan to be set") {
        return true;
    }
    use tonic::Code;
    let broke = |status: &tonic::Status| {
        matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Aborted
        ) || status.code() == Code::Internal && status.message().contains("h2")
    };
    causes(error)
        .any(|cause| cause.downcast_ref::<tonic::Status>().is_some_and(broke) || cause.is::<tonic::transport::Error>())
}

/// A plan that workers help with; its child is the plan as one process would execute it.
#[derive(Debug)]
struct ClusterExec {
    input: Arc<dyn ExecutionPlan>,
    cluster: Arc<Cluster>,
    metrics: ExecutionPlanMetricsSet,
}

impl ClusterExec {
    fn new(input: Arc<dyn ExecutionPlan>, cluster: Arc<Cluster>) -> ClusterExec {
        ClusterExec { input, cluster, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for ClusterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterExec: workers={}", self.cluster.workers.len())
    }
}

impl ExecutionPlan for ClusterExec {
    one_input!("ClusterExec", |this, input| Ok(Arc::new(ClusterExec::new(input, Arc::clone(&this.cluster)))));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 || self.input.output_partitioning().partition_count() != 1 {
            return internal_err!("ClusterExec has one partition, number {partition} was asked for");
        }
        let (plan, cluster, metrics) = (Arc::clone(&self.input), Arc::clone(&self.cluster), self.metrics.clone());
        let rows = futures::stream::once(async move { cluster.answer(&plan, &context, &metrics).await }).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
