//! ActorProf (HClib-Actor on Conveyors): directories of message-passing actor programs.
//!
//! ```text
//! PE0_send.csv  PE0_phase2_send.csv     a line per send, before aggregation        send
//! PE0_PAPI.csv                          a line per handled message                 papi
//! overall.txt                           cycles per PE, in the program's output     overall
//! physical.txt                          a line per buffer on the wire              physical
//! ```
//!
//! | the format's word | here |
//! | --- | --- |
//! | PE | a location `PE<i>` of kind `pe`, inside of `node <n>` |
//! | send | a message of kind `logical` |
//! | handled message | a message of kind `handled`, with `delta` counters; mailbox and sends in `args` |
//! | MAIN line | `delta` counters without a message |
//! | buffer | a message of kind `local_send` or `nonblock_send`; between hops, not ends |
//! | `nonblock_progress` | an event |
//! | T_MAIN, T_COMM, T_PROC … | `total` counters in cycles |
//! | phase | `messages.tag` |
//!
//! A directory is one run; sub-runs of `overall.txt` are runs of their own when there are several. The number of PEs is the
//! largest that any file or line names: a PE that sends nothing has no file.
//!
//! Life of the data: [`names`] tells the files apart by name → blocks of lines become columns on several threads ([`mod@line`]:
//! byte by byte, no strings) → [`reading`] keeps them until the origin is known, then moves them into the tables. Cost: twelve
//! bytes a send, and eight for its identity.
//!
//! Known to be wrong in files found in the wild: the torn last line of a killed run; lines of several processes interleaved
//! within a line; files left over from an earlier run in the same directory; negative cycles printed as unsigned.

mod line;
mod names;
mod overall;
mod papi;
mod physical;
mod reading;
mod send;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use self::line::{Fields, cut_at_line};
use self::names::Kind;
use self::overall::Overall;
use self::reading::Reading;
use super::importer::{FormatDoc, ImportContext, Importer};
use crate::error::ImportError;
use crate::paths::held_by;
use crate::trace::{Ending, Source, findings, parse_blocks, parse_files};

static DOC: FormatDoc = FormatDoc {
    name: "actorprof",
    title: "ActorProf: directories of HClib-Actor programs on Conveyors",
    dialects: &[
        "PE<i>_send.csv and .dat with 5 or 6 columns, with phases",
        "PE<i>_PAPI.csv with 9, 10 or more columns",
        "overall.txt with any labels and sub-runs, also in the form of the paper",
        "physical.txt; any subset of these files, also one of them alone",
    ],
    fills: "locations (nodes, PEs), messages (logical, handled, local_send, nonblock_send; tag = phase), counters (PAPI, cycles), \
            events (nonblock_progress)",
    loses: "the counts of overall.txt, which are printed with a wrong width; lines of others between them",
    options: &[],
};

// What may be found.

/// ActorProf.
pub(super) struct ActorProf;

impl Importer for ActorProf {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        kind_of(source).is_some()
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let kind = match kind_of(source).or_else(|| names::kind(source.path())) {
            Some(kind) => kind,
            None => {
                let (path, format) = (source.path().to_owned(), DOC.name);
                let what = "neither a PE's file by its name nor lines of overall.txt or physical.txt".to_owned();
                return Err(ImportError::Damaged { path, format, place: "byte 0".to_owned(), what });
            }
        };
        import_files(source.path(), &[(kind, source.clone())], &[], &[], context)
    }

    fn companions_among(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        // A file without bytes says nothing of its format, but its name does: it is read with the others.
        let (without, with): (Vec<&PathBuf>, Vec<&PathBuf>) =
            files.iter().filter(|file| names::kind(file).is_some()).partition(|file| has_no_bytes(file));
        // A compressed file without bytes has some on the disk; so it accompanies another one like it.
        let stored = without.iter().filter(|file| stored_bytes(file) > Some(0)).count();
        let has_other = |file: &PathBuf| stored > usize::from(stored_bytes(file) > Some(0));
        without.into_iter().filter(|file| !with.is_empty() || has_other(file)).cloned().collect()
    }

    fn is_one_run(&self, sources: &[Source]) -> bool {
        sources.iter().any(|source| names::kind(source.path()).is_some())
    }

    fn import_directory(
        &self,
        directory: &Path,
        sources: &[Source],
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        let mut files: Vec<(Kind, Source)> = Vec::new();
        let mut without_bytes: Vec<WithoutBytes> = Vec::new();
        let mut known = BTreeSet::new();
        let mut duplicates = Vec::new();
        // All files of the directory that have a name of ours: also those that recognition could not judge.
        for path in paths(directory)? {
            let Some(kind) = names::kind(&path) else { continue };
            if !known.insert(kind.clone()) {
                duplicates.push(path);
                continue;
            }
            let given = sources.iter().find(|source| source.path() == path);
            match given.map_or_else(|| context.open(&path), |source| Ok(source.clone())) {
                Ok(source) => files.push((kind, source)),
                Err(error) => match Missing::of(&error) {
                    Some(missing) => without_bytes.push(WithoutBytes { kind, path, missing }),
                    None => return Err(error),
                },
            }
        }
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        import_files(directory, &files, &without_bytes, &duplicates, context)?;
        // Output that was redirected to files of other names: each an execution of its own.
        for source in sources.iter().filter(|source| names::kind(source.path()).is_none()) {
            self.import(source, context)?;
        }
        Ok(())
    }
}

