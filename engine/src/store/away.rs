//! Away: scans of a store that another process does, which has opened the same store.
//!
//! ```text
//! StoredExec ─▶ Away: which groups of rows of which files, columns, conditions ─▶ elsewhere ─▶ the groups of its session ─▶ StoredExec
//! ```
//! A group is named by its run, its file and its number there, and compared by all that makes rows of it: whoever has another commit of
//! the store, or gave its runs other identities or ticks, has no such group, and says so.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::catalog::SchemaProvider;
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

use super::conditions::Condition;
use super::scan::{Segment, StoredExec, StoredTable, shares};
use crate::tables::Table;

/// A scan as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Away {
    table: String,
    columns: Vec<usize>,
    conditions: Vec<Condition>,
    any_order: bool,
    partitions: Vec<Vec<Named>>,
}

/// The name of a group, and how its rows become those of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Named {
    run: String,
    file: String,
    group: usize,
    position: i64,
    factor: i64,
    identity: i64,
    rows: usize,
}

impl Named {
    fn of(segment: &Segment) -> Option<Named> {
        let Segment::Stored(group, run, _) = segment else { return None };
        Some(Named {
            run: run.name().to_owned(),
            file: group.file.path().to_str()?.to_owned(),
            group: group.index,
            position: group.position,
            factor: group.factor,
            identity: group.identity,
            rows: group.rows(),
        })
    }
}

/// The groups of a session by their names.
#[derive(Debug)]
pub(crate) struct Segments(HashMap<(&'static str, String, String, usize), Segment>);

impl Segments {
    /// Those of the tables of a schema.
    pub(crate) fn of(schema: &dyn SchemaProvider) -> Result<Segments> {
        let mut all = HashMap::new();
        for table in Table::ALL {
            // Tables in memory are there at once.
            let Some(provider) = futures::executor::block_on(schema.table(table.name()))? else { continue };
            let provider: &dyn Any = provider.as_ref();
            let Some(stored) = provider.downcast_ref::<StoredTable>() else { continue };
            for segment in &stored.segments {
                if let Some(name) = Named::of(segment) {
                    all.insert((table.name(), name.run, name.file, name.group), segment.clone());
                }
            }
        }
        Ok(Segments(all))
    }

    fn find(&self, table: Table, wanted: &Named) -> Result<Segment> {
        let found = self.0.get(&(table.name(), wanted.run.clone(), wanted.file.clone(), wanted.group));
        match found.filter(|segment| Named::of(segment).as_ref() == Some(wanted)) {
            Some(segment) => Ok(segment.clone()),
            None => exec_err!("{DIFFERS}: rows of run `{}` are not where they were in `{}`", wanted.run, wanted.file),
        }
    }
}

/// How an error begins that says that two processes see different commits of a store.
pub(crate) const DIFFERS: &str = "the store has changed";

impl Away {
    /// A scan; `None` for other operators, and where rows are in memory or only the first are wanted.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> Option<Away> {
        let scan = plan.downcast_ref::<StoredExec>().filter(|scan| scan.limit.is_none())?;
        let partition = |segments: &Vec<Segment>| segments.iter().map(Named::of).collect::<Option<Vec<Named>>>();
        Some(Away {
            table: scan.table.name().to_owned(),
            columns: scan.columns.clone(),
            conditions: scan.conditions.as_ref().clone(),
            any_order: scan.any_order,
            partitions: scan.partitions.iter().map(partition).collect::<Option<_>>()?,
        })
    }

    /// The same scan of a session with these groups.
    pub(crate) fn scan(self, segments: &Segments) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(table) = Table::from_name(&self.table) else { return internal_err!("no table `{}`", self.table) };
        let width = table.spec().columns.len();
        if self.columns.iter().any(|column| *column >= width) || !self.conditions.iter().all(|one| is_of(one, width)) {
            return internal_err!("`{}` has {width} columns", self.table);
        }
        let find = |wanted: &Named| segments.find(table, wanted);
        let partitions = self.partitions.iter().map(|names| names.iter().map(find).collect::<Result<Vec<_>>>());
        let partitions = partitions.collect::<Result<Vec<_>>>()?;
        let scan = StoredExec::try_new(table, self.columns, partitions, self.conditions, None)?;
        Ok(Arc::new(scan.in_any_order(self.any_order)))
    }
}

