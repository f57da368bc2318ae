//! Schemas of views, each planned when a query first names it: a session that does not use them pays nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList, SchemaProvider,
    TableProvider,
};
use datafusion::common::{exec_err, internal_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::ViewTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::optimizer::Analyzer;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use tokio::sync::OnceCell;

use crate::sql;
use crate::tables::ViewSpec;

/// A view's text, and its plan once it was asked for.
type Planned = (String, OnceCell<Arc<dyn TableProvider>>);

/// Views, and further names of some.
pub(crate) struct ViewSchema {
    /// What they are planned with, as long as the session lives.
    state: Box<dyn Fn() -> Option<SessionState> + Send + Sync>,
    listed: Vec<&'static str>,
    planned: BTreeMap<&'static str, Planned>,
}

impl ViewSchema {
    /// A schema of these views, planned with what the session has by then. `sql` gives the text of a view in this session; `others`
    /// are further names that are understood but not listed, each with the name of its view.
    pub(crate) fn of(
        context: &SessionContext,
        views: &[ViewSpec],
        others: &[(&'static str, &str)],
        sql: impl Fn(&str) -> String,
    ) -> ViewSchema {
        let state = context.state_weak_ref();
        let planned = views.iter().flat_map(|view| {
            let others = others.iter().filter(|(_, of)| *of == view.name).map(|(name, _)| *name);
            others.chain([view.name]).map(|name| (name, (sql(view.sql), OnceCell::new())))
        });
        ViewSchema {
            listed: views.iter().map(|view| view.name).collect(),
            planned: planned.collect(),
            state: Box::new(move || state.upgrade().map(|state| state.read().clone())),
        }
    }
}

/// A view may have words that DataFusion's own parser does not know.
fn parsed(sql: &str) -> Result<Statement, DataFusionError> {
    let statements = sql::parse(sql).map_err(|error| DataFusionError::Plan(error.message))?;
    let view = statements.first().map(|statement| statement.parsed.clone());
    view.ok_or_else(|| DataFusionError::Plan("a view without a query".to_owned()))
}

/// The plan of a created view, as DataFusion keeps it.
fn coerced(plan: LogicalPlan) -> Result<LogicalPlan> {
    let analyzer = Analyzer::with_rules(vec![Arc::new(TypeCoercion::new())]);
    analyzer.execute_and_check(plan, &ConfigOptions::default(), |_, _| {})
}

impl fmt::Debug for ViewSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.planned.keys()).finish()
    }
}

#[async_trait]
impl SchemaProvider for ViewSchema {
    fn table_names(&self) -> Vec<String> {
        self.listed.iter().map(|&name| name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some((sql, planned)) = self.planned.get(name) else { return Ok(None) };
        let view = planned.get_or_try_init(|| async {
            let state = (self.state)().ok_or_else(|| internal_datafusion_err!("the session is gone"))?;
            let (plan, definition) = match state.statement_to_plan(parsed(sql)?).await? {
                LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
                    (coerced(Arc::unwrap_or_clone(view.input))?, view.definition)
                }
                plan => (plan, Some(sql.clone())),
            };
            Ok::<_, DataFusionError>(Arc::new(ViewTable::new(plan, definition)) as Arc<dyn TableProvider>)
        });
        Ok(Some(Arc::clone(view.await?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.planned.contains_key(name)
    }
}

/// The schema of the tables: they, what a user creates beside them, and our views over them.
///
/// These views are as if they were created when the session began: over its tables and with its settings, whatever a user has put in
/// the place of a table since. A program that embeds the engine may drop and replace them.
#[derive(Debug)]
pub(crate) struct Main {
    own: Arc<dyn SchemaProvider>,
    views: Arc<ViewSchema>,
    /// Views that were dropped.
    dropped: RwLock<BTreeSet<String>>,
    state: Arc<OnceLock<SessionState>>,
}

impl Main {
    /// `own` holds the tables and what users create; `views` are names and queries, each of which may refer to those before it.
    pub(crate) fn new(own: Arc<dyn SchemaProvider>, views: &[(&'static str, String)]) -> Main {
        let state: Arc<OnceLock<SessionState>> = Arc::default();
        let planned_with = Arc::clone(&state);
        let planned =
            views.iter().map(|(name, sql)| (*name, (format!("CREATE VIEW {name} AS {sql}"), OnceCell::new())));
        let views = ViewSchema {
            listed: views.iter().map(|(name, _)| *name).collect(),
            planned: planned.collect(),
            state: Box::new(move || planned_with.get().cloned()),
        };
        Main { own, views: Arc::new(views), dropped: RwLock::default(), state }
    }

    /// Has the views planned with this state, over these tables and the other schemas. Called once, when the session has all its
    /// functions.
    pub(crate) fn begin(
        &self,
        mut state: SessionState,
        tables: Arc<dyn SchemaProvider>,
        others: &dyn CatalogProvider,
    ) -> Result<()> {
        let names = &state.config_options().catalog;
        let (catalog_name, schema_name) = (names.default_catalog.clone(), names.default_schema.clone());
        let catalog = MemoryCatalogProvider::new();
        for name in others.schema_names() {
            others.schema(&name).map(|schema| catalog.register_schema(&name, schema)).transpose()?;
        }
        // Not this schema itself, which would then hold itself.
        let views = Arc::downgrade(&self.views);
        catalog.register_schema(&schema_name, Arc::new(SeenByViews { tables, views }))?;
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog(catalog_name, Arc::new(catalog));
        state.register_catalog_list(Arc::new(catalogs));
        self.state.set(state).map_err(|_| internal_datafusion_err!("the session began twice"))
    }

    fn has_view(&self, name: &str) -> bool {
        let dropped = || self.dropped.read().unwrap_or_else(PoisonError::into_inner);
        self.views.table_exist(name) && !dropped().contains(name)
    }
}

#[async_trait]
impl SchemaProvider for Main {
    fn table_names(&self) -> Vec<String> {
        let views = self.views.table_names().into_iter().filter(|name| self.has_view(name));
        self.own.table_names().into_iter().chain(views).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        match self.has_view(name) {
            true => self.views.table(name).await,
            false => self.own.table(name).await,
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.has_view(&name) {
            return exec_err!("The table {name} already exists");
        }
        self.own.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.has_view(name) {
            return self.own.deregister_table(name);
        }
        self.dropped.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        // One that nobody has asked for was never made.
        Ok(self.views.planned.get(name).and_then(|(_, planned)| planned.get().cloned()))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.has_view(name) || self.own.table_exist(name)
    }
}

/// What the views of [`Main`] are planned over.
#[derive(Debug)]
struct SeenByViews {
    tables: Arc<dyn SchemaProvider>,
    views: Weak<ViewSchema>,
}

#[async_trait]
impl SchemaProvider for SeenByViews {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        match (self.tables.table(name).await?, self.views.upgrade()) {
            (None, Some(views)) => views.table(name).await,
            (table, _) => Ok(table),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_exist(name)
    }
}
