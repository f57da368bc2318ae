//! Write: runs become Parquet files in a folder of their own, and then part of the store, or leave nothing behind.
//!
//! ```text
//! runs/.import-<id>  is locked and written → files and folder are made durable → renamed to runs/<id> → commit
//! ```
//! A folder that no commit names and that is not locked may be removed. Behind a URL, files are written to a temporary folder and then sent
//! under their final names; there are no locks there, and `gc` goes by their age.
//!
//! Rows of a run are cut, in the order of the trace, into groups of 2^20, or fewer where they have long texts. The rows of a group of tasks are sorted by location and
//! start, so that a page holds few locations; their positions tell the order of the trace. All runs of an import share its files, and
//! no group has rows of two runs. The order of a file is never declared (`sorting_columns`): readers believe it for the whole file.
//! Identities are positions in the run, so that a run can stand anywhere in a session.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::compute::{max, min, take};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::common::Result as DataFusionResult;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::types::ColumnPath;
use tempfile::TempDir;

use super::blocks::Summed;
use super::chunk;
use super::columns::{file_name, file_schema, place, told};
use super::facts::{Seen, WrittenRun};
use super::layout::{ID_LETTERS, STAGING, failed, make, runs_folder, sync_folder};
use super::log::{self, Commit, GROUP_ROWS, Part, State, StoredFile, by};
use crate::error::ImportError;
use crate::remote::{self, Folder};
use crate::tables::{ColumnType, Table};
use crate::trace::temporary::Registered;
use crate::trace::{Deadline, NamedRun, Run, TemporaryFolder, no_copy, one_column};

/// Rows of a page. Groups of no more rows are not sorted. Unit tests have small groups of small pages, so that a few rows are many.
pub(super) const PAGE_ROWS: usize = if cfg!(test) { 8 } else { 8192 };
/// Rows of a group that is written.
const GROUP: usize = if cfg!(test) { 40 } else { GROUP_ROWS as usize };
/// A group with this many bytes of free text is full: a scan has the wanted columns of one group in memory.
const GROUP_TEXT: usize = 64 << 20;
/// A file with this many rows is full.
const FILE_ROWS: u64 = 64 << 20;

/// The tables that have files.
pub(super) fn stored_tables() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().filter(|table| !matches!(table, Table::Runs | Table::ImportStats))
}

/// Files that are written and not yet part of the store.
pub(super) struct Staged {
    folder: TempDir,
    id: String,
    /// Locked as long as it lives, whatever the folder is called.
    lock: File,
    _registered: Registered,
    files: Vec<StoredFile>,
    /// Of each run.
    parts: Vec<Vec<Part>>,
    seen: Vec<Seen>,
    /// Where the folder is, for a store behind a URL.
    _temporary: Option<TemporaryFolder>,
}

/// Files under their final name; removed again unless they are kept. No signal removes them: the commit that names them may be there
/// already when it arrives. What is left without a commit, `gc` removes.
pub(super) struct Placed {
    folder: Option<PathBuf>,
    /// Behind a URL: its folder, and the names of files in it.
    objects: Option<(Arc<Folder>, Vec<String>)>,
    _lock: File,
}

/// Files in their place, what a commit says of them, and of each run.
pub(super) type Written = (Placed, Vec<StoredFile>, Vec<WrittenRun>);

impl Placed {
    /// Makes the commit that names them, as [`log::commit`] does. Where it is not known whether a service took it, they stay.
    pub(super) fn committed(
        mut self,
        root: &Path,
        mut make: impl FnMut(&State) -> Result<Commit, ImportError>,
    ) -> Result<State, ImportError> {
        let mut is_sent = false;
        let committed = log::commit(root, |state| {
            is_sent = false;
            let commit = make(state);
            is_sent = commit.is_ok();
            commit
        });
        if committed.is_ok() || is_sent {
            self.objects = None;
        }
        if committed.is_ok() {
            self.folder = None;
        }
        committed
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
        if let Some((folder, names)) = self.objects.take() {
            let _ = folder.delete(names);
        }
    }
}

/// Writes the rows of all runs into a new folder.
pub(super) fn stage(root: &Path, runs: &[NamedRun]) -> Result<Staged, ImportError> {
    if remote::is_url(root) {
        let temporary = TemporaryFolder::new().map_err(|error| no_copy(root, &error))?;
        let here = temporary.file("store");
        make(&here)?;
        return Ok(Staged { _temporary: Some(temporary), ..stage_in(&here, runs)? });
    }
    stage_in(root, runs)
}