fn is_of(condition: &Condition, width: usize) -> bool {
    match condition {
        Condition::Words { column, .. } | Condition::Within { column, .. } | Condition::Null { column } => {
            *column < width
        }
        Condition::All(parts) | Condition::Any(parts) => parts.iter().all(|part| is_of(part, width)),
    }
}

/// A scan that may be divided.
pub(crate) struct Leaf<'a>(&'a StoredExec);

impl<'a> Leaf<'a> {
    /// `None` for what cannot be done elsewhere.
    pub(crate) fn of(plan: &'a dyn ExecutionPlan) -> Option<Leaf<'a>> {
        Away::of(plan)?;
        plan.downcast_ref().map(Leaf)
    }

    /// About so many bytes of files are read: columns have the same share.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.segments().map(|segment| match segment {
            Segment::Stored(group, ..) => group.bytes(),
            Segment::Rows(_) => 0,
        });
        let (width, all) = (self.0.columns.len() as u64, self.0.table.spec().columns.len() as u64);
        bytes.fold(0, u64::saturating_add).saturating_mul(width) / all.max(1)
    }

    /// Whether a column of the scan is the run.
    pub(crate) fn is_run(&self, column: usize) -> bool {
        self.0.columns.get(column) == Some(&0)
    }

    /// Its runs in their order, with rows.
    pub(crate) fn runs(&self) -> Vec<(String, usize)> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut runs: Vec<(String, usize)> = Vec::new();
        for segment in self.segments() {
            let Segment::Stored(group, run, _) = segment else { continue };
            let place = *places.entry(run.name().to_owned()).or_insert(runs.len());
            if place == runs.len() {
                runs.push((run.name().to_owned(), 0));
            }
            runs[place].1 += group.rows();
        }
        runs
    }

    /// Scans of a part each, which give the rows of this one one after the other, in the same number of partitions.
    pub(crate) fn divided(&self, parts: usize) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let mut parts_of = shares(self.segments().cloned().collect(), parts);
        parts_of.resize(parts, vec![]);
        parts_of.into_iter().map(|segments| self.part(segments)).collect()
    }

    /// Scans of the runs of a part each.
    pub(crate) fn divided_by_run(
        &self,
        part_of: &BTreeMap<String, usize>,
        parts: usize,
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let mut parts_of = vec![vec![]; parts];
        for segment in self.segments() {
            let Segment::Stored(_, run, _) = segment else { return internal_err!("rows in memory are of no part") };
            match part_of.get(run.name()).and_then(|part| parts_of.get_mut(*part)) {
                Some(part) => part.push(segment.clone()),
                None => return internal_err!("run `{}` is of no part", run.name()),
            }
        }
        parts_of.into_iter().map(|segments| self.part(segments)).collect()
    }

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.0.partitions.iter().flatten()
    }

    fn part(&self, segments: Vec<Segment>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut partitions = shares(segments, self.0.partitions.len());
        partitions.resize(self.0.partitions.len().max(1), vec![]);
        let conditions = self.0.conditions.as_ref().clone();
        let scan = StoredExec::try_new(self.0.table, self.0.columns.clone(), partitions, conditions, None)?;
        Ok(Arc::new(scan.in_any_order(self.0.any_order)))
    }
}

/// Runs one after the other in so many parts of about as many rows.
pub(crate) fn parts_of_runs(runs: &[(String, usize)], parts: usize) -> BTreeMap<String, usize> {
    let all: usize = runs.iter().map(|(_, rows)| *rows).sum();
    let share = all.div_ceil(parts.max(1)).max(1);
    let (mut before, mut used, mut part_of) = (0, 0, BTreeMap::new());
    for (run, rows) in runs {
        // By its middle, as rows are shared: a large one at the end is a part of its own.
        if used == 0 || (used < parts && before > 0 && before + rows / 2 >= share * used) {
            used += 1;
        }
        let part = used - 1;
        part_of.insert(run.clone(), part);
        before += rows;
    }
    part_of
}
