//! TFProf: traces of Taskflow programs (`TF_ENABLE_PROFILER`), and the task graphs of `taskflow.dump()`.
//!
//! Five kinds of content, recognised by their first bytes; the file name says nothing (3.4 writes JSON under a `.tfp` name,
//! 4.1 writes TFPX under a `.json` name):
//!
//! ```text
//! written by           content        begins with                        read by
//! 2.5 (JSON A)         JSON           {"executor":"<uuid>","data":[      json, relaxed
//! 2.6 - 4.0 (JSON B)   JSON           [\n{"executor":"0","data":[        json, relaxed
//! 3.0 - 4.0            binary T0      a small u64, a small u64, a clock  t0
//! 4.1 -                binary TFPX    TFPX                               tfpx
//! taskflow.dump()      DOT            digraph Taskflow {                 dot
//! ```
//! | Taskflow's word | here |
//! | --- | --- |
//! | executor | location `E<i>`, i = position in the file, also those without a task |
//! | worker | location `E<i>/W<w>`; T0 knows the idle ones, too |
//! | segment | a row of `tasks`; type → `kind`, level → `depth` |
//! | level | number of tasks open on the worker when it began: the encloser one level up is `stack_parent` |
//!
//! Life of the data: a dialect reads into pieces of lanes ([`lanes`]), [`nest`] finds stack parents, [`build`] counts times from one
//! origin and fills the tables, [`join`] adds links from the DOT file that lies beside the trace.
//!
//! Clocks: T0 holds the steady clock in ns, TFPX µs since each executor's own origin, which it holds: one clock for all.
//! JSON holds µs since each executor's creation and not when that was: a clock for each executor.
//!
//! Known to be wrong in files found in the wild: 2.5 writes an end far below zero for a module without tasks (kept, finish
//! NULL); the launcher `tfprof.py` overwrites the first byte of a T0 file; T0 numbers the types differently in each release;
//! JSON escapes no names; TFPX cuts names to 31 bytes and writes runtime tasks as static.

mod build;
mod dot;
mod join;
mod json;
mod lanes;
mod nest;
mod recognise;
mod relaxed;
mod t0;
#[cfg(test)]
mod tests;
mod tfpx;
mod types;
mod window;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use self::dot::{Graph, Node, Shape};
use self::join::Links;
use self::lanes::{Stop, Trace};
use self::types::Numbering;
use self::window::Window;
use super::importer::{FormatDoc, ImportContext, ImportOptions, Importer, OptionDoc};
use crate::error::ImportError;
use crate::paths;
use crate::tables;
use crate::trace::{Ending, RunBuilder, Source, Stats, findings, stem};

const TYPES_OPTION: &str = "tfprof.types";
const DOT_OPTION: &str = "tfprof.dot";

static DOC: FormatDoc = FormatDoc {
    name: "tfprof",
    title: "Taskflow programs run with TF_ENABLE_PROFILER, and task graphs of taskflow.dump()",
    dialects: &[
        "JSON of 2.5 (no levels) and of 2.6 to 4.0, as written or re-formatted",
        "binary .tfp of 3.0 to 4.0",
        "binary TFPX of 4.1 and later",
        "DOT: beside a trace as x.dot it gives links; alone its nodes are tasks without times",
    ],
    fills: "locations (executors, workers), tasks (kind = type, depth = level, stack_parent); with a DOT file links \
            (dependency, weak, spawn)",
    loses: "the format holds no dependencies (only DOT does), no idle or steal times, no creation or ready times, no \
            thread or core numbers, no date; TFPX no runtime type and no more than 31 bytes of a name; JSON no idle \
            workers and no common clock of executors",
    options: &[
        OptionDoc {
            key: TYPES_OPTION,
            description: "which release numbered the types of a binary .tfp: 3.0, 3.1 (also 3.2), 3.3, 3.5, 3.6 (to 3.8) or \
                          3.9 (to 4.0); guessed unless given",
        },
        OptionDoc {
            key: DOT_OPTION,
            description: "the DOT file of the trace, where it is not x.dot beside x.tfp or x.json",
        },
    ],
};

/// Taskflow's own profile.
pub(super) struct Tfprof;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// JSON exactly as the library writes it.
    Rigid,
    /// JSON that was written anew.
    Relaxed,
    T0,
    Tfpx,
    Dot,
}

impl Dialect {
    fn of(source: &Source) -> Option<Dialect> {
        let head = source.head();
        if head.starts_with(tfpx::MAGIC) {
            Some(Dialect::Tfpx)
        } else if dot::recognise(head) {
            Some(Dialect::Dot)
        } else if t0::recognise(head) {
            Some(Dialect::T0)
        } else if json::is_rigid(head) {
            Some(Dialect::Rigid)
        } else {
            recognise::holds_executors(source).then_some(Dialect::Relaxed)
        }
    }