fn stage_in(root: &Path, runs: &[NamedRun]) -> Result<Staged, ImportError> {
    let all = runs_folder(root);
    let cannot = |error: &std::io::Error| failed(&all, "write the store", error);
    let (folder, lock) = loop {
        let builder = tempfile::Builder::new().prefix(STAGING).rand_bytes(ID_LETTERS).tempdir_in(&all);
        let folder = builder.map_err(|error| cannot(&error))?;
        let lock = File::open(folder.path()).map_err(|error| cannot(&error))?;
        lock.lock().map_err(|error| cannot(&error))?;
        // `gc` may have found it before it was locked.
        if folder.path().exists() {
            break (folder, lock);
        }
    };
    let registered = Registered::new(folder.path());
    let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let id = name.trim_start_matches(STAGING).to_owned();
    let parts = vec![vec![]; runs.len()];
    let seen = runs.iter().map(|named| Seen::with_locations(&named.run)).collect::<Result<_, _>>()?;
    let mut staged = Staged { folder, id, lock, _registered: registered, files: vec![], parts, seen, _temporary: None };
    for table in stored_tables() {
        staged.write_table(table, runs)?;
    }
    sync_folder(staged.folder.path()).map_err(|error| cannot(&error))?;
    Ok(staged)
}

impl Staged {
    fn write_table(&mut self, table: Table, runs: &[NamedRun]) -> Result<(), ImportError> {
        let mut file: Option<TableFile> = None;
        let mut number = 0;
        for (place, named) in runs.iter().enumerate() {
            let mut part = Part { file: self.files.len(), first: file.as_ref().map_or(0, TableFile::next), groups: 0 };
            for group in groups_of(&named.run, table) {
                let group = group?;
                self.seen[place].add_group(table, &group, is_clustered(table, &group));
                if file.as_ref().is_some_and(|file| file.rows >= FILE_ROWS)
                    && let Some(full) = file.take()
                {
                    self.files.push(full.finish()?);
                    self.parts[place].extend((part.groups > 0).then_some(part));
                    part = Part { file: self.files.len(), first: 0, groups: 0 };
                }
                let file = match &mut file {
                    Some(file) => file,
                    none => {
                        let name = format!("{}-{number:03}.parquet", table.name());
                        number += 1;
                        none.insert(TableFile::create(self.folder.path(), &self.id, &name, table)?)
                    }
                };
                file.about.finishes.extend((table == Table::Tasks).then(|| last_times(&group)));
                let batch = prepared(table, named, group).map_err(|error| ImportError::internal(&file.path, error))?;
                file.write(&batch)?;
                part.groups += 1;
            }
            self.parts[place].extend((part.groups > 0).then_some(part));
        }
        if let Some(file) = file {
            self.files.push(file.finish()?);
        }
        Ok(())
    }

    /// Gives the files their final names.
    pub(super) fn place(self, root: &Path, deadline: Deadline) -> Result<Written, ImportError> {
        if remote::is_url(root) {
            let folder = Folder::of(root, deadline)?;
            let names: Vec<String> = self.files.iter().map(|file| format!("runs/{}", file.path)).collect();
            let placed = Placed { folder: None, objects: Some((Arc::clone(&folder), names.clone())), _lock: self.lock };
            for (file, name) in self.files.iter().zip(&names) {
                let file = file.path.rsplit('/').next().unwrap_or_default();
                folder.upload(name, &self.folder.path().join(file), deadline)?;
            }
            let runs = self.parts.into_iter().zip(self.seen);
            return Ok((placed, self.files, runs.map(written).collect()));
        }
        let all = runs_folder(root);
        let target = all.join(&self.id);
        let from = self.folder.keep();
        let placed = Placed { folder: Some(target.clone()), objects: None, _lock: self.lock };
        if let Err(error) = fs::rename(&from, &target).and_then(|()| sync_folder(&all)) {
            let _ = fs::remove_dir_all(&from);
            return Err(failed(&target, "write the store", &error));
        }
        let runs = self.parts.into_iter().zip(self.seen);
        Ok((placed, self.files, runs.map(written).collect()))
    }
}

fn written((parts, seen): (Vec<Part>, Seen)) -> WrittenRun {
    WrittenRun { parts, facts: seen.facts() }
}

/// A file that is being written.
struct TableFile {
    path: PathBuf,
    about: StoredFile,
    writer: SerializedFileWriter<Summed>,
    columns: ArrowRowGroupWriterFactory,
    rows: u64,
}

