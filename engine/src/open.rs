//! Open: turns paths into finished runs with names, a common tick and a common time slice; the step between the
//! importers and the session's tables.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::MemoryPool;
use tq_udfs::ticks::{Tick, time_text};

use crate::error::ImportError;
use crate::importers::nsys::report;
use crate::importers::{self, ImportContext, ImportOptions, Importer, foreign};
use crate::paths::held_by;
use crate::remote;
use crate::store;
use crate::tables::ColumnType;
use crate::time::{GivenTime, REACH};
use crate::trace::kinds::span;
use crate::trace::{Budget, Deadline, ReadFile, Run, Slice, Source, Stat, findings, stem};

pub use crate::options::{OpenOptions, TraceSpec, read_for};
pub use crate::trace::NamedRun;

/// `--option align=messages`: the only option that belongs to no format.
const ALIGN_OPTION: &str = "align";

// Not beside the type: what a text names may be a store, and stores stand above the options.
impl TraceSpec {
    /// Reads `[name=]path`. A text that is the path of an existing file is a path, whatever it looks like, and so is a URL; so is one with a
    /// `/` before the `=`, unless what follows is there (`night/1=run.json`).
    pub fn parse(text: &str) -> TraceSpec {
        match text.split_once('=') {
            Some((name, path))
                if !name.is_empty()
                    && !path.is_empty()
                    && !remote::is_url(Path::new(text))
                    && (!name.contains('/') || !name.starts_with(['/', '.']) && is_there(path))
                    && !Path::new(text).exists() =>
            {
                TraceSpec { name: Some(name.to_owned()), path: path.into() }
            }
            _ => TraceSpec { name: None, path: text.into() },
        }
    }

    /// What was given, as messages may say it.
    pub fn shown_text(text: &str) -> String {
        let spec = TraceSpec::parse(text);
        match (spec.shown() == spec.path, &spec.name) {
            (true, _) => text.to_owned(),
            (false, Some(name)) => format!("{name}={}", spec.shown().display()),
            (false, None) => spec.shown().display().to_string(),
        }
    }
}

/// Whether a path names something to read.
fn is_there(path: &str) -> bool {
    path == "-" || remote::is_url(Path::new(path)) || Path::new(path).exists() || store::find(Path::new(path)).is_some()
}

/// Runs that share one tick, each with its final name.
pub(crate) struct Opened {
    pub(crate) runs: Vec<NamedRun>,
    pub(crate) tick: Tick,
    pub(crate) slice: Slice,
    /// What the user should hear about the session as a whole.
    pub(crate) notes: Vec<String>,
}

/// Reads every trace, and adds its runs after those that are there already.
pub(crate) fn open(
    given: Vec<NamedRun>,
    options: &OpenOptions,
    pool: &Arc<dyn MemoryPool>,
) -> Result<Opened, ImportError> {
    let (mut runs, mut notes) = read(given, options, &budget(options, pool))?;
    let tick = one_tick(&mut runs, &mut notes)?;
    let slice = Slice { from: given_ticks(options.from, tick)?, to: given_ticks(options.to, tick)? };
    not_empty(slice, tick)?;
    for named in &mut runs {
        let had_rows = !slice.is_whole() && named.run.has_rows();
        let lasted = if had_rows { span(&named.run) } else { None };
        cut(&mut named.run, slice, Deadline::after(options.read_time))?;
        if had_rows && !named.run.has_rows() {
            let at = |ticks| time_text(ticks, tick);
            let lasted = lasted
                .map_or_else(String::new, |(first, last)| format!("; it lasts from {} to {}", at(first), at(last)));
            let given = [options.from, options.to].into_iter().flatten();
            let bare = match given.into_iter().any(|time| matches!(time, GivenTime::Ticks(_))) {
                true => format!("; numbers without a unit are {}", tick.symbol()),
                false => String::new(),
            };
            notes.push(format!("nothing of run `{}` lies within --from/--to{lasted}{bare}", named.name));
        }
        note_arguments(&mut named.run, options)?;
    }
    Ok(Opened { runs, tick, slice, notes })
}

/// Leaves of a run what touches the slice, wherever its rows are.
pub(crate) fn cut(run: &mut Run, slice: Slice, deadline: Deadline) -> Result<(), ImportError> {
    if slice.is_whole() || store::cut(run, slice, deadline)? {
        return Ok(());
    }
    let path = run.source.clone();
    run.cut(slice).map_err(|error| ImportError::internal(&path, error))
}