/// A file of a directory that has a name of ours and nothing else.
struct WithoutBytes {
    kind: Kind,
    path: PathBuf,
    missing: Missing,
}

/// Why a file gives no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// It has none: its PE sent nothing.
    Nothing,
    /// It is compressed, and breaks off before the first one.
    CutOff,
}

impl Missing {
    fn of(error: &ImportError) -> Option<Missing> {
        match error {
            ImportError::Empty { .. } => Some(Missing::Nothing),
            ImportError::Io { source, .. } if source.kind() == ErrorKind::UnexpectedEof => Some(Missing::CutOff),
            _ => None,
        }
    }
}

/// A compressed file of more bytes than this gives some, wherever it breaks off: it holds a whole block.
const CUT_OFF_BYTES_MAX: u64 = 256 << 10;

/// Whether a file gives no bytes: it is empty, or the compressed form of nothing, or cut off before the first one.
fn has_no_bytes(file: &Path) -> bool {
    let is = |extension: &OsStr| ["gz", "zst"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    let is_compressed = file.extension().is_some_and(is);
    match stored_bytes(file) {
        Some(0) => true,
        Some(bytes) if is_compressed && bytes <= CUT_OFF_BYTES_MAX => {
            Source::open(file, None).is_err_and(|error| Missing::of(&error).is_some())
        }
        _ => false,
    }
}

fn stored_bytes(file: &Path) -> Option<u64> {
    std::fs::metadata(file).ok().map(|metadata| metadata.len())
}

/// The files of a directory, in the order of their names.
fn paths(directory: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let failed = |source| ImportError::Io { path: directory.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // `open` has refused links that lead out of the directory; hidden files it has not looked at.
        if path.is_file() && held_by(directory, &path).is_ok() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// What a source is, by its content and, for the files of a PE, its name as well.
fn kind_of(source: &Source) -> Option<Kind> {
    let head = source.head();
    match names::kind(source.path()) {
        Some(kind @ Kind::Send { .. }) => return numbers_of_first_line(head, 5, 6).then_some(kind),
        Some(kind @ Kind::Papi { .. }) => return numbers_of_first_line(head, 9, 16).then_some(kind),
        _ => {}
    }
    // Neither begins like JSON, whose texts may hold anything; an empty label leaves nothing before a PE.
    let begin = head.trim_ascii_start();
    let is_pe = begin.strip_prefix(b"[PE").and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit);
    if matches!(begin.first(), Some(b'{' | b'[')) && !is_pe {
        return None;
    }
    if head.split(|byte| *byte == b'\n').any(|line| physical::buffer(line.trim_ascii()).is_some()) {
        return Some(Kind::Physical);
    }
    let speaks_of_pes = memchr::memmem::find(head, b"[PE").is_some();
    (speaks_of_pes && overall::looks_like(&String::from_utf8_lossy(head))).then_some(Kind::Overall)
}

/// Whether the first line that is not empty has `least` to `most` fields, the first five of them whole numbers.
fn numbers_of_first_line(head: &[u8], least: usize, most: usize) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(line) = lines.next() else { return false };
    let line = line.strip_suffix(b",").unwrap_or(line);
    let count = line.split(|byte| *byte == b',').count();
    let mut fields = Fields::new(line);
    let numbers = (0..5).take_while(|field| (*field == 0 || fields.comma()) && fields.integer().is_some()).count();
    (least..=most).contains(&count) && numbers == 5
}

/// Reads the files of one directory, or one of them alone.
fn import_files(
    path: &Path,
    files: &[(Kind, Source)],
    without_bytes: &[WithoutBytes],
    duplicates: &[PathBuf],
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    let mut reading = Reading::new(path, context);
    let mut overall = None;
    let mut with_sends: BTreeSet<i32> = BTreeSet::new();
    reading.builder.stats.note(findings::DUPLICATE_FILE, duplicates.len() as u64, || {
        format!(
            "{}: another file of that PE and phase was read",
            duplicates.first().map_or_else(String::new, |path| name_of(path))
        )
    });
    for WithoutBytes { kind, path, missing } in without_bytes {
        if let Kind::Send { pe, .. } | Kind::Papi { pe, .. } = kind {
            reading.meet(*pe);
        }
        if let Kind::Send { pe, .. } = kind {
            with_sends.insert(*pe);
        }
        match missing {
            Missing::Nothing => reading.builder.stats.note(findings::EMPTY_FILE, 1, || name_of(path)),
            Missing::CutOff => note_if_cut_off(&mut reading, &name_of(path), Ending::CutOff),
        }
    }
    for (kind, _) in files {
        match kind {
            Kind::Send { pe, .. } => {
                reading.meet(*pe);
                with_sends.insert(*pe);
            }
            Kind::Papi { pe, .. } => reading.meet(*pe),
            Kind::Overall | Kind::Physical => {}
        }
    }
    let sends = pe_files(files, |kind| match kind {
        Kind::Send { phase, pe } => Some((*pe, phase.as_deref())),
        _ => None,
    });
    let sources: Vec<&Source> = sends.iter().map(|file| file.source).collect();
    parse_files(&sources, threads_for(&sources, context), cut_at_line, send::parse, |number, block, ending| {
        let PeFile { name, pe, phase, .. } = &sends[number];
        reading.take_sends(name, (*pe, *phase), block)?;
        if let Some(ending) = ending {
            reading.end_file(name, *phase, true);
            note_if_cut_off(&mut reading, name, ending);
        }
        Ok(())
    })?;
    let papis = pe_files(files, |kind| match kind {
        Kind::Papi { phase, pe } => Some((*pe, phase.as_deref())),
        _ => None,
    });
    let sources: Vec<&Source> = papis.iter().map(|file| file.source).collect();
    parse_files(&sources, threads_for(&sources, context), cut_at_line, papi::parse, |number, block, ending| {
        let PeFile { name, pe, phase, .. } = &papis[number];
        reading.take_sections(name, (*pe, *phase), &block)?;
        if let Some(ending) = ending {
            // A main part is written when it is done, not when it ran.
            reading.end_file(name, *phase, false);
            note_if_cut_off(&mut reading, name, ending);
        }
        Ok(())
    })?;
    for (kind, source) in files {
        let name = name_of(source.path());
        let ending = match kind {
            Kind::Send { .. } | Kind::Papi { .. } => continue,
            Kind::Physical => {
                let take = |block| reading.take_buffers(&name, block);
                parse_blocks(source, threads_for(&[source], context), cut_at_line, physical::parse, take)?
            }
            Kind::Overall => {
                let mut text = Vec::new();
                let take = |bytes: Vec<u8>| {
                    text.extend(bytes);
                    Ok(())
                };
                // In blocks only because what stands before a cut is then kept.
                let ending = parse_blocks(source, 1, cut_at_line, |block| block.bytes.to_vec(), take)?;
                overall = Some((name.clone(), overall::read(&String::from_utf8_lossy(&text))));
                ending
            }
        };
        note_if_cut_off(&mut reading, &name, ending);
    }
    let sub_runs = match &mut overall {
        Some((name, overall)) => take_overall(name, overall, &mut reading)?,
        None => Vec::new(),
    };
    if files.len() + without_bytes.len() > 1 && !with_sends.is_empty() {
        let missing: Vec<i32> = (0..reading.pes).filter(|pe| !with_sends.contains(pe)).collect();
        let first = missing.first().copied().unwrap_or_default();
        let example = || format!("PE{first} sent nothing: it has no _send file");
        reading.builder.stats.note(findings::MISSING_FILE_FOR_KNOWN_PE, missing.len() as u64, example);
    }
    let (pes, has_more) = (reading.pes, files.iter().any(|(kind, _)| *kind != Kind::Overall));
    if has_more || sub_runs.is_empty() {
        reading.finish(context)?;
    } else {
        // Nothing but sub-runs: what was counted belongs to the first of them.
        let stats = std::mem::take(&mut reading.builder.stats);
        return sub_runs_of(path, sub_runs, pes, Some(stats), context);
    }
    sub_runs_of(path, sub_runs, pes, None, context)
}

/// A file of one PE.
struct PeFile<'a> {
    name: String,
    pe: i32,
    phase: Option<&'a str>,
    source: &'a Source,
}

