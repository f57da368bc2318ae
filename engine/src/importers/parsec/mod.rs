//! PaRSEC: traces of the distributed task runtime (`--mca profile_filename`) and its task graphs (`--mca profile_dot`).
//!
//! ```text
//! chol-0.prof  chol-1.prof      events of each rank, binary                       file, types, pair, rank
//! chol-0.dot   chol-1.dot       tasks executed on each rank, edges that enter it  dot, naming
//! chol.h5                       events of all ranks, converted by profile2h5      ptt
//! ```
//! | PaRSEC's word | here |
//! | --- | --- |
//! | rank | location `rank 0`, with a clock of its own: ranks are not synchronised |
//! | stream ("thread") | location `rank 0/stream 1`: its place in the file |
//! | pair of events | a row of `tasks`: kind `task`, `runtime`, `communication`, `copy` or `user` |
//! | `NAME` in the graph, else (taskpool, tcid, tid) | `tasks.id`; executions of one task share it |
//! | edge | a row of `links` of kind `dependency`, named by its flows |
//! | `MPI_DATA_PLD_SND` with `…_RCV` | a row of `messages` of kind `mpi` |
//!
//! Life of the data: ranks and graphs are read side by side; [`join`] finds the executions of each node, [`messages`] the two
//! sides of each message; [`build`] moves the columns into the tables.
//! Cost: each file is in memory once while it is read, and 32 bytes an event.
//!
//! Known to be wrong in files found in the wild: ids that are not unique ([`pair`]); a killed run leaves a header without magic
//! and half a graph; offsets are trusted by the original reader, which crashes on a cut file and loops on a cycle
//! ([`mod@file`]).

mod build;
mod clock;
mod dot;
mod executions;
mod file;
mod join;
mod messages;
mod naming;
mod pair;
#[cfg(feature = "hdf5")]
mod ptt;
mod rank;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use self::build::Part;
use self::clock::Unit;
use self::dot::Graph;
use self::rank::Rank;
use super::importer::{FormatDoc, ImportContext, Importer, OptionDoc};
use crate::error::ImportError;
use crate::paths::{self, held_by};
use crate::trace::{RunBuilder, Source, Stats, findings, in_order, stem};

const DOT_OPTION: &str = "parsec.dot";

static DOC: FormatDoc = FormatDoc {
    name: "parsec",
    title: "PaRSEC, the distributed task runtime: binary profiles and task graphs of all ranks",
    dialects: &[
        ".prof files (PBT) of PaRSEC and DAGuE, either byte order, with and without the size of the world",
        "DOT task graphs (profile_dot) of PTG and DTD programs: beside the .prof files, or alone",
        "a directory with a file per rank is one run, with a clock per rank",
        "PTT files (HDF5) of version 2, fixed or table, stored or deflated: one file holds all ranks; beside .prof files they add \
         nothing. Version 1 is recognised and refused",
    ],
    fills: "locations (ranks, streams, devices), tasks (kind task, runtime, communication, copy, user), links (dependency, \
            communication), messages (kind mpi, control), counters (memory, PAPI), events",
    loses: "the format holds no date, no common clock of ranks and no size of the job; payloads that ride inside an \
            activation are no messages of their own; colours of events. A PTT file has lost ends without start, infos without \
            convertor, and how its facts were written: 007 is 7",
    options: &[
        OptionDoc {
            key: DOT_OPTION,
            description: "the DOT file, or the directory of DOT files, where they do not lie beside the .prof files under their names",
        },
        OptionDoc { key: clock::UNIT_OPTION, description: "the unit of the trace's times: ns (default), us or cycles" },
        OptionDoc { key: clock::GHZ_OPTION, description: "times are processor cycles at this many GHz, as 2.45" },
    ],
};

/// PaRSEC's profiles and task graphs.
pub(super) struct Parsec;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Profile,
    Graph,
    /// HDF5 of profile2h5.
    Ptt,
}

