//! Open: paths become finished runs with names, one tick and one time slice; the step between the importers and the
//! session's tables.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::MemoryPool;
use tq_udfs::ticks::Tick;

use crate::error::ImportError;
use crate::importers::{self, ImportContext, ImportOptions, Importer};
use crate::tables::ColumnType;
use crate::time::GivenTime;
use crate::trace::{Finding, Progress, Run, Slice, Source, Stage, Stat, stem};

/// `--option align=messages`: the one option that is no format's.
const ALIGN_OPTION: &str = "align";

/// A trace as the user names it: `[name=]path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpec {
    /// The run's name, where one was given.
    pub name: Option<String>,
    /// A file, a directory, or `-`.
    pub path: PathBuf,
}

impl TraceSpec {
    /// Reads `[name=]path`. A text that is the path of an existing file is a path, whatever it looks like.
    pub fn parse(text: &str) -> TraceSpec {
        match text.split_once('=') {
            Some((name, path))
                if !name.is_empty() && !name.contains('/') && !path.is_empty() && !Path::new(text).exists() =>
            {
                TraceSpec { name: Some(name.to_owned()), path: path.into() }
            }
            _ => TraceSpec { name: None, path: text.into() },
        }
    }
}

/// What to open, and how.
pub struct OpenOptions {
    /// The traces, in order.
    pub traces: Vec<TraceSpec>,
    /// `--from-format`: no recognition.
    pub from_format: Option<String>,
    /// `--option k=v`.
    pub import: ImportOptions,
    /// `--run-arg k=v`, added to `runs.args` of every run (`cores` and `repetition` to their columns).
    pub run_args: Vec<(String, String)>,
    /// `--from`, since the run's origin.
    pub from: Option<GivenTime>,
    /// `--to`.
    pub to: Option<GivenTime>,
    /// Bytes for tables and queries.
    pub memory_limit: usize,
    /// Threads for parsing and for queries.
    pub threads: usize,
    /// Hears how far reading is.
    pub progress: Option<Arc<dyn Progress>>,
}

impl OpenOptions {
    /// Options without a trace, on `threads` threads with `memory_limit` bytes.
    pub fn new(memory_limit: usize, threads: usize) -> OpenOptions {
        OpenOptions {
            traces: Vec::new(),
            from_format: None,
            import: ImportOptions::new(),
            run_args: Vec::new(),
            from: None,
            to: None,
            memory_limit,
            threads,
            progress: None,
        }
    }
}

/// Runs that share one tick, each with its final name.
pub(crate) struct Opened {
    pub(crate) runs: Vec<NamedRun>,
    pub(crate) tick: Tick,
    pub(crate) slice: Slice,
    /// What the user should hear about the session as a whole.
    pub(crate) notes: Vec<String>,
}

pub(crate) struct NamedRun {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    pub(crate) run: Run,
}

/// Reads every trace.
pub(crate) fn open(options: &OpenOptions, pool: &Arc<dyn MemoryPool>) -> Result<Opened, ImportError> {
    check_options(&options.import)?;
    let aligns = options.import.contains_key(ALIGN_OPTION);
    let mut names = HashSet::new();
    let mut files_of_several = HashSet::new();
    let mut runs: Vec<NamedRun> = Vec::new();
    let mut notes = Vec::new();
    for spec in &options.traces {
        for file in files(spec, options)? {
            let mut context = ImportContext::new(&options.import, options.threads, Arc::clone(pool), runs.len() as i64);
            match file.sources.as_slice() {
                [source] if !file.is_directory => file.importer.import(source, &mut context)?,
                sources => file.importer.import_directory(&spec.path, sources, &mut context)?,
            }
            let imported = context.into_runs();
            let several = imported.len() > 1;
            // Two files of one stem: what is called after the file must be told apart, not only its runs.
            let base = if several { unique(&file.name, &mut files_of_several) } else { file.name.clone() };
            for (index, mut run) in imported.into_iter().enumerate() {
                let own = run.info.own_name.clone().filter(|_| several);
                let name = own.map_or_else(|| base.clone(), |own| format!("{base}/{own}"));
                run.info.study = run.info.study.map(|study| match study.as_str() {
                    "" => base.clone(),
                    part => format!("{base}/{part}"),
                });
                if index == 0 {
                    run.stats.extend(file.stats.iter().cloned());
                }
                let clocks = run.clocks();
                if aligns {
                    let path = run.source.clone();
                    run.align().map_err(|source| ImportError::Internal { path, source })?;
                }
                run.flag_impossible(&clocks);
                let wanted = spec.name.as_ref().filter(|wanted| **wanted == name);
                let name = unique(&name, &mut names);
                if let Some(wanted) = wanted.filter(|wanted| **wanted != name) {
                    notes.push(format!(
                        "several traces are called `{wanted}`: `{}` becomes run `{name}`",
                        run.source.display()
                    ));
                }
                runs.push(NamedRun { name, format: file.importer.doc().name, run });
            }
        }
    }
    let tick = one_tick(&mut runs, &mut notes)?;
    let slice = Slice { from: given_ticks(options.from, tick)?, to: given_ticks(options.to, tick)? };
    for named in &mut runs {
        let path = named.run.source.clone();
        let had_rows = !slice.is_whole() && named.run.has_rows();
        named.run.cut(slice).map_err(|source| ImportError::Internal { path, source })?;
        if had_rows && !named.run.has_rows() {
            notes.push(format!("nothing of run `{}` lies within --from/--to", named.name));
        }
        for (key, value) in &options.run_args {
            named.run.info.args.insert(key.clone(), serde_json::Value::String(value.clone()));
            match key.as_str() {
                "cores" => named.run.info.cores = value.parse().ok().or(named.run.info.cores),
                "repetition" => named.run.info.repetition = value.parse().ok().or(named.run.info.repetition),
                _ => {}
            }
        }
    }
    Ok(Opened { runs, tick, slice, notes })
}