/// Notes `--run-arg` with a run.
pub(crate) fn note_arguments(run: &mut Run, options: &OpenOptions) -> Result<(), ImportError> {
    let (cores, repetition) = (run_arg(options, "cores", 1)?, run_arg(options, "repetition", 0)?);
    for (key, value) in &options.run_args {
        run.info.args.insert(key.clone(), serde_json::Value::String(value.clone()));
    }
    run.info.cores = cores.or(run.info.cores);
    run.info.repetition = repetition.or(run.info.repetition);
    Ok(())
}

/// What reading the traces may consume.
pub(crate) fn budget(options: &OpenOptions, pool: &Arc<dyn MemoryPool>) -> Budget {
    Budget::new(Arc::clone(pool), options.max_value).until(Deadline::after(options.read_time))
}

/// The runs of every trace, each with its final name and in its own tick; and what the user should hear of them.
pub(crate) fn read(
    given: Vec<NamedRun>,
    options: &OpenOptions,
    budget: &Budget,
) -> Result<(Vec<NamedRun>, Vec<String>), ImportError> {
    let importers = options.all_importers();
    check_options(&options.import, &importers)?;
    // A number that is none shows before minutes of reading.
    run_arg(options, "cores", 1)?;
    run_arg(options, "repetition", 0)?;
    let stores = stores(options, budget.deadline())?;
    let aligns = options.import.contains_key(ALIGN_OPTION);
    let mut names = HashSet::new();
    let mut files_of_several = HashSet::new();
    let mut runs: Vec<NamedRun> = Vec::new();
    let mut notes = Vec::new();
    for NamedRun { name, format, mut run } in given {
        let path = run.source.clone();
        run.belong_to(runs.len() as i64, budget.pool())
            .map_err(|error| ImportError::Memory { path, what: error.strip_backtrace() })?;
        settle_clocks(&mut run, aligns)?;
        runs.push(NamedRun { name: unique(&name, &mut names), format, run });
    }
    for (spec, store) in options.traces.iter().zip(stores) {
        if let Some(place) = store {
            for named in store::load(&place, spec, options.run_pattern.as_deref(), runs.len(), budget)? {
                runs.push(NamedRun { name: unique(&named.name, &mut names), ..named });
            }
            continue;
        }
        for ReadFile { name: file, format, runs: read } in kept_or_read(spec, options, runs.len(), budget, &mut notes)?
        {
            let several = read.len() > 1;
            // Two files of one stem: what is called after the file must be told apart, not only its runs.
            let base = if several { unique(&file, &mut files_of_several) } else { file };
            for mut run in read {
                run.info.own_name = run.info.own_name.filter(|_| several);
                let name = run.info.own_name.as_ref().map_or_else(|| base.clone(), |own| format!("{base}/{own}"));
                run.info.study = run.info.study.map(|study| match study.as_str() {
                    "" => base.clone(),
                    part => format!("{base}/{part}"),
                });
                let wanted = spec.name.as_ref().filter(|wanted| **wanted == name);
                let name = unique(&name, &mut names);
                if let Some(wanted) = wanted.filter(|wanted| **wanted != name) {
                    notes.push(format!(
                        "several traces are called `{wanted}`: `{}` becomes run `{name}`",
                        run.source.display()
                    ));
                }
                runs.push(NamedRun { name, format, run });
            }
        }
    }
    Ok((runs, notes))
}

/// The runs of a trace from the cache, where there is one and it has them; else they are read, and kept there.
fn kept_or_read(
    spec: &TraceSpec,
    options: &OpenOptions,
    first: usize,
    budget: &Budget,
    notes: &mut Vec<String>,
) -> Result<Vec<ReadFile>, ImportError> {
    let cached = options.cache.as_ref().and_then(|cache| Some((cache, store::key_of(spec, options)?)));
    let Some((cache, key)) = cached else { return read_files(spec, options, first, budget) };
    if let Some(kept) = store::find_kept(cache, &key, first, budget, notes)? {
        return Ok(kept);
    }
    let files = read_files(spec, options, first, budget)?;
    Ok(store::keep_read(cache, &key, spec, options, files, notes))
}

