//! A schema of views, each planned when a query first names it: a session that does not use them pays nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::datasource::ViewTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use tokio::sync::OnceCell;

use crate::sql;
use crate::tables::ViewSpec;

/// A view's text, and its plan once it was asked for.
type Planned = (String, OnceCell<Arc<dyn TableProvider>>);

/// Views, and further names of some.
pub(crate) struct ViewSchema {
    /// The session's state, as long as the session lives.
    state: Box<dyn Fn() -> Option<SessionState> + Send + Sync>,
    listed: Vec<&'static str>,
    planned: BTreeMap<&'static str, Planned>,
}

impl ViewSchema {
    /// A schema of these views; each may refer to those before it. `sql` gives the text of a view in this session; `others` are
    /// further names that are understood but not listed, each with the name of its view.
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
            let state = (self.state)().ok_or_else(|| DataFusionError::Internal("the session is gone".to_owned()))?;
            let plan = state.statement_to_plan(parsed(sql)?).await?;
            Ok::<_, DataFusionError>(Arc::new(ViewTable::new(plan, Some(sql.clone()))) as Arc<dyn TableProvider>)
        });
        Ok(Some(Arc::clone(view.await?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.planned.contains_key(name)
    }
}