/// A file (or several files of a directory that are one run) with the importer that will read it.
struct Recognised {
    sources: Vec<Source>,
    /// Whether they are what a format recognises in a directory that is one run.
    is_directory: bool,
    importer: &'static dyn Importer,
    name: String,
    stats: Vec<Stat>,
}

fn files(spec: &TraceSpec, options: &OpenOptions) -> Result<Vec<Recognised>, ImportError> {
    if spec.path.is_dir() {
        return directory(spec, options);
    }
    let source = Source::open(&spec.path, options.progress.clone())?;
    let importer = match &options.from_format {
        Some(name) => importers::by_name(name)?,
        None => importers::recognise(&source, &options.import, true).ok_or_else(|| importers::unrecognised(&source))?,
    };
    let name = spec.name.clone().unwrap_or_else(|| source.stem());
    Ok(vec![Recognised { sources: vec![source], is_directory: false, importer, name, stats: Vec::new() }])
}

/// Each recognised file of a directory is a run, in the order of names. Companions (a DOT file beside its trace) and
/// files that nobody recognises are no runs; the latter are counted, and so are compressed files that break off before
/// their first byte: the others are read without them.
fn directory(spec: &TraceSpec, options: &OpenOptions) -> Result<Vec<Recognised>, ImportError> {
    let failed = |source| ImportError::Io { path: spec.path.clone(), source };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&spec.path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !hidden {
            paths.push(path);
        }
    }
    paths.sort();
    let mut recognised: Vec<Recognised> = Vec::new();
    let mut strangers: Vec<&Path> = Vec::new();
    let mut cut_off: Vec<&Path> = Vec::new();
    for path in &paths {
        if importers::is_companion(path, &paths) {
            continue;
        }
        let source = match Source::open(path, options.progress.clone()) {
            Err(ImportError::Empty { .. }) => {
                strangers.push(path);
                continue;
            }
            Err(ImportError::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => {
                cut_off.push(path);
                continue;
            }
            other => other?,
        };
        let importer = match &options.from_format {
            Some(name) => Some(importers::by_name(name)?),
            None => importers::recognise(&source, &options.import, false),
        };
        match importer {
            Some(importer) => {
                let stem = source.stem();
                let name = spec.name.as_ref().map_or_else(|| stem.clone(), |name| format!("{name}/{stem}"));
                recognised.push(Recognised {
                    sources: vec![source],
                    is_directory: false,
                    importer,
                    name,
                    stats: Vec::new(),
                });
            }
            None => strangers.push(path),
        }
    }
    hold_together(spec, &mut recognised);
    let Some(first) = recognised.first_mut() else {
        return Err(nothing_in(&spec.path, &paths));
    };
    let found = [
        (Finding::info("file_not_recognised", Stage::Import), strangers, ""),
        (
            Finding::lost("truncated", Stage::Recording),
            cut_off,
            ": the compressed file breaks off before its first byte",
        ),
    ];
    for (finding, files, what) in found {
        if let Some(example) = files.first() {
            let (count, example) = (files.len() as u64, format!("{}{what}", example.display()));
            first.stats.push(Stat { finding, count, example });
        }
    }
    Ok(recognised)
}

