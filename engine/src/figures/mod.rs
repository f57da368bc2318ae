//! Views that saved queries share: one schema for each tool or field whose figures they reproduce, and one for comparisons. A view is planned when a query
//! first names it (`view_schema.rs`); users may use the views in their own queries.

mod actorprof;
mod changed;
mod gpu;
mod graph;
mod hta;
mod pascal;

use std::sync::Arc;

use datafusion::catalog::CatalogProvider;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use crate::tables::ViewSpec;
use crate::view_schema::ViewSchema;

/// The schemas, each with its views; a view may refer to those before it.
static SCHEMAS: [(&str, &[ViewSpec]); 6] = [
    ("actorprof", &actorprof::VIEWS),
    ("changed", &changed::VIEWS),
    ("gpu", &gpu::VIEWS),
    ("graph", &graph::VIEWS),
    ("hta", &hta::VIEWS),
    ("pascal", &pascal::VIEWS),
];

const RUN: (&str, &str) = ("run", "The recording.");

/// The names of the schemas.
pub(crate) fn schemas() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(schema, _)| *schema)
}

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