/// Reads the files of a trace.
fn read_files(
    spec: &TraceSpec,
    options: &OpenOptions,
    first: usize,
    budget: &Budget,
) -> Result<Vec<ReadFile>, ImportError> {
    let importers = options.all_importers();
    let (deadline, aligns) = (budget.deadline(), options.import.contains_key(ALIGN_OPTION));
    let path = spec.shown();
    let files = files(spec, options, &importers, budget);
    deadline.check(&path)?;
    let (mut all, mut next) = (Vec::new(), first);
    for file in files? {
        let mut context = ImportContext::new(&options.import, options.threads, budget.clone(), next as i64);
        let read = match file.sources.as_slice() {
            [source] if !file.is_directory => file.importer.import(source, &mut context),
            sources => file.importer.import_directory(&spec.path, sources, &mut context),
        };
        // Whatever a reader that was stopped says of the file, the reason is the time.
        deadline.check(&path)?;
        read?;
        let mut runs = context.into_runs();
        next += runs.len();
        for (index, run) in runs.iter_mut().enumerate() {
            if index == 0 {
                run.stats.extend(file.stats.iter().cloned());
                note_damage(&file.sources, &mut run.stats);
            }
            settle_clocks(run, aligns)?;
        }
        all.push(ReadFile { name: file.name, format: file.importer.doc().name, runs });
    }
    Ok(all)
}

/// Which of the traces are stores. What says how traces are read says nothing of runs that were read when they were imported.
fn stores(options: &OpenOptions, deadline: Deadline) -> Result<Vec<Option<store::Place>>, ImportError> {
    let find = |spec: &TraceSpec| match remote::is_url(&spec.path) {
        true => store::find_behind(&spec.path, deadline),
        false => Ok(store::find(&spec.path)),
    };
    let stores = options.traces.iter().map(find).collect::<Result<Vec<Option<store::Place>>, ImportError>>()?;
    let refused = |what: String, hint: &str| Err(ImportError::Session { what, hint: Some(hint.to_owned()) });
    match stores.iter().flatten().next() {
        Some(store) => {
            let option = match (options.import.keys().next(), &options.from_format) {
                (Some(key), _) => format!("--option {key}"),
                (None, Some(format)) => format!("--from-format {format}"),
                (None, None) => return Ok(stores),
            };
            let what = format!(
                "`{option}` says how traces are read, and those of `{}` are read already",
                store.root.display()
            );
            refused(what, "give it to `tq import`")
        }
        None if options.run_pattern.is_some() => refused(
            "`--run` chooses runs of a store, and none is opened".to_owned(),
            "`tq query STORE --run 'night/*' …`",
        ),
        None => Ok(stores),
    }
}

/// Brings the clocks of a run onto one if that is wanted, and counts what cannot have happened.
fn settle_clocks(run: &mut Run, aligns: bool) -> Result<(), ImportError> {
    let clocks = run.clocks()?;
    if aligns {
        run.align()?;
    }
    run.flag_impossible(&clocks)
}

/// A file (or several files of a directory that are one run) with the importer that will read it.
struct Recognised<'a> {
    sources: Vec<Source>,
    /// Whether they are what a format recognises in a directory that is one run.
    is_directory: bool,
    importer: &'a dyn Importer,
    name: String,
    stats: Vec<Stat>,
}

fn files<'a>(
    spec: &TraceSpec,
    options: &OpenOptions,
    importers: &[&'a dyn Importer],
    budget: &Budget,
) -> Result<Vec<Recognised<'a>>, ImportError> {
    if spec.path.is_dir() {
        return directory(spec, options, importers, budget);
    }
    let source = if remote::is_url(&spec.path) {
        let copy = remote::download(&spec.path, options.progress.clone(), budget.deadline())?;
        Source::of_made_file(&spec.shown(), copy, options.progress.clone(), budget)?
    } else {
        Source::open_within(&spec.path, options.progress.clone(), budget)?
    };
    let (source, stats) = exported(source, options, budget)?;
    let importer = match &options.from_format {
        Some(name) => importers::by_name(importers, name)?,
        None => {
            importers::recognise(importers, &source, &options.import, true).ok_or_else(|| foreign::refused(&source))?
        }
    };
    let name = spec.name.clone().unwrap_or_else(|| source.stem());
    Ok(vec![Recognised { sources: vec![source], is_directory: false, importer, name, stats }])
}