/// Why a directory gives no trace: a file of it that cannot be read, else that nobody recognises any.
fn nothing_in(directory: &Path, files: &[PathBuf]) -> ImportError {
    let unreadable = files.iter().find_map(|file| match Source::open(file, None) {
        Err(error @ ImportError::Io { .. }) => Some(error),
        _ => None,
    });
    unreadable.unwrap_or_else(|| ImportError::NothingInDirectory { path: directory.to_owned(), files: files.len() })
}

/// Files of one format that say they are parts of one run become one, named after the directory.
fn hold_together(spec: &TraceSpec, recognised: &mut Vec<Recognised>) {
    for importer in importers::importers() {
        let is_of = |file: &Recognised| std::ptr::eq(file.importer.doc(), importer.doc());
        let sources: Vec<Source> =
            recognised.iter().filter(|file| is_of(file)).flat_map(|file| file.sources.iter().cloned()).collect();
        if sources.is_empty() || !importer.is_one_run(&sources) {
            continue;
        }
        let at = recognised.iter().position(&is_of).unwrap_or(0);
        recognised.retain(|file| !is_of(file));
        let name = spec.name.clone().unwrap_or_else(|| stem(&spec.path));
        let stats = Vec::new();
        recognised.insert(at, Recognised { sources, is_directory: true, importer: *importer, name, stats });
    }
}

/// A misspelt key must not be ignored: the trace would be read in another way than the user asked for.
fn check_options(options: &ImportOptions) -> Result<(), ImportError> {
    let of_formats = importers::importers().iter().flat_map(|importer| importer.doc().options).map(|option| option.key);
    let known: Vec<&str> = of_formats.chain([ALIGN_OPTION]).collect();
    if let Some(value) = options.get(ALIGN_OPTION).filter(|value| *value != "messages") {
        return Err(ImportError::BadOption {
            option: ALIGN_OPTION.to_owned(),
            value: value.clone(),
            what: "clocks can be aligned by `messages` only".to_owned(),
        });
    }
    for key in options.keys() {
        let matches = |known: &str| match known.strip_suffix(".*") {
            Some(prefix) => key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')),
            None => key == known,
        };
        if !known.iter().any(|known| matches(known)) {
            return Err(ImportError::UnknownOption {
                option: key.clone(),
                known: known.iter().map(|&key| key.to_owned()).collect(),
            });
        }
    }
    Ok(())
}

fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}

/// The finest tick of all runs; the others are multiplied.
fn one_tick(runs: &mut [NamedRun], notes: &mut Vec<String>) -> Result<Tick, ImportError> {
    let own = |named: &NamedRun| named.run.info.tick.unwrap_or(Tick::Nanosecond);
    let tick = runs.iter().map(own).max().unwrap_or(Tick::Nanosecond);
    let mut multiplied = Vec::new();
    for named in runs.iter_mut() {
        let factor = tick.per_nanosecond() / own(named).per_nanosecond();
        if factor > 1 {
            rescale(&mut named.run, factor)?;
            multiplied.push(named.name.clone());
        }
    }
    if !multiplied.is_empty() {
        notes.push(format!(
            "the session counts in {tick}, as its finest run does; times of {} were multiplied",
            multiplied.join(", ")
        ));
    }
    Ok(tick)
}

fn rescale(run: &mut Run, factor: i64) -> Result<(), ImportError> {
    for (table, batches) in &mut run.tables {
        for batch in batches {
            let mut columns = batch.columns().to_vec();
            for (column, array) in table.spec().columns[1..].iter().zip(&mut columns) {
                if column.column_type == ColumnType::Time && array.null_count() < array.len() {
                    let scaled = array.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(|time| {
                        time.checked_mul(factor).ok_or_else(|| ImportError::Session {
                            what: format!(
                                "{}: time {time} ns does not fit a session that counts in picoseconds",
                                run.source.display()
                            ),
                            hint: Some("open it in a session of its own".to_owned()),
                        })
                    })?;
                    *array = Arc::new(scaled);
                }
            }
            *batch = datafusion::arrow::array::RecordBatch::try_new(batch.schema(), columns)
                .map_err(|error| ImportError::Internal { path: run.source.clone(), source: error.into() })?;
        }
    }
    Ok(())
}

fn given_ticks(time: Option<GivenTime>, tick: Tick) -> Result<Option<i64>, ImportError> {
    time.map(|time| {
        time.ticks(tick).ok_or_else(|| ImportError::Session {
            what: "--from/--to lies beyond what ticks can count".to_owned(),
            hint: None,
        })
    })
    .transpose()
}
