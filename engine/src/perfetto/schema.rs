//! Where the views are found: in their own schema, and by bare names that `main` does not have.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::datasource::ViewTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use tokio::sync::OnceCell;
use tq_udfs::ticks::Tick;

use super::views::VIEWS;

/// A view's text, and its plan once it was asked for.
type Planned = (String, OnceCell<Arc<dyn TableProvider>>);

/// The schema `perfetto`: each view is planned when it is first asked for.
pub(super) struct Views {
    /// The session's state, as long as the session lives.
    state: Box<dyn Fn() -> Option<SessionState> + Send + Sync>,
    planned: HashMap<&'static str, Planned>,
}

impl Views {
    pub(super) fn of(context: &SessionContext, tick: Tick) -> Views {
        // The absolute time of a trace in picoseconds does not fit a BIGINT.
        let sql = |sql: &str| match tick {
            Tick::Nanosecond => sql.to_owned(),
            Tick::Picosecond => sql.replace("coalesce(r.origin, 0)", "0"),
        };
        let state = context.state_weak_ref();
        let planned = VIEWS.iter().flat_map(|view| {
            let older = OLDER_NAMES.iter().filter(|(_, of)| *of == view.name).map(|(name, _)| *name);
            older.chain([view.name]).map(|name| (name, (sql(view.sql), OnceCell::new())))
        });
        Views { planned: planned.collect(), state: Box::new(move || state.upgrade().map(|state| state.read().clone())) }
    }
}

/// Names that Perfetto still understands.
const OLDER_NAMES: [(&str, &str); 1] = [("slices", "slice")];

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.planned.keys()).finish()
    }
}

#[async_trait]
impl SchemaProvider for Views {
    fn table_names(&self) -> Vec<String> {
        VIEWS.iter().map(|view| view.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some((sql, planned)) = self.planned.get(name) else { return Ok(None) };
        let view = planned.get_or_try_init(|| async {
            let state = (self.state)().ok_or_else(|| DataFusionError::Internal("the session is gone".to_owned()))?;
            let plan = state.create_logical_plan(sql).await?;
            Ok::<_, DataFusionError>(Arc::new(ViewTable::new(plan, Some(sql.clone()))) as Arc<dyn TableProvider>)
        });
        Ok(Some(Arc::clone(view.await?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.planned.contains_key(name)
    }
}

/// The schema `main`: what it lacks is looked up among the views. It lists only its own, and its own names come first.
#[derive(Debug)]
pub(super) struct Fallback {
    main: Arc<dyn SchemaProvider>,
    views: Arc<dyn SchemaProvider>,
}

impl Fallback {
    pub(super) fn new(main: Arc<dyn SchemaProvider>, views: Arc<dyn SchemaProvider>) -> Fallback {
        Fallback { main, views }
    }
}

#[async_trait]
impl SchemaProvider for Fallback {
    fn table_names(&self) -> Vec<String> {
        self.main.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        match self.main.table(name).await? {
            None => self.views.table(name).await,
            own => Ok(own),
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.main.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.main.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.main.table_exist(name)
    }
}
