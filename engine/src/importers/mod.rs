//! The formats: one file (or folder) each, one line in [`importers`].
//!
//! An importer recognises its format by content, reads records, and hands columns to a [`RunBuilder`](crate::trace::RunBuilder). It
//! never knows another format, never prints, and never stops at a damaged record that it can count and step over. The trait and its
//! types are in `importer.rs`: formats depend on that module, and not on this one, which lists them.

mod actorprof;
mod blocking;
mod chrome;
mod collectives;
mod daisen;
pub mod examine;
mod folded;
pub(crate) mod foreign;
mod importer;
mod mpi;
pub(crate) mod nsys;
mod parsec;
mod pascal;
mod sqlite;
mod table;
mod tfprof;

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;

use crate::error::ImportError;
use crate::trace::{Run, Source};

pub use importer::{FormatDoc, ImportContext, ImportOptions, Importer, OptionDoc};

/// All formats, in the order in which they are tried on a file: those with an unambiguous mark first, `table` (which
/// takes any table of rows) last.
pub fn importers() -> &'static [&'static dyn Importer] {
    &[
        &parsec::Parsec,
        &tfprof::Tfprof,
        &pascal::Pascal,
        &actorprof::ActorProf,
        &chrome::Chrome,
        &daisen::Daisen,
        &nsys::Nsys,
        &folded::Folded,
        &table::TableImporter,
    ]
}

/// The runs of a source, without a session around them: in the format of that name, else in the one that recognises it.
///
/// # Errors
/// As [`Importer::import`]; [`ImportError::Unrecognised`], [`ImportError::UnknownFormat`].
pub fn import(
    source: &Source,
    format: Option<&str>,
    options: &ImportOptions,
    threads: usize,
    pool: Arc<dyn MemoryPool>,
) -> Result<Vec<Run>, ImportError> {
    let importer = match format {
        Some(name) => by_name(importers(), name)?,
        None => recognise(importers(), source, options, true).ok_or_else(|| foreign::refused(source))?,
    };
    let mut context = ImportContext::new(options, threads, pool, 0);
    importer.import(source, &mut context)?;
    Ok(context.into_runs())
}

/// The first of some formats that recognises the source, else the first that accepts it. A file of another tool is taken as a
/// table only when the options mention the format `table`.
pub(crate) fn recognise<'a>(
    among: &[&'a dyn Importer],
    source: &Source,
    options: &ImportOptions,
    named: bool,
) -> Option<&'a dyn Importer> {
    if let Some(importer) = among.iter().copied().find(|importer| importer.recognise(source)) {
        return Some(importer);
    }
    let named = named && foreign::identify(source).is_none();
    among.iter().copied().find(|importer| importer.accepts(source, options, named))
}

/// The one of some formats that has this name.
pub(crate) fn by_name<'a>(among: &[&'a dyn Importer], name: &str) -> Result<&'a dyn Importer, ImportError> {
    among.iter().copied().find(|importer| importer.doc().name == name).ok_or_else(|| ImportError::UnknownFormat {
        name: name.to_owned(),
        known: among.iter().map(|importer| importer.doc().name).collect(),
    })
}
