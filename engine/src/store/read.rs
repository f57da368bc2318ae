//! Read: groups of rows of a store's files as rows of a session, in the order of the trace.
//!
//! ```text
//! pages           left out by the least and greatest value of each
//! rows of tasks   left out by the conditions, before other columns are read
//! ```
//! Rows that stand in the order of the trace are decoded batch by batch. In a group of more than a page, tasks are sorted by location: the
//! wanted rows of one such group are in memory at once, and are brought into the order of the trace batch by batch, unless the query does not
//! need that order.
//!
//! Bytes of the file are compared with checksums first ([`super::blocks`]). Values are checked after that: a stranger's file may have right
//! checksums and wrong numbers. A panic of the Parquet reader counts as damage of the file, too.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{concat_batches, max, min, take};
use datafusion::arrow::datatypes::{Int64Type, Schema, SchemaRef};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use datafusion::parquet::file::metadata::ColumnChunkMetaData;
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::file::reader::ChunkReader;
use datafusion::parquet::file::statistics::Statistics;
use datafusion::physical_plan::metrics::Count;

use super::blocks::{RemoteFile, Verified};
use super::columns::{file_name, file_schema, needed, place, told};
use super::conditions::{Condition, Known};
use super::layout::{check_folder, damaged, open_plain, parts_of, runs_folder};
use super::log::{GROUP_ROWS, StoredFile};
use super::write::PAGE_ROWS;
use crate::error::ImportError;
use crate::remote::{self, Folder};
use crate::tables::{ColumnType, Table};
use crate::time::REACH;
use crate::trace::{Deadline, ROWS_PER_BATCH};

/// Positions lie below this.
const POSITIONS: i64 = 1 << 40;

/// A Parquet file of a store, its footer read once.
#[derive(Debug)]
pub(super) struct TableFile {
    path: PathBuf,
    about: Arc<StoredFile>,
    table: Table,
    footer: OnceLock<ArrowReaderMetadata>,
    /// The footer with the indexes of pages.
    indexed: OnceLock<ArrowReaderMetadata>,
    /// What keeps others from removing it.
    _lock: Option<Arc<File>>,
    /// Where it is, if not on a disk.
    remote: Option<RemoteFile>,
}

/// A group of rows, and how they become rows of the session.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(super) file: Arc<TableFile>,
    pub(super) index: usize,
    /// The position in the run of its first row.
    pub(super) position: i64,
    /// The session's ticks in one of the run.
    pub(super) factor: i64,
    /// The first identity of the run in the session.
    pub(super) identity: i64,
    /// Which of its rows are in the slice, in the order of the trace; `None` for all.
    pub(super) kept: Option<Arc<BooleanBuffer>>,
}

/// What is wanted of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Columns of the session's table, without `run`.
    pub(super) columns: &'a [usize],
    /// Rows that cannot meet these are left out as far as it is known; others may be there.
    pub(super) conditions: &'a [Condition],
    /// The name of the run, for conditions.
    pub(super) run: &'a str,
    /// So many rows at most.
    pub(super) limit: Option<usize>,
    /// Whether they may come in any order.
    pub(super) any_order: bool,
    /// Counts the bytes that are read.
    pub(super) count: Option<&'a Count>,
}

impl Wanted<'_> {
    /// All rows of these columns.
    pub(super) fn all(columns: &[usize]) -> Wanted<'_> {
        Wanted { columns, conditions: &[], run: "", limit: None, any_order: false, count: None }
    }
}

/// The wanted rows of a group, in batches of the session's table in the order of the trace.
pub(super) struct Rows {
    group: Group,
    columns: Vec<usize>,
    schema: SchemaRef,
    state: State,
}

enum State {
    /// Decoded as they are asked for: the reader, the columns of the file that it has, and the rows that are still expected.
    Streamed { reader: Box<ParquetRecordBatchReader>, columns: Vec<usize>, left: usize },
    /// In memory, of the file, by the order of the trace from a row on.
    Sorted { arrays: BTreeMap<usize, ArrayRef>, order: UInt32Array, from: usize },
    /// All are read, or none was wanted.
    Done,
}