/// A trace, or in place of a report of Nsight Systems the database that `nsys` makes of it, where there is an `nsys`.
fn exported(source: Source, options: &OpenOptions, budget: &Budget) -> Result<(Source, Vec<Stat>), ImportError> {
    let is_wanted = options.import.get(report::OPTION).is_none_or(|value| value != "no")
        && options.from_format.as_ref().is_none_or(|format| format == "nsys");
    if !is_wanted || !foreign::identify(&source).is_some_and(|foreign| foreign.is_nsight_report) {
        return Ok((source, Vec::new()));
    }
    let Some(nsys) = report::nsys_of(std::env::var_os("PATH").as_deref()) else { return Ok((source, Vec::new())) };
    let made = report::export(&nsys, source.local_file()?.path(), budget.deadline())?;
    let path = source.path();
    let example = format!("{}: `{} export` wrote a temporary database of it", path.display(), nsys.display());
    let stats = vec![Stat { finding: findings::EXPORTED_BY_NSYS, count: 1, example }];
    Ok((Source::of_made_file(path, made, options.progress.clone(), budget)?, stats))
}

/// Each recognised file of a directory is a run, in the order of names. Companions (a DOT file beside its trace) and
/// unrecognised files are not runs; the latter are counted, and so are compressed files that break off before their
/// first byte: the others are read without them.
fn directory<'a>(
    spec: &TraceSpec,
    options: &OpenOptions,
    importers: &[&'a dyn Importer],
    budget: &Budget,
) -> Result<Vec<Recognised<'a>>, ImportError> {
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
    for path in &paths {
        held_by(&spec.path, path).map_err(|error| ImportError::Unusable {
            path: spec.path.clone(),
            what: error.to_string(),
            hint: Some(format!("give the file on the command line if you mean it: `{}`", path.display())),
        })?;
    }
    let mut recognised: Vec<Recognised<'a>> = Vec::new();
    let mut strangers: Vec<&Path> = Vec::new();
    let mut cut_off: Vec<&Path> = Vec::new();
    let companions: HashSet<PathBuf> =
        importers.iter().flat_map(|importer| importer.companions_among(&paths)).collect();
    for path in paths.iter().filter(|path| !companions.contains(*path)) {
        budget.deadline().check(path)?;
        let source = Source::open_within(path, options.progress.clone(), budget);
        let (source, stats) = match source.and_then(|source| exported(source, options, budget)) {
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
            Some(name) => Some(importers::by_name(importers, name)?),
            None => importers::recognise(importers, &source, &options.import, false),
        };
        match importer {
            Some(importer) => {
                let stem = source.stem();
                let name = spec.name.as_ref().map_or_else(|| stem.clone(), |name| format!("{name}/{stem}"));
                recognised.push(Recognised { sources: vec![source], is_directory: false, importer, name, stats });
            }
            None => strangers.push(path),
        }
    }
    hold_together(spec, importers, &mut recognised);
    let Some(first) = recognised.first_mut() else {
        return Err(nothing_in(&spec.path, &paths));
    };
    let found = [
        (findings::FILE_NOT_RECOGNISED, strangers, ""),
        (findings::TRUNCATED, cut_off, ": the compressed file breaks off before its first byte"),
    ];
    for (finding, files, what) in found {
        if let Some(example) = files.first() {
            let (count, example) = (files.len() as u64, format!("{}{what}", example.display()));
            first.stats.push(Stat { finding, count, example });
        }
    }
    Ok(recognised)
}

/// Why a directory has no trace: one of its files cannot be read, or none is recognised.
fn nothing_in(directory: &Path, files: &[PathBuf]) -> ImportError {
    let unreadable = files.iter().find_map(|file| match Source::open(file, None) {
        Err(error @ ImportError::Io { .. }) => Some(error),
        _ => None,
    });
    let nothing = || ImportError::NothingInDirectory { path: directory.to_owned(), files: files.len() };
    unreadable.unwrap_or_else(|| files.iter().find_map(|file| of_another_tool(file)).unwrap_or_else(nothing))
}

/// The error about a file of another tool; `None` for all others.
fn of_another_tool(file: &Path) -> Option<ImportError> {
    let source = Source::open(file, None).ok()?;
    foreign::identify(&source).map(|_| foreign::refused(&source))
}