impl TableFile {
    fn create(folder: &Path, id: &str, name: &str, table: Table) -> Result<TableFile, ImportError> {
        let path = folder.join(name);
        let file = File::create_new(&path).map_err(|error| failed(&path, "write", &error))?;
        let options = ArrowWriterOptions::new().with_properties(properties(table)).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Summed::new(file), file_schema(table), options);
        let (writer, columns) = writer
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| ImportError::internal(&path, error))?;
        let path_in_store = format!("{id}/{name}");
        let (table, sums) = (table.name().to_owned(), String::new());
        Ok(TableFile {
            path,
            about: StoredFile { path: path_in_store, table, bytes: 0, groups: vec![], finishes: vec![], sums },
            writer,
            columns,
            rows: 0,
        })
    }

    fn next(&self) -> usize {
        self.about.groups.len()
    }

    /// Writes a group of rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ImportError> {
        self.write_columns(batch).map_err(|error| not_written(&self.path, &error))?;
        self.about.groups.push(batch.num_rows() as u64);
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn write_columns(&mut self, batch: &RecordBatch) -> ParquetResult<()> {
        let writers = self.columns.create_column_writers(self.about.groups.len())?;
        let schema = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (place, mut writer) in writers.into_iter().enumerate() {
            let array = batch.column(place);
            if let Some(words) = array.as_dictionary_opt::<Int32Type>()
                && let Some((bytes, close)) = chunk::of_words(words, PAGE_ROWS, level(), &schema[place])?
            {
                group.append_column(&bytes, close)?;
                continue;
            }
            for leaf in compute_leaves(batch.schema_ref().field(place), array)? {
                writer.write(&leaf)?;
            }
            writer.close()?.append_to_row_group(&mut group)?;
        }
        group.close().map(drop)
    }

    fn finish(self) -> Result<StoredFile, ImportError> {
        // With the footer.
        let summed = self.writer.into_inner().map_err(|error| not_written(&self.path, &error))?;
        let (file, bytes, sums) = summed.finish();
        file.sync_all().map_err(|error| failed(&self.path, "write", &error))?;
        Ok(StoredFile { bytes, sums, ..self.about })
    }
}

/// How well pages are compressed: more than this hardly makes them smaller.
fn level() -> ZstdLevel {
    ZstdLevel::try_new(1).unwrap_or_default()
}

fn not_written(path: &Path, error: &ParquetError) -> ImportError {
    if let ParquetError::External(cause) = error
        && let Some(io) = cause.downcast_ref::<std::io::Error>()
    {
        return failed(path, "write", io);
    }
    ImportError::Unusable { path: path.to_owned(), what: format!("cannot write: {error}"), hint: None }
}

fn properties(table: Table) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level()))
        .set_max_row_group_row_count(Some(GROUP_ROWS as usize))
        .set_write_batch_size(PAGE_ROWS.min(1024))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(by())
        .set_dictionary_enabled(false);
    for column in table.spec().columns {
        let path = ColumnPath::from(file_name(table, column.name));
        properties = match column.column_type {
            ColumnType::Word => properties.set_column_dictionary_enabled(path, true),
            ColumnType::Integer if column.name == "depth" => properties.set_column_dictionary_enabled(path, true),
            ColumnType::Integer | ColumnType::Identity | ColumnType::Time => {
                properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
            }
            ColumnType::Text => properties.set_column_statistics_enabled(path, EnabledStatistics::None),
            ColumnType::Double | ColumnType::Timestamp => properties,
        };
    }
    properties.build()
}