    /// Whether the times of all executors are read from one clock.
    fn one_clock(self) -> bool {
        matches!(self, Dialect::T0 | Dialect::Tfpx)
    }
}

impl Importer for Tfprof {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        Dialect::of(source).is_some()
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let mut builder = context.begin(source);
        let numbering = numbering(context.options)?;
        match Dialect::of(source) {
            Some(Dialect::Dot) => graph_alone(source, &mut builder)?,
            Some(dialect) => trace(source, dialect, numbering, context, &mut builder)?,
            None => {
                let what = "neither executors in JSON, nor a binary dump, nor `digraph Taskflow {`";
                return Err(lanes::damaged(source, "byte 0".to_owned(), what.to_owned()));
            }
        }
        context.finish(builder)
    }

    fn companions(&self, file: &Path) -> Vec<PathBuf> {
        dot_names(&stem(file)).map(|name| file.with_file_name(name)).to_vec()
    }

    fn companions_among(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let dialect = |path: &Path| Source::open(path, None).ok().and_then(|source| Dialect::of(&source));
        let mut by_stem: HashMap<String, Vec<&PathBuf>> = HashMap::new();
        files.iter().for_each(|file| by_stem.entry(stem(file)).or_default().push(file));
        let mut graphs = Vec::new();
        for (stem, files) in by_stem.iter().filter(|(_, files)| files.len() > 1) {
            let names = dot_names(stem);
            let is_called =
                |file: &Path| file.file_name().is_some_and(|own| names.iter().any(|name| own == name.as_str()));
            let (called, others): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(|file| is_called(file));
            let is_trace = |file: &&PathBuf| dialect(file).is_some_and(|dialect| dialect != Dialect::Dot);
            if !called.is_empty() && others.iter().any(is_trace) {
                graphs.extend(called.into_iter().filter(|file| dialect(file) == Some(Dialect::Dot)).cloned());
            }
        }
        graphs
    }
}

/// The numbering that the user named.
fn numbering(options: &ImportOptions) -> Result<Option<Numbering>, ImportError> {
    let Some(value) = options.get(TYPES_OPTION) else { return Ok(None) };
    match Numbering::from_name(value) {
        Some(numbering) => Ok(Some(numbering)),
        None => Err(ImportError::BadOption {
            option: TYPES_OPTION.to_owned(),
            value: value.clone(),
            what: "one of 3.0, 3.1, 3.3, 3.5, 3.6, 3.9 is needed".to_owned(),
        }),
    }
}

/// A trace, with the graph beside it.
fn trace(
    source: &Source,
    dialect: Dialect,
    numbering: Option<Numbering>,
    context: &ImportContext<'_>,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let mut trace = Trace::new(source, context.budget());
    let graph = graph_beside(source, context.options, &mut builder.stats)?;
    let read = match dialect {
        Dialect::T0 => binary(source, |window| t0::read(window, &mut trace, &mut builder.stats)),
        Dialect::Tfpx => binary(source, |window| tfpx::read(window, &mut trace, &mut builder.stats)),
        Dialect::Rigid => rigid(source, context.threads, &mut trace, &mut builder.stats),
        Dialect::Relaxed | Dialect::Dot => relaxed::read(source, &mut trace, &mut builder.stats),
    };
    match read {
        Ok(()) => {}
        // What is whole is kept, and `--strict` knows that something is missing.
        Err(Stop::Cut { at, inside }) if trace.tasks > 0 => {
            builder.stats.note(findings::TRUNCATED, 1, || format!("byte {at}: the file ends inside of {inside}"));
        }
        Err(Stop::Cut { at, inside }) => {
            return Err(trace.damaged(at, format!("it ends inside of {inside}, before any task is whole")));
        }
        Err(Stop::Error(error)) => return Err(error),
    }
    trace.end()?;
    builder.info.time_unit = if dialect == Dialect::T0 { "ns" } else { "us" };
    builder.info.origin = match dialect {
        Dialect::T0 => Some(t0::align(&mut trace)?),
        Dialect::Tfpx => tfpx::align(&mut trace)?,
        _ => None,
    };
    if trace.tasks == 0 {
        let executors = trace.executors.len();
        builder.stats.note(findings::NO_TASKS, 1, || format!("{executors} executors, none of which finished a task"));
    }
    build::build(trace, dialect, numbering, graph.as_ref(), builder)
}