impl TableFile {
    pub(super) fn new(root: &Path, about: &Arc<StoredFile>) -> Result<TableFile, ImportError> {
        let path = runs_folder(root).join(&about.path);
        let table = Table::from_name(&about.table).ok_or_else(|| damaged(&path, "it is of no table"))?;
        let remote = match remote::is_url(root) {
            true => Some(RemoteFile {
                folder: Folder::of(root, Deadline::default())?,
                name: format!("runs/{}", about.path),
                path: path.to_string_lossy().into(),
                failure: Arc::default(),
            }),
            false => None,
        };
        Ok(TableFile {
            path,
            about: Arc::clone(about),
            table,
            footer: OnceLock::new(),
            indexed: OnceLock::new(),
            _lock: None,
            remote,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The same file, which is not removed while this value lives.
    pub(super) fn held_by(self, lock: Arc<File>) -> TableFile {
        TableFile { _lock: Some(lock), ..self }
    }

    /// Compares the whole file with its checksums.
    pub(super) fn verify(&self) -> Result<(), ImportError> {
        let mut file = self.open()?.get_read(0).map_err(|error| damaged(&self.path, error.to_string()))?;
        let copied = std::io::copy(&mut file, &mut std::io::sink());
        copied.map(drop).map_err(|error| damaged(&self.path, error.to_string()))
    }

    fn open(&self) -> Result<Verified, ImportError> {
        if let Some(remote) = &self.remote {
            return Ok(Verified::remote(remote.clone(), Arc::clone(&self.about)));
        }
        let (folder, runs) = (self.path.parent(), self.path.parent().and_then(Path::parent));
        for folder in [runs, folder].into_iter().flatten() {
            check_folder(folder)?;
        }
        if parts_of(&self.about.path).is_none() {
            return Err(damaged(&self.path, "a store has no such file"));
        }
        let file = open_plain(&self.path)?;
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        if bytes != self.about.bytes {
            return Err(damaged(&self.path, format!("it has {bytes} bytes instead of {}", self.about.bytes)));
        }
        Ok(Verified::new(file, Arc::clone(&self.about)))
    }

    /// The footer, with the indexes of pages where they are wanted.
    fn footer(&self, file: &Verified, with_pages: bool) -> Result<&ArrowReaderMetadata, ImportError> {
        let kept = if with_pages { &self.indexed } else { &self.footer };
        if let Some(footer) = kept.get() {
            return Ok(footer);
        }
        let options = ArrowReaderOptions::new()
            .with_schema(file_schema(self.table))
            .with_skip_arrow_metadata(true)
            .with_page_index_policy(with_pages.into());
        let footer = self.guarded(|| ArrowReaderMetadata::load(file, options))?;
        let groups = footer.metadata().row_groups();
        let rows = groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
        if !rows.eq(self.about.groups.iter().copied()) {
            return Err(damaged(&self.path, "it has not the rows that its commit says"));
        }
        let columns = footer.parquet_schema().columns();
        let names = self.table.spec().columns.iter().map(|column| file_name(self.table, column.name));
        if !columns.iter().map(|column| column.name()).eq(names) {
            return Err(damaged(&self.path, format!("its columns are not those of `{}`", self.table)));
        }
        Ok(kept.get_or_init(|| footer))
    }
}

impl TableFile {
    /// Asks the Parquet reader; its panics are damage of the file, and what a server did not give is none.
    fn guarded<T>(
        &self,
        read: impl FnOnce() -> Result<T, datafusion::parquet::errors::ParquetError>,
    ) -> Result<T, ImportError> {
        let read = catch_unwind(AssertUnwindSafe(read));
        let failure = self.remote.as_ref().filter(|_| !matches!(read, Ok(Ok(_))));
        let failure = failure.and_then(|remote| remote.failure.lock().unwrap_or_else(PoisonError::into_inner).take());
        match (read, failure) {
            (Ok(Ok(read)), _) => Ok(read),
            (_, Some(failure)) => Err(failure),
            (Ok(Err(error)), None) => {
                let text = error.to_string();
                let text = ["External: ", "Parquet error: ", "Arrow: "]
                    .iter()
                    .fold(text.as_str(), |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
                Err(damaged(&self.path, text))
            }
            (Err(_), None) => Err(damaged(&self.path, "it is no Parquet file that can be read")),
        }
    }
}

impl Group {
    /// How many rows it has in the file.
    pub(super) fn rows_of_file(&self) -> usize {
        self.file.about.groups.get(self.index).map_or(0, |rows| (*rows).min(GROUP_ROWS) as usize)
    }

    /// How many rows it has in the session.
    pub(super) fn rows(&self) -> usize {
        self.kept.as_ref().map_or_else(|| self.rows_of_file(), |kept| kept.count_set_bits())
    }

    /// Its share of the file's bytes.
    #[cfg(feature = "cluster")]
    pub(super) fn bytes(&self) -> u64 {
        let all: u64 = self.file.about.groups.iter().sum();
        let share = u128::from(self.file.about.bytes) * self.rows_of_file() as u128 / u128::from(all.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Its table.
    pub(super) fn table(&self) -> Table {
        self.file.table
    }

    /// Whether its rows stand in another order than that of the trace; positions tell the order then.
    fn is_clustered(&self) -> bool {
        self.file.table == Table::Tasks && self.rows_of_file() > PAGE_ROWS
    }

    /// What is known of a column in the session's numbers, as the log and the footer of the file tell.
    pub(super) fn known(&self, column: usize) -> Result<Known, ImportError> {
        if self.table() == Table::Tasks && column == place(Table::Tasks, "finish") {
            return Ok(self.in_session(column, self.finishes()));
        }
        let footer = self.any_footer()?;
        let group = footer.metadata().row_groups().get(self.index);
        let of_file = |column: usize| match group.and_then(|group| group.columns().get(column)) {
            Some(chunk) => known_of_chunk(chunk, self.rows_of_file()),
            None => Known::Unknown,
        };
        Ok(self.in_session(column, self.told(column, &of_file)))
    }

    /// Whether a column may be NULL in some rows.
    pub(super) fn may_be_null(&self, column: usize) -> Result<bool, ImportError> {
        let footer = self.any_footer()?;
        let group = footer.metadata().row_groups().get(self.index);
        let nulls = |column: usize| {
            let statistics = group.and_then(|group| group.columns().get(column)?.statistics());
            statistics.and_then(Statistics::null_count_opt)
        };
        Ok(match told(self.table(), self.table().spec().columns[column].name) {
            // No value of its own, and none of the others is missing.
            Some(told) => {
                nulls(column) != Some(self.rows_of_file() as u64)
                    || told.of.iter().any(|name| nulls(place(self.table(), name)) != Some(0))
            }
            None => nulls(column) != Some(0),
        })
    }

    fn any_footer(&self) -> Result<&ArrowReaderMetadata, ImportError> {
        match self.file.indexed.get().or_else(|| self.file.footer.get()) {
            Some(footer) => Ok(footer),
            None => self.file.footer(&self.file.open()?, false),
        }
    }

    /// The least and the greatest `finish`, as the commit says.
    fn finishes(&self) -> Known {
        match self.file.about.finishes.get(self.index) {
            Some(Some((least, greatest))) => Known::Numbers((*least).into(), (*greatest).into()),
            Some(None) => Known::Null,
            None => Known::Unknown,
        }
    }

    /// What is known of a column of the table, of what is known of those of the file.
    fn told(&self, column: usize, of_file: &impl Fn(usize) -> Known) -> Known {
        match told(self.table(), self.table().spec().columns[column].name) {
            Some(told) => told.known(self.table(), of_file),
            None => of_file(column),
        }
    }

    fn in_session(&self, column: usize, known: Known) -> Known {
        match (known, self.table().spec().columns[column].column_type) {
            (Known::Numbers(least, greatest), ColumnType::Time) => {
                Known::Numbers(least * i128::from(self.factor), greatest * i128::from(self.factor))
            }
            (Known::Numbers(least, greatest), ColumnType::Identity) => {
                Known::Numbers(least + i128::from(self.identity), greatest + i128::from(self.identity))
            }
            (known, _) => known,
        }
    }

    /// The wanted rows.
    pub(super) fn read(&self, wanted: Wanted<'_>) -> Result<Rows, ImportError> {
        let table = self.table();
        let fields: Vec<_> = wanted.columns.iter().map(|column| table.schema().field(*column).clone()).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = self.file.open()?.counting(wanted.count.cloned());
        let selection = self.pages(&file, wanted)?;
        let state = match selection {
            Some(selection) if !selection.selects_any() => State::Done,
            selection if self.is_clustered() && !self.as_they_stand(wanted) => {
                self.sorted(&file, wanted, selection.as_ref())?
            }
            selection => self.streamed(&file, wanted, selection)?,
        };
        Ok(Rows { group: self.clone(), columns: wanted.columns.to_vec(), schema, state })
    }

    /// Whether all rows are wanted, in no order: they are decoded batch by batch, and nothing is looked up.
    fn as_they_stand(&self, wanted: Wanted<'_>) -> bool {
        wanted.any_order && wanted.conditions.is_empty() && self.kept.is_none()
    }

    /// All rows as one batch.
    pub(super) fn read_all(&self, columns: &[usize]) -> Result<RecordBatch, ImportError> {
        let rows = self.read(Wanted::all(columns))?;
        let schema = Arc::clone(&rows.schema);
        let batches = rows.collect::<Result<Vec<_>, _>>()?;
        match batches.as_slice() {
            [batch] => Ok(batch.clone()),
            batches => concat_batches(&schema, batches).map_err(|error| damaged(&self.file.path, error.to_string())),
        }
    }

    /// The rows of pages that may meet the conditions; `None` where all are read.
    fn pages(&self, file: &Verified, wanted: Wanted<'_>) -> Result<Option<RowSelection>, ImportError> {
        if wanted.conditions.is_empty() || self.rows_of_file() <= PAGE_ROWS {
            return Ok(None);
        }
        let footer = self.file.footer(file, true)?.metadata();
        let of_group = |column: usize| {
            let columns = footer.column_index()?.get(self.index)?.get(column)?;
            Some((columns, footer.offset_index()?.get(self.index)?.get(column)?.page_locations()))
        };
        let mut columns = Vec::new();
        wanted.conditions.iter().for_each(|condition| condition.columns(&mut columns));
        let mut needed_columns = Vec::new();
        columns.iter().for_each(|column| needed(self.table(), *column, &mut needed_columns));
        // Pages of all these columns begin at the same rows, or nothing is left out.
        let mut starts: Option<Vec<usize>> = None;
        for column in &needed_columns {
            let Some((_, pages)) = of_group(*column) else { return Ok(None) };
            let of_column: Vec<usize> = pages.iter().map(|page| page.first_row_index.max(0) as usize).collect();
            if starts.get_or_insert_with(|| of_column.clone()) != &of_column {
                return Ok(None);
            }
        }
        let Some(starts) = starts.filter(|starts| starts.is_sorted()) else { return Ok(None) };
        let ends = starts.iter().copied().skip(1).chain([self.rows_of_file()]);
        let is_wanted = |page: usize| {
            let of_file =
                |column: usize| of_group(column).map_or(Known::Unknown, |(index, _)| known_of_page(index, page));
            let known = |column: usize| self.in_session(column, self.told(column, &of_file));
            wanted.conditions.iter().all(|condition| condition.may_hold(wanted.run, &known))
        };
        let ranges = starts.iter().zip(ends).enumerate();
        let ranges: Vec<Range<usize>> =
            ranges.filter(|(page, _)| is_wanted(*page)).map(|(_, (start, end))| *start..end).collect();
        if ranges.len() == starts.len() {
            return Ok(None);
        }
        Ok(Some(RowSelection::from_consecutive_ranges(ranges.into_iter(), self.rows_of_file())))
    }

    /// Rows that stand in the order of the trace.
    fn streamed(
        &self,
        file: &Verified,
        wanted: Wanted<'_>,
        selection: Option<RowSelection>,
    ) -> Result<State, ImportError> {
        let kept = self.kept.as_ref().map(|kept| {
            let ranges = kept.set_slices().map(|(from, to)| from..to);
            RowSelection::from_consecutive_ranges(ranges, self.rows_of_file())
        });
        let selection = match (selection, kept) {
            (Some(one), Some(other)) => Some(one.intersection(&other)),
            (one, other) => one.or(other),
        };
        let mut columns = Vec::new();
        wanted.columns.iter().for_each(|column| needed(self.table(), *column, &mut columns));
        let all = selection.as_ref().map_or(self.rows_of_file(), RowSelection::row_count);
        let left = wanted.limit.map_or(all, |limit| limit.min(all));
        if left == 0 {
            return Ok(State::Done);
        }
        let reader = self.reader(file, &mut columns, selection, ROWS_PER_BATCH, Some(left))?;
        Ok(State::Streamed { reader: Box::new(reader), columns, left })
    }

    /// Rows that are brought into the order of the trace.
    fn sorted(
        &self,
        file: &Verified,
        wanted: Wanted<'_>,
        selection: Option<&RowSelection>,
    ) -> Result<State, ImportError> {
        let mut all = vec![1];
        wanted.columns.iter().for_each(|column| needed(self.table(), *column, &mut all));
        let decides = !wanted.conditions.is_empty() || wanted.limit.is_some() || self.kept.is_some();
        let mut first = vec![1];
        if decides {
            let mut columns = Vec::new();
            wanted.conditions.iter().for_each(|condition| condition.columns(&mut columns));
            columns.iter().for_each(|column| needed(self.table(), *column, &mut first));
        } else {
            first.clone_from(&all);
        }
        let mut arrays = self.columns(file, &mut first, selection)?;
        let positions = arrays.get(&1).map(|array| array.as_primitive::<Int64Type>().clone());
        let positions = positions.ok_or_else(|| self.wrong_positions())?;
        if !decides {
            let order = self.order(&positions)?;
            return Ok(State::Sorted { arrays, order, from: 0 });
        }
        let mut rows = self.rows_that_meet(&arrays, &positions, wanted)?;
        rows.sort_unstable_by_key(|row| positions.value(*row as usize));
        if rows.windows(2).any(|pair| positions.value(pair[0] as usize) == positions.value(pair[1] as usize)) {
            return Err(self.wrong_positions());
        }
        rows.truncate(wanted.limit.unwrap_or(usize::MAX));
        if rows.is_empty() {
            return Ok(State::Done);
        }
        // The order in which they stand in the file, and where each is in that of the trace.
        let mut of_file: Vec<u32> = rows.clone();
        of_file.sort_unstable();
        let place_of = |row: &u32| of_file.binary_search(row).unwrap_or_default() as u32;
        let order: UInt32Array = rows.iter().map(place_of).collect::<Vec<u32>>().into();
        if of_file.len() < positions.len() {
            let of_file: UInt32Array = of_file.clone().into();
            for array in arrays.values_mut() {
                *array = take(array, &of_file, None).map_err(|error| damaged(&self.file.path, error.to_string()))?;
            }
        }
        all.retain(|column| !first.contains(column));
        if !all.is_empty() {
            let selection = self.selected(selection, &of_file);
            arrays.extend(self.columns(file, &mut all, selection.as_ref())?);
        }
        Ok(State::Sorted { arrays, order, from: 0 })
    }

    /// Which of the rows that were read are in the slice and meet the conditions.
    fn rows_that_meet(
        &self,
        arrays: &BTreeMap<usize, ArrayRef>,
        positions: &Int64Array,
        wanted: Wanted<'_>,
    ) -> Result<Vec<u32>, ImportError> {
        let mut columns = Vec::new();
        wanted.conditions.iter().for_each(|condition| condition.columns(&mut columns));
        let mut of_session = BTreeMap::new();
        for column in columns {
            of_session.insert(column, self.of_session(column, arrays)?);
        }
        let array = |column: usize| of_session.get(&column).cloned();
        let meets: Vec<BooleanArray> =
            wanted.conditions.iter().map(|condition| condition.rows(wanted.run, positions.len(), &array)).collect();
        let mut rows = Vec::new();
        for row in 0..positions.len() {
            let place = positions.value(row).checked_sub(self.position).and_then(|place| usize::try_from(place).ok());
            let place = place.filter(|place| *place < self.rows_of_file() && positions.is_valid(row));
            let place = place.ok_or_else(|| self.wrong_positions())?;
            let is_kept = self.kept.as_ref().is_none_or(|kept| kept.value(place));
            if is_kept && meets.iter().all(|meets| meets.value(row)) {
                rows.push(row as u32);
            }
        }
        Ok(rows)
    }

    /// The rows of the group that stand at these places among the selected.
    fn selected(&self, selection: Option<&RowSelection>, places: &[u32]) -> Option<RowSelection> {
        if places.len() == self.rows_of_file() {
            return None;
        }
        let mut rows: Vec<usize> = Vec::with_capacity(places.len());
        match selection {
            None => rows.extend(places.iter().map(|place| *place as usize)),
            Some(selection) => {
                let mut places = places.iter().map(|place| *place as usize).peekable();
                let (mut row, mut seen) = (0, 0);
                for selector in selection.iter() {
                    if !selector.skip {
                        while let Some(place) = places.next_if(|place| *place < seen + selector.row_count) {
                            rows.push(row + place - seen);
                        }
                        seen += selector.row_count;
                    }
                    row += selector.row_count;
                }
            }
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for row in rows {
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => ranges.push(row..row + 1),
            }
        }
        Some(RowSelection::from_consecutive_ranges(ranges.into_iter(), self.rows_of_file()))
    }

    /// A reader of these columns of the file, which become those that it has, in their order.
    fn reader(
        &self,
        file: &Verified,
        columns: &mut Vec<usize>,
        selection: Option<RowSelection>,
        batch_rows: usize,
        limit: Option<usize>,
    ) -> Result<ParquetRecordBatchReader, ImportError> {
        columns.sort_unstable();
        columns.dedup();
        // Without the indexes of pages, those that are not wanted would be read to find the next.
        let with_pages = selection.is_some() && self.rows_of_file() > PAGE_ROWS;
        let footer = self.file.footer(file, with_pages)?.clone();
        self.file.guarded(|| {
            let mask = ProjectionMask::roots(footer.parquet_schema(), columns.iter().copied());
            let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), footer)
                .with_row_groups(vec![self.index])
                .with_projection(mask)
                .with_batch_size(batch_rows.max(1));
            if let Some(selection) = selection {
                builder = builder.with_row_selection(selection);
            }
            if let Some(limit) = limit {
                builder = builder.with_limit(limit);
            }
            builder.build()
        })
    }

    /// The selected rows of these columns as they stand in the file, whole.
    fn columns(
        &self,
        file: &Verified,
        columns: &mut Vec<usize>,
        selection: Option<&RowSelection>,
    ) -> Result<BTreeMap<usize, ArrayRef>, ImportError> {
        let rows = selection.map_or(self.rows_of_file(), RowSelection::row_count);
        let reader = self.reader(file, columns, selection.cloned(), rows, None)?;
        let schema = file_schema(self.table());
        let schema = Arc::new(schema.project(columns).map_err(|error| damaged(&self.file.path, error.to_string()))?);
        let batch = self.file.guarded(|| {
            let batches = reader.collect::<Result<Vec<_>, _>>()?;
            match batches.as_slice() {
                [batch] => Ok(batch.clone()),
                batches => Ok(concat_batches(&schema, batches)?),
            }
        })?;
        match batch.num_rows() == rows && batch.num_columns() == columns.len() {
            true => Ok(columns.iter().copied().zip(batch.columns().iter().cloned()).collect()),
            false => Err(self.wrong_rows()),
        }
    }

    /// Where the row of each position is.
    fn order(&self, positions: &Int64Array) -> Result<UInt32Array, ImportError> {
        if positions.null_count() > 0 {
            return Err(self.wrong_positions());
        }
        let mut order = vec![u32::MAX; positions.len()];
        for (row, position) in (0u32..).zip(positions.values()) {
            let place = position.checked_sub(self.position).and_then(|place| usize::try_from(place).ok());
            let slot = place.and_then(|place| order.get_mut(place)).filter(|slot| **slot == u32::MAX);
            *slot.ok_or_else(|| self.wrong_positions())? = row;
        }
        Ok(order.into())
    }

    fn wrong_positions(&self) -> ImportError {
        damaged(&self.file.path, format!("the positions in group {} are wrong", self.index))
    }

    fn wrong_rows(&self) -> ImportError {
        damaged(&self.file.path, format!("group {} has not the rows that it should", self.index))
    }

    /// A column of the session's table, of those of the file.
    fn of_session(&self, index: usize, arrays: &BTreeMap<usize, ArrayRef>) -> Result<ArrayRef, ImportError> {
        let table = self.table();
        let column = &table.spec().columns[index];
        let wrong =
            |value: i64| damaged(&self.file.path, format!("`{}` has the value {value}, which cannot be", column.name));
        let array = arrays.get(&index).ok_or_else(|| self.wrong_rows())?;
        let array = match told(table, column.name) {
            None => Arc::clone(array),
            Some(told) => {
                let of: Option<Vec<&ArrayRef>> = told.of.iter().map(|name| arrays.get(&place(table, name))).collect();
                let values = told.read(array, &of.ok_or_else(|| self.wrong_rows())?);
                Arc::new(values.map_err(|()| {
                    damaged(&self.file.path, format!("`{}` of a row is beyond all numbers", column.name))
                })?)
            }
        };
        Ok(match column.column_type {
            ColumnType::Identity => {
                let of_session = |position: i64| match (0..POSITIONS).contains(&position) {
                    true => Ok(position + self.identity),
                    false => Err(wrong(position)),
                };
                Arc::new(array.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(of_session)?)
            }
            ColumnType::Time => {
                let is_length = column.name == "duration";
                let times = array.as_primitive::<Int64Type>();
                let are_known = || [min(times), max(times)].into_iter().flatten().all(|time| REACH.contains(&time));
                // Nothing to scale, nothing to copy.
                if self.factor == 1 && (is_length || are_known()) {
                    return Ok(array);
                }
                let of_session = |time: i64| {
                    let scaled = time.checked_mul(self.factor).filter(|time| REACH.contains(time) || is_length);
                    scaled.ok_or_else(|| wrong(time))
                };
                Arc::new(times.try_unary::<_, Int64Type, _>(of_session)?)
            }
            _ => array,
        })
    }
}

impl Rows {
    /// Bytes that they hold in memory now.
    pub(super) fn bytes(&self) -> usize {
        match &self.state {
            State::Sorted { arrays, order, .. } => {
                let arrays: usize = arrays.values().map(|array| array.get_array_memory_size()).sum();
                arrays + order.get_array_memory_size()
            }
            State::Streamed { .. } | State::Done => 0,
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ImportError> {
        let file = Arc::clone(&self.group.file);
        let wrong = |error: datafusion::arrow::error::ArrowError| damaged(&file.path, error.to_string());
        let (arrays, rows) = match &mut self.state {
            State::Done => return Ok(None),
            State::Streamed { reader, columns, left } => {
                let batch = file.guarded(|| Ok(reader.next().transpose()?))?;
                let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                if rows > *left || (rows == 0 && *left > 0) {
                    return Err(self.group.wrong_rows());
                }
                *left -= rows;
                let Some(batch) = batch.filter(|batch| batch.num_columns() == columns.len()) else { return Ok(None) };
                let arrays: BTreeMap<usize, ArrayRef> =
                    columns.iter().copied().zip(batch.columns().iter().cloned()).collect();
                (arrays, rows)
            }
            State::Sorted { arrays, order, from } => {
                let rows = (order.len() - *from).min(ROWS_PER_BATCH);
                if rows == 0 {
                    self.state = State::Done;
                    return Ok(None);
                }
                let now = order.slice(*from, rows);
                *from += rows;
                let take =
                    |(column, array): (&usize, &ArrayRef)| Ok((*column, take(array, &now, None).map_err(wrong)?));
                (arrays.iter().map(take).collect::<Result<BTreeMap<_, _>, ImportError>>()?, rows)
            }
        };
        let columns = self.columns.iter().map(|column| self.group.of_session(*column, &arrays));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map(Some).map_err(wrong)
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ImportError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ImportError>> {
        let next = self.next_batch();
        if next.is_err() {
            self.state = State::Done;
        }
        next.transpose()
    }
}

/// What the footer says about the values of a column in a group of `rows` rows.
fn known_of_chunk(chunk: &ColumnChunkMetaData, rows: usize) -> Known {
    let Some(statistics) = chunk.statistics() else { return Known::Unknown };
    if statistics.null_count_opt() == Some(rows as u64) {
        return Known::Null;
    }
    match statistics {
        Statistics::Int64(values) => match values.min_opt().zip(values.max_opt()) {
            Some((least, greatest)) => Known::Numbers((*least).into(), (*greatest).into()),
            None => Known::Unknown,
        },
        Statistics::ByteArray(values) => match values.min_bytes_opt().zip(values.max_bytes_opt()) {
            Some((least, greatest)) => Known::Words(least.to_vec(), greatest.to_vec()),
            None => Known::Unknown,
        },
        _ => Known::Unknown,
    }
}

/// What the index of pages tells of one.
fn known_of_page(index: &ColumnIndexMetaData, page: usize) -> Known {
    if page as u64 >= index.num_pages() {
        return Known::Unknown;
    }
    match index {
        ColumnIndexMetaData::INT64(values) => match values.min_value(page).zip(values.max_value(page)) {
            Some((least, greatest)) => Known::Numbers((*least).into(), (*greatest).into()),
            None => Known::Null,
        },
        ColumnIndexMetaData::BYTE_ARRAY(values) => match values.min_value(page).zip(values.max_value(page)) {
            Some((least, greatest)) => Known::Words(least.to_vec(), greatest.to_vec()),
            None => Known::Null,
        },
        _ => Known::Unknown,
    }
}
