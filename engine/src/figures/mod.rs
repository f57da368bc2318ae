//! What saved queries share: a schema of views for each tool or field whose figures they repeat. The views are planned when somebody
//! names them (`view_schema.rs`), and serve those who write a query of their own as well.

mod actorprof;
mod gpu;
mod hta;

use std::sync::Arc;

use datafusion::catalog::CatalogProvider;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use crate::tables::ViewSpec;
use crate::view_schema::ViewSchema;

/// The schemas, each with its views; a view may speak of those before it.
static SCHEMAS: [(&str, &[ViewSpec]); 3] =
    [("actorprof", &actorprof::VIEWS), ("gpu", &gpu::VIEWS), ("hta", &hta::VIEWS)];

const RUN: (&str, &str) = ("run", "The recording.");

/// Every view with the name by which it is asked, as `hta.ranks`.
pub fn views() -> impl Iterator<Item = (String, &'static ViewSpec)> {
    SCHEMAS.iter().flat_map(|(schema, views)| views.iter().map(move |view| (format!("{schema}.{}", view.name), view)))
}

/// Registers the schemas.
pub(crate) fn register(context: &SessionContext, catalog: &dyn CatalogProvider) -> Result<()> {
    for (schema, views) in &SCHEMAS {
        catalog.register_schema(schema, Arc::new(ViewSchema::of(context, views, &[], str::to_owned)))?;
    }
    Ok(())
}