fn binary(source: &Source, read: impl FnOnce(&mut Window<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut window = Window::open(source)?;
    read(&mut window)?;
    if window.ending == Ending::CutOff {
        return Err(window.cut("the compressed stream".to_owned()));
    }
    Ok(())
}

/// JSON in the library's layout; a file that leaves the layout later, or seems to, may still be good JSON.
fn rigid(source: &Source, threads: usize, trace: &mut Trace, stats: &mut Stats) -> Result<(), Stop> {
    let mut found = Stats::default();
    let read = json::read(source, threads, trace, &mut found);
    let may_be_json = match &read {
        Ok(is_plain) => !is_plain,
        Err(Stop::Cut { .. }) => trace.tasks == 0,
        Err(Stop::Error(error)) => matches!(error, ImportError::Damaged { .. }),
    };
    if !may_be_json {
        stats.absorb(found);
        return read.map(|_| ());
    }
    trace.clear();
    let mut found_in_json = Stats::default();
    if let Ok(()) = relaxed::read(source, trace, &mut found_in_json) {
        stats.absorb(found_in_json);
        return Ok(());
    }
    trace.clear();
    match read {
        // Odd names are the more likely, and what the layout says of them is all there is.
        Ok(_) => json::read(source, threads, trace, stats).map(|_| ()),
        Err(stop) => Err(stop),
    }
}

fn note_unknown_type(stats: &mut Stats, count: u64, example: impl FnOnce() -> String) {
    stats.note(findings::UNKNOWN_TYPE, count, || format!("{}; read as `{}`", example(), types::UNDEFINED));
}

/// The names that a graph beside the trace `stem` may have.
fn dot_names(stem: &str) -> [String; 3] {
    ["", ".gz", ".zst"].map(|compression| format!("{stem}.dot{compression}"))
}

/// The graph that the user named, else the one that lies beside the trace.
fn graph_beside(source: &Source, options: &ImportOptions, stats: &mut Stats) -> Result<Option<Graph>, ImportError> {
    if let Some(named) = options.get(DOT_OPTION) {
        let file = source.beside(Path::new(named))?;
        if !dot::recognise(file.head()) {
            return Err(ImportError::BadOption {
                option: DOT_OPTION.to_owned(),
                value: named.clone(),
                what: "it is no graph of taskflow.dump(): it does not begin with `digraph Taskflow {`".to_owned(),
            });
        }
        return read_graph(&file, source).map(Some);
    }
    if source.path() == Path::new("-") {
        return Ok(None);
    }
    for name in dot_names(&source.stem()) {
        let path = source.path().with_file_name(name);
        if path == source.path() || !path.is_file() {
            continue;
        }
        if !paths::is_beside(source.path(), &path) {
            stats.note(findings::DOT_BESIDE_NOT_USED, 1, || {
                format!(
                    "{} leads out of the folder of the trace; `--option {DOT_OPTION}=FILE` reads it",
                    path.display()
                )
            });
            continue;
        }
        match source.beside(&path) {
            Ok(file) if dot::recognise(file.head()) => return read_graph(&file, source).map(Some),
            _ => stats.note(findings::DOT_BESIDE_NOT_USED, 1, || {
                format!("{} is no graph of taskflow.dump()", path.display())
            }),
        }
    }
    Ok(None)
}

/// The graph of a file, whose memory is held for as long as the `trace` is open.
fn read_graph(file: &Source, trace: &Source) -> Result<Graph, ImportError> {
    let text = file.read_all()?;
    trace.charge(memchr::memchr_iter(b'\n', &text).count() * dot::STATEMENT_MEMORY)?;
    Ok(Graph::parse(&text))
}

/// A graph opened as a trace: its nodes are tasks without times.
fn graph_alone(source: &Source, builder: &mut RunBuilder) -> Result<(), ImportError> {
    let graph = read_graph(source, source)?;
    let links = Links::of_nodes(&graph, &mut builder.stats);
    let subflows = graph.subflow_tasks();
    let has_subflow: std::collections::HashSet<usize> = subflows.iter().copied().flatten().collect();
    // A plain node may be static, asynchronous or a placeholder: the graph does not tell.
    let kind = |(index, node): (usize, &Node)| match node.shape {
        Shape::Condition => Some("condition"),
        Shape::Module => Some("module"),
        Shape::Cuda => Some("cudaflow"),
        Shape::Plain => has_subflow.contains(&index).then_some("subflow"),
    };
    builder.append(tables::Tasks {
        id: graph.nodes.iter().map(|node| node.id.as_str()).collect(),
        parent: graph.nodes.iter().map(|node| subflows[node.cluster].map(|parent| parent as i64)).collect(),
        name: graph.nodes.iter().map(|node| String::from_utf8_lossy(&node.name).into_owned()).collect(),
        kind: graph.nodes.iter().enumerate().map(kind).collect(),
        role: "work".into(),
        ..Default::default()
    })?;
    if graph.nodes.is_empty() {
        let example = || "the graph has no nodes".to_owned();
        builder.stats.note(findings::NO_TASKS, 1, example);
    }
    links.append(builder)
}