/// Files of one format that say they are parts of one run become one, named after the directory.
fn hold_together<'a>(spec: &TraceSpec, importers: &[&'a dyn Importer], recognised: &mut Vec<Recognised<'a>>) {
    for importer in importers {
        let is_of = |file: &Recognised<'_>| std::ptr::eq(file.importer.doc(), importer.doc());
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

/// Counts files whose compressed stream does not decode or has a wrong checksum, and those that break off behind the last byte
/// that their reader needed; it counts the others itself.
fn note_damage(sources: &[Source], stats: &mut Vec<Stat>) {
    let is_known = stats.iter().any(|stat| stat.finding == findings::TRUNCATED);
    let damaged: Vec<String> = sources
        .iter()
        .filter_map(|source| Some(format!("{}: {}", source.path().display(), source.damage()?)))
        .filter(|damage| !(is_known && damage.contains(" breaks off ")))
        .collect();
    if let Some(example) = damaged.first() {
        let (finding, count) = (findings::DAMAGED_STREAM, damaged.len() as u64);
        stats.push(Stat { finding, count, example: example.clone() });
    }
}

/// A misspelt key must not be ignored: the trace would be read in another way than the user asked for.
fn check_options(options: &ImportOptions, importers: &[&dyn Importer]) -> Result<(), ImportError> {
    let of_formats = importers.iter().flat_map(|importer| importer.doc().options).map(|option| option.key);
    let known: Vec<&str> = of_formats.chain([ALIGN_OPTION]).collect();
    if let Some(value) = options.get(report::OPTION).filter(|value| !["yes", "no"].contains(&value.as_str())) {
        return Err(ImportError::BadOption {
            option: report::OPTION.to_owned(),
            value: value.clone(),
            what: "it is `yes` or `no`".to_owned(),
        });
    }
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

/// The value of a `--run-arg` that is a number in `runs`, the last one given; it is not below `least`.
fn run_arg(options: &OpenOptions, key: &str, least: i64) -> Result<Option<i64>, ImportError> {
    let given = options.run_args.iter().filter(|(given, _)| given == key);
    let numbers = given.map(|(_, value)| match value.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(ImportError::Session {
            what: format!("`--run-arg {key}={value}`: `runs.{key}` is a whole number from {least} on"),
            hint: Some(format!(
                "e.g. `--run-arg {key}=4`; a key of your own, such as `--run-arg {key}_note={value}`, takes any text"
            )),
        }),
    });
    Ok(numbers.collect::<Result<Vec<i64>, ImportError>>()?.pop())
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

/// So many runs are named in a note.
const RUNS_NAMED: usize = 8;

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
            if multiplied.len() > RUNS_NAMED { format!("{} runs", multiplied.len()) } else { multiplied.join(", ") }
        ));
    }
    Ok(tick)
}

fn rescale(run: &mut Run, factor: i64) -> Result<(), ImportError> {
    let beyond = |source: &Path, time: i64| ImportError::Session {
        what: format!("{}: time {time} ns does not fit a session that counts in picoseconds", source.display()),
        hint: Some("open it in a session of its own".to_owned()),
    };
    if let Some(stored) = &mut run.stored {
        stored.rescale(factor, &REACH).map_err(|time| beyond(&run.source, time))?;
    }
    for (table, batches) in &mut run.tables {
        for batch in batches {
            let mut columns = batch.columns().to_vec();
            for (column, array) in table.spec().columns[1..].iter().zip(&mut columns) {
                let is_length = column.name == "duration";
                if column.column_type == ColumnType::Time && array.null_count() < array.len() {
                    let scaled = array.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(|time| {
                        let scaled = time.checked_mul(factor).filter(|scaled| REACH.contains(scaled) || is_length);
                        scaled.ok_or_else(|| beyond(&run.source, time))
                    })?;
                    *array = Arc::new(scaled);
                }
            }
            *batch = datafusion::arrow::array::RecordBatch::try_new(batch.schema(), columns)
                .map_err(|error| ImportError::internal(&run.source, error))?;
        }
    }
    Ok(())
}

/// Refuses a slice that cannot contain anything: it is a mistake. All notations can be compared only in ticks.
fn not_empty(slice: Slice, tick: Tick) -> Result<(), ImportError> {
    let (Some(from), Some(to)) = (slice.from, slice.to) else { return Ok(()) };
    let what = match to.cmp(&from) {
        std::cmp::Ordering::Greater => return Ok(()),
        std::cmp::Ordering::Less => format!("--to lies before --from: {to} {tick} before {from} {tick}"),
        std::cmp::Ordering::Equal => format!("the slice is empty: --from and --to are both {from} {tick}"),
    };
    let hint = "--to is the first tick behind the slice, so that `--from 20 --to 21` is one tick; leave one out for an open end";
    Err(ImportError::Session { what, hint: Some(hint.to_owned()) })
}

fn given_ticks(time: Option<GivenTime>, tick: Tick) -> Result<Option<i64>, ImportError> {
    time.map(|time| {
        time.ticks(tick).ok_or_else(|| ImportError::Session {
            what: format!("--from/--to lies beyond ±2^62 {tick}, which is what this session can count"),
            hint: None,
        })
    })
    .transpose()
}
