//! Perfetto's names without their schema: `SELECT * FROM slice` finds `perfetto.slice`, where `main` has no table of that name.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result};

/// The schema `main`: a name that it lacks is looked up among the views. It lists only its own tables, and these take
/// precedence.
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