impl Content {
    fn of(source: &Source) -> Option<Content> {
        let head = source.head();
        if file::recognise(head).is_some() {
            Some(Content::Profile)
        } else if dot::recognise(head, source.head_is_whole()) {
            Some(Content::Graph)
        } else {
            let is_pandas = head.starts_with(b"\x89HDF\r\n\x1a\n")
                && memchr::memmem::find(head, b"PYTABLES_FORMAT_VERSION").is_some();
            (is_pandas && holds(source, b"event_types")).then_some(Content::Ptt)
        }
    }
}

/// How long a file of HDF5 is by its superblock (version 0, as PyTables writes it).
fn recorded_bytes(head: &[u8]) -> u64 {
    head.get(40..48).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Whether a text stands anywhere in a file, as names of groups of HDF5 may, or may have stood where it was cut off.
fn holds(source: &Source, text: &[u8]) -> bool {
    let Ok(mut reader) = source.reader() else { return false };
    let (mut buffer, mut kept, mut bytes) = (vec![0; 1 << 20], 0, 0);
    loop {
        let Ok(read) = reader.read(&mut buffer[kept..]) else { return false };
        if memchr::memmem::find(&buffer[..kept + read], text).is_some() {
            return true;
        }
        if read == 0 {
            return bytes < recorded_bytes(source.head());
        }
        bytes += read as u64;
        let end = kept + read;
        kept = end.min(text.len() - 1);
        buffer.copy_within(end - kept..end, 0);
    }
}

impl Importer for Parsec {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        Content::of(source).is_some()
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let mut builder = context.begin(source);
        let mut files = vec![source.clone()];
        match Content::of(source) {
            Some(Content::Profile) => {
                if !context.options.contains_key(DOT_OPTION) {
                    files.extend(graph_beside(source));
                }
                // One file of a job was opened: it knows nothing of what the others know.
                builder.stats.note(findings::OTHER_RANKS_BESIDE, other_ranks(source), || {
                    "only this rank was opened; open the directory to have all ranks in one run".to_owned()
                });
            }
            Some(Content::Graph | Content::Ptt) => {}
            None => {
                let what = "neither a .prof file (`#PARSEC BINARY PROFILE` at byte 8) nor a task graph (`digraph G {`)";
                return Err(damaged(source, "byte 0".to_owned(), what.to_owned()));
            }
        }
        read_run(&files, context, &mut builder)?;
        context.finish(builder)
    }

    fn companions(&self, file: &Path) -> Vec<PathBuf> {
        graph_names(&stem(file)).map(|name| file.with_file_name(name)).to_vec()
    }

    fn is_one_run(&self, sources: &[Source]) -> bool {
        // Files of several runs fall apart again in `import_directory`. One beside unrecognised files is a part, too.
        sources.len() > 1 || sources.first().is_some_and(|source| other_ranks(source) > 0)
    }

    fn import_directory(
        &self,
        directory: &Path,
        sources: &[Source],
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        let (runs, left) = runs_of(sources);
        let mut strangers = strangers(sources);
        for (number, (name, files)) in runs.into_iter().enumerate() {
            let mut builder = context.begin_at(directory);
            for stranger in strangers.remove(&name).unwrap_or_default() {
                builder.stats.note(findings::FILE_NOT_READ, 1, || {
                    format!("{}: it is called as a .prof file of a rank, and is none", stranger.display())
                });
            }
            builder.info.own_name = Some(name);
            if number == 0 {
                builder.stats.note(findings::CONVERTED_NOT_READ, left.len() as u64, || {
                    format!(
                        "{}: what it was converted from, or a later version, lies beside it",
                        left[0].path().display()
                    )
                });
            }
            read_run(&files, context, &mut builder)?;
            context.finish(builder)?;
        }
        Ok(())
    }
}