/// The files of which `of` tells a PE and a phase.
fn pe_files<'a>(
    files: &'a [(Kind, Source)],
    of: impl Fn(&'a Kind) -> Option<(i32, Option<&'a str>)>,
) -> Vec<PeFile<'a>> {
    let of_file = |(kind, source): &'a (Kind, Source)| {
        of(kind).map(|(pe, phase)| PeFile { name: name_of(source.path()), pe, phase, source })
    };
    files.iter().filter_map(of_file).collect()
}

/// Short files are not worth a thread.
fn threads_for(sources: &[&Source], context: &ImportContext<'_>) -> usize {
    if sources.iter().all(|source| source.head_is_whole()) { 1 } else { context.threads }
}

fn note_if_cut_off(reading: &mut Reading, name: &str, ending: Ending) {
    let cut_off = u64::from(ending == Ending::CutOff);
    reading.builder.stats.note(findings::TRUNCATED, cut_off, || format!("{name}: the compressed file breaks off"));
}

/// Books an `overall.txt`. One sub-run goes into the run; several are handed back, to be runs of their own.
fn take_overall(name: &str, overall: &mut Overall, reading: &mut Reading) -> Result<Vec<overall::SubRun>, ImportError> {
    let Overall { foreign, relative, warnings, bad, torn, negative, .. } = *overall;
    let stats = &mut reading.builder.stats;
    stats.records(foreign + relative + warnings + bad + torn);
    stats.left_out(findings::OTHER_LINES, foreign, || format!("{name}: output of others"));
    stats.left_out(findings::RELATIVE_LINES, relative, || {
        format!("{name}: they become counters where a PE has no absolute line")
    });
    let torn_line = overall.torn_example.take().unwrap_or_default();
    stats.left_out(findings::TORN_LINES, torn, || format!("{name}: `{torn_line}`"));
    stats.left_out(findings::TOTAL_DIFFERS_FROM_FINISH, warnings, || {
        format!("{name}: printed before the selector had finished")
    });
    let (bad_line, negative_line) = (overall.bad_example.take(), overall.negative_example.take());
    stats.left_out(findings::BAD_LINES, bad, || format!("{name}: `{}`", bad_line.unwrap_or_default()));
    stats.note(findings::NEGATIVE_CYCLES, negative, || format!("{name}: `{}`", negative_line.unwrap_or_default()));
    reading.builder.info.program = overall.program.take();
    if let Some(pe) = overall.largest_pe {
        reading.meet(pe);
    }
    let mut sub_runs = std::mem::take(&mut overall.sub_runs);
    if sub_runs.len() == 1
        && let Some(only) = sub_runs.pop()
    {
        reading.take_sub_run(&only)?;
        if !only.label.is_empty() {
            reading.builder.info.args.insert("label".to_owned(), only.label.into());
        }
    }
    Ok(sub_runs)
}

/// Makes each sub-run a run, with the PEs of all of them.
fn sub_runs_of(
    path: &Path,
    sub_runs: Vec<overall::SubRun>,
    pes: i32,
    mut stats: Option<crate::trace::Stats>,
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    for sub_run in sub_runs {
        let mut reading = Reading::new(path, context);
        if let Some(stats) = stats.take() {
            reading.builder.stats.absorb(stats);
        }
        reading.pes = pes;
        reading.take_sub_run(&sub_run)?;
        let label = if sub_run.label.is_empty() { "overall" } else { &sub_run.label };
        let own_name = if sub_run.number == 0 { label.to_owned() } else { format!("{label} #{}", sub_run.number + 1) };
        let info = &mut reading.builder.info;
        info.own_name = Some(own_name);
        info.args.insert("label".to_owned(), sub_run.label.into());
        info.args.insert("sub_run".to_owned(), sub_run.number.into());
        reading.finish(context)?;
    }
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