/// The batches of a table, as many together as make a group.
fn groups_of(run: &Run, table: Table) -> impl Iterator<Item = Result<Vec<RecordBatch>, ImportError>> {
    let mut batches = run.batches(table);
    // What is left of a batch.
    let mut rest: Option<RecordBatch> = None;
    std::iter::from_fn(move || {
        let (mut group, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < GROUP && bytes < GROUP_TEXT {
            let batch = match rest.take().map(Ok).or_else(|| batches.next()) {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            };
            let length = batch.num_rows().min(GROUP - rows);
            let slice = batch.slice(0, length);
            rest = (length < batch.num_rows()).then(|| batch.slice(length, batch.num_rows() - length));
            (rows, bytes) = (rows + length, bytes + text_bytes(&slice));
            group.push(slice);
        }
        (!group.is_empty()).then_some(Ok(group))
    })
}

/// Bytes of free text.
fn text_bytes(batch: &RecordBatch) -> usize {
    let texts = batch.columns().iter().filter_map(|column| column.as_string_opt::<i32>());
    texts.map(|texts| (texts.value_offsets()[texts.len()] - texts.value_offsets()[0]) as usize).sum()
}

/// A group of rows as it is written. One column at a time is there a third time, and what it was made of goes before the next: a group
/// has a hundred megabytes.
fn prepared(table: Table, named: &NamedRun, group: Vec<RecordBatch>) -> DataFusionResult<RecordBatch> {
    let spec = table.spec().columns;
    let rows: usize = group.iter().map(RecordBatch::num_rows).sum();
    let schema = file_schema(table);
    // Batches have no column `run`.
    let parts_of = |index: usize| group.iter().map(|batch| Arc::clone(batch.column(index - 1))).collect();
    let mut parts: Vec<Vec<ArrayRef>> = (1..spec.len()).map(parts_of).collect();
    let is_clustered = is_clustered(table, &group);
    drop(group);
    let first = named.run.run_number << 40;
    let whole = |parts: &[ArrayRef], index: usize| -> DataFusionResult<ArrayRef> {
        let array = one_column(&parts.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?;
        Ok(match spec[index].column_type {
            ColumnType::Identity => {
                Arc::new(array.as_primitive::<Int64Type>().unary::<_, Int64Type>(|task| task.wrapping_sub(first)))
            }
            _ => array,
        })
    };
    let named_column = |parts: &[Vec<ArrayRef>], name: &str| {
        let index = place(table, name);
        whole(&parts[index - 1], index)
    };
    let order = match is_clustered {
        true => Some(clustered(&named_column(&parts, "location")?, &named_column(&parts, "start")?)),
        false => None,
    };
    let in_order = |array: ArrayRef| -> DataFusionResult<ArrayRef> {
        match &order {
            Some(order) => Ok(take(&array, order, None)?),
            None => Ok(array),
        }
    };
    let name: ArrayRef = Arc::new(StringArray::from_iter_values([&named.name]));
    let run: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(vec![0; rows]), name)?);
    let mut columns = vec![run; spec.len()];
    // Those that others tell come first: they need the others' parts.
    for index in 1..spec.len() {
        if let Some(told) = told(table, spec[index].name) {
            let of: Vec<ArrayRef> =
                told.of.iter().map(|name| named_column(&parts, name)).collect::<DataFusionResult<_>>()?;
            let of: Vec<&Int64Array> = of.iter().map(|array| array.as_primitive::<Int64Type>()).collect();
            let array = whole(&std::mem::take(&mut parts[index - 1]), index)?;
            columns[index] = in_order(Arc::new(told.stored(array.as_primitive::<Int64Type>(), &of)))?;
        }
    }
    for index in 1..spec.len() {
        if told(table, spec[index].name).is_none() {
            columns[index] = in_order(whole(&std::mem::take(&mut parts[index - 1]), index)?)?;
        }
    }
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// Whether a group is sorted by location, start and position.
fn is_clustered(table: Table, group: &[RecordBatch]) -> bool {
    table == Table::Tasks && group.iter().map(RecordBatch::num_rows).sum::<usize>() > PAGE_ROWS
}

/// The least and the greatest `finish` of a group.
fn last_times(batches: &[RecordBatch]) -> Option<(i64, i64)> {
    let of = |batch: &RecordBatch| {
        let finishes = batch["finish"].as_primitive::<Int64Type>();
        min(finishes).zip(max(finishes))
    };
    batches.iter().filter_map(of).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// The order of tasks by location, start and position.
fn clustered(locations: &ArrayRef, starts: &ArrayRef) -> UInt32Array {
    let locations = locations.as_dictionary::<Int32Type>();
    let starts = starts.as_primitive::<Int64Type>();
    let words = locations.values().as_string::<i32>();
    let texts: std::collections::BTreeSet<&str> = words.iter().flatten().collect();
    let places: BTreeMap<&str, usize> = texts.into_iter().zip(1..).collect();
    let ranks: Vec<usize> = words.iter().map(|word| word.map_or(0, |word| places[word])).collect();
    let rank = |row: usize| locations.key(row).map_or(0, |key| ranks[key]);
    // Where the rows of each location go; they keep their order.
    let mut ends = vec![0; places.len() + 2];
    (0..locations.len()).for_each(|row| ends[rank(row) + 1] += 1);
    (1..ends.len()).for_each(|place| ends[place] += ends[place - 1]);
    let mut order = vec![0; locations.len()];
    for row in 0..locations.len() {
        let end = &mut ends[rank(row)];
        order[*end] = row as u32;
        *end += 1;
    }
    // Mostly they are in the order of their starts, too.
    let start = |row: u32| starts.is_valid(row as usize).then(|| starts.value(row as usize));
    let mut from = 0;
    for end in ends {
        let lane = &mut order[from..end];
        if !lane.is_sorted_by(|one, next| start(*one) <= start(*next)) {
            lane.sort_by_key(|row| start(*row));
        }
        from = end;
    }
    order.into()
}