/// `chol-3` is rank 3 of `chol`.
fn base_and_rank(stem: &str) -> (&str, Option<i64>) {
    match stem.rsplit_once('-') {
        Some((base, rank)) if !base.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()) => {
            rank.parse().map_or((stem, None), |rank| (base, Some(rank)))
        }
        _ => (stem, None),
    }
}

/// The program that a profile names, without reading more than its head.
fn program(source: &Source) -> Vec<u8> {
    let name = source.head().get(52..180).unwrap_or_default();
    name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// Files by run, and those that others make superfluous: base name and program tell runs apart, as nothing in a file does.
/// A profile without its whole header, which may lack the program, is of the run of its base.
fn runs_of(sources: &[Source]) -> (Vec<(String, Vec<Source>)>, Vec<Source>) {
    let mut profiles: BTreeMap<(String, Vec<u8>), Vec<Source>> = BTreeMap::new();
    let mut graphs: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    let (mut unfinished, mut converted) = (Vec::new(), Vec::new());
    for source in sources {
        let base = base_and_rank(&source.stem()).0.to_owned();
        match Content::of(source) {
            Some(Content::Profile) if !is_finished(source) => unfinished.push((base, source.clone())),
            Some(Content::Profile) => profiles.entry((base, program(source))).or_default().push(source.clone()),
            Some(Content::Graph) => graphs.entry(base).or_default().push(source.clone()),
            _ => converted.push(source.clone()),
        }
    }
    for (base, source) in unfinished {
        let program = profiles.keys().find(|(other, _)| *other == base).map(|(_, program)| program.clone());
        profiles.entry((base, program.unwrap_or_default())).or_default().push(source);
    }
    // A converted file beside what it was made from adds nothing; without, each is a run, and version 2 is the one that can be read.
    let (mut later, mut left): (Vec<Source>, Vec<Source>) =
        converted.into_iter().partition(|source| holds(source, b"event_infos_"));
    if !profiles.is_empty() {
        left.append(&mut later);
    } else if later.is_empty() {
        later = std::mem::take(&mut left);
    }
    for source in later {
        profiles.entry((source.stem(), Vec::new())).or_default().push(source);
    }
    let alone = profiles.len() == 1 && graphs.len() == 1;
    let mut runs = Vec::new();
    for ((base, _), mut files) in profiles {
        let own = if alone { graphs.pop_first().map(|(_, files)| files) } else { graphs.remove(&base) };
        files.extend(own.into_iter().flatten());
        runs.push((base, files));
    }
    runs.extend(graphs);
    (runs, left)
}

/// Whether a profile has its whole header.
fn is_finished(source: &Source) -> bool {
    source.head().len() >= file::HEADER_BYTES && file::recognise(source.head()) == Some(file::Mark::Whole)
}

/// The names that a graph beside the trace `stem` may have.
fn graph_names(stem: &str) -> [String; 3] {
    ["", ".gz", ".zst"].map(|compression| format!("{stem}.dot{compression}"))
}

/// The task graph of the same name.
fn graph_beside(source: &Source) -> Option<Source> {
    if source.path() == Path::new("-") {
        return None;
    }
    graph_names(&source.stem()).iter().find_map(|name| {
        let path = source.path().with_file_name(name);
        let file = paths::is_beside(source.path(), &path).then(|| source.beside(&path).ok()).flatten()?;
        (Content::of(&file) == Some(Content::Graph)).then_some(file)
    })
}

/// The files of a folder that are called as profiles of ranks are, each with its base and rank.
fn called_profiles(folder: &Path) -> Vec<(String, i64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let is_called = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".prof"));
    let profiles = paths.filter(|path| is_called(path) && path.is_file());
    let ranked = profiles.filter_map(|path| {
        let stem = stem(&path);
        let (base, rank) = base_and_rank(&stem);
        Some((base.to_owned(), rank?, path))
    });
    ranked.collect()
}

fn folder(source: &Source) -> &Path {
    source.path().parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// How many profiles of other ranks lie beside a profile.
fn other_ranks(source: &Source) -> u64 {
    let own = source.stem();
    let (base, Some(rank)) = base_and_rank(&own) else { return 0 };
    let is_other = |(other, number, _): &&(String, i64, PathBuf)| other == base && *number != rank;
    called_profiles(folder(source)).iter().filter(is_other).count() as u64
}

/// By base: files of a directory that are called as profiles and were not recognised as such, being empty or overwritten.
fn strangers(sources: &[Source]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut strangers: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (base, _, path) in sources.first().map(|source| called_profiles(folder(source))).unwrap_or_default() {
        if !sources.iter().any(|source| source.path() == path) {
            strangers.entry(base).or_default().push(path);
        }
    }
    strangers
}

/// The graphs that the user named.
fn named_graphs(context: &ImportContext<'_>) -> Result<Vec<Source>, ImportError> {
    let Some(named) = context.options.get(DOT_OPTION) else { return Ok(Vec::new()) };
    let path = Path::new(named);
    let mut paths = vec![path.to_owned()];
    if path.is_dir() {
        let failed = |source| ImportError::Io { path: path.to_owned(), source };
        let entries = std::fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        paths = entries.iter().map(std::fs::DirEntry::path).filter(|path| path.is_file()).collect();
        paths.sort();
        for file in &paths {
            held_by(path, file).map_err(|error| failed(error.into()))?;
        }
    }
    let open = |path: &PathBuf| Source::open(path, None);
    let opened: Result<Vec<Source>, ImportError> = paths.iter().map(open).collect();
    let graphs: Vec<Source> =
        opened?.into_iter().filter(|source| Content::of(source) == Some(Content::Graph)).collect();
    if graphs.is_empty() {
        return Err(ImportError::BadOption {
            option: DOT_OPTION.to_owned(),
            value: named.clone(),
            what: "no task graph of PaRSEC is there".to_owned(),
        });
    }
    Ok(graphs)
}

/// What one file became.
enum Read {
    /// One rank, or all of them.
    Profiles(Vec<Rank>),
    Graph(i64, Box<Graph>, Stats),
}

/// What one file says of a rank.
enum OfRank {
    Profile(Box<Rank>),
    Graph(Box<Graph>, Stats),
}

impl Read {
    fn by_rank(self) -> Vec<(i64, OfRank)> {
        match self {
            Read::Profiles(ranks) => {
                ranks.into_iter().map(|rank| (rank.rank, OfRank::Profile(Box::new(rank)))).collect()
            }
            Read::Graph(rank, graph, stats) => vec![(rank, OfRank::Graph(graph, stats))],
        }
    }
}

/// Reads the files of a run.
fn read_run(files: &[Source], context: &ImportContext<'_>, builder: &mut RunBuilder) -> Result<(), ImportError> {
    let unit = Unit::of(context.options)?;
    builder.info.time_unit = unit.name;
    let mut files = files.to_vec();
    let named = named_graphs(context)?;
    if !named.is_empty() {
        files.retain(|file| Content::of(file) != Some(Content::Graph));
        files.extend(named);
    }
    let read = in_order(files, context.threads, |file| {
        let read = read_file(&file, unit, context.pool());
        (file, read)
    });
    let mut parts: BTreeMap<i64, Part> = BTreeMap::new();
    let mut failed = None;
    for (file, read) in read {
        let read = match read {
            Ok(read) => read,
            Err(error @ ImportError::Damaged { .. }) => {
                // The other ranks are still worth reading, and so is the graph of a run that was killed.
                builder.stats.note(findings::FILE_NOT_READ, 1, || error.to_string());
                failed.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        for (rank, read) in read.by_rank() {
            let part = parts.entry(rank).or_insert_with(|| Part {
                rank,
                profile: None,
                graph: None,
                graph_stats: Stats::default(),
            });
            let twice = match read {
                OfRank::Profile(profile) => part.profile.replace(*profile).is_some(),
                OfRank::Graph(graph, stats) => {
                    part.graph_stats = stats;
                    part.graph.replace(*graph).is_some()
                }
            };
            builder.stats.note(findings::RANK_GIVEN_TWICE, u64::from(twice), || {
                format!("{}: rank {rank} was there already; the last file counts", file.path().display())
            });
        }
    }
    match failed {
        Some(error) if parts.is_empty() => Err(error),
        _ => build::build(parts.into_values().collect(), builder),
    }
}

fn read_file(source: &Source, unit: Unit, pool: &std::sync::Arc<dyn MemoryPool>) -> Result<Read, ImportError> {
    let (bytes, is_cut) = read_bytes(source)?;
    // What is kept of each event or statement until it is a row.
    let memory = reserve(source, bytes.len().saturating_mul(2), pool)?;
    let length = bytes.len();
    match Content::of(source) {
        Some(Content::Graph) => {
            let mut stats = Stats::default();
            let graph = Graph::parse(&bytes, &mut stats);
            note_cut(is_cut, length, &mut stats);
            Ok(Read::Graph(base_and_rank(&source.stem()).1.unwrap_or(0), Box::new(graph), stats))
        }
        Some(Content::Ptt) => {
            let mut ranks = read_ptt(source, bytes, unit, &memory)?;
            if let Some(first) = ranks.first_mut() {
                note_cut(is_cut, length, &mut first.stats);
            }
            Ok(Read::Profiles(ranks))
        }
        _ => {
            let mut rank = Rank::read(source, &bytes, unit)?;
            note_cut(is_cut, length, &mut rank.stats);
            Ok(Read::Profiles(vec![rank]))
        }
    }
}

#[cfg(feature = "hdf5")]
fn read_ptt(source: &Source, bytes: Vec<u8>, unit: Unit, memory: &MemoryReservation) -> Result<Vec<Rank>, ImportError> {
    ptt::read(source, bytes, unit, memory)
}

/// See [`super::examine`].
#[cfg(feature = "hdf5")]
pub(super) fn misread_pickle(bytes: &[u8]) -> Vec<String> {
    ptt::misread_pickle(bytes)
}

#[cfg(not(feature = "hdf5"))]
fn read_ptt(source: &Source, _: Vec<u8>, _: Unit, _: &MemoryReservation) -> Result<Vec<Rank>, ImportError> {
    Err(ImportError::Unusable {
        path: source.path().to_owned(),
        what: "a PTT file (HDF5, written by profile2h5), and this tq is built without HDF5".to_owned(),
        hint: Some("open the .prof files that it was converted from, or build tq with its feature `hdf5`".to_owned()),
    })
}

/// All bytes, and whether a compressed file broke off behind them.
fn read_bytes(source: &Source) -> Result<(Vec<u8>, bool), ImportError> {
    let mut bytes = Vec::new();
    match source.read_all_into(&mut bytes) {
        Ok(()) => Ok((bytes, false)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok((bytes, true)),
        Err(error) => Err(source.io_error(error)),
    }
}

fn note_cut(is_cut: bool, bytes: usize, stats: &mut Stats) {
    stats.note(findings::TRUNCATED, u64::from(is_cut), || {
        format!("the compressed file breaks off behind {bytes} bytes")
    });
}

fn reserve(
    source: &Source,
    bytes: usize,
    pool: &std::sync::Arc<dyn MemoryPool>,
) -> Result<MemoryReservation, ImportError> {
    let memory = MemoryConsumer::new(format!("reading {}", source.path().display())).register(pool);
    memory
        .try_grow(bytes)
        .map_err(|error| ImportError::Memory { path: source.path().to_owned(), what: error.strip_backtrace() })?;
    Ok(memory)
}

fn damaged(source: &Source, place: String, what: String) -> ImportError {
    ImportError::Damaged { path: source.path().to_owned(), format: DOC.name, place, what }
}
