//! Build: pieces of lanes become locations, tasks and links.
//!
//! The order of the steps follows from what they need: stack parents → which types enclose others, from which the meaning of type
//! numbers is guessed → the join with a task graph → tables, block by block: times from one origin, words for types. Long pieces
//! become chunks of the tables without a copy.

use datafusion::arrow::array::Int64Array;
use datafusion::arrow::buffer::NullBuffer;

use super::Dialect;
use super::dot::Graph;
use super::join::{self, Links, Tasks};
use super::lanes::{Lane, Pieces, Trace};
use super::nest::Nesting;
use super::types::{self, Numbering};
use crate::cells::Cells;
use crate::cells::kind::{Integer, Word};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{Location, RunBuilder, findings};

/// Fills the tables of a run.
pub(super) fn build(
    trace: Trace,
    dialect: Dialect,
    numbering: Option<Numbering>,
    graph: Option<&Graph>,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let nesting = Nesting::of(&trace, &mut builder.stats)?;
    let words: &[&'static str] = match dialect {
        Dialect::T0 => numbering.unwrap_or_else(|| guess_types(&trace, nesting.encloses, builder)).words(),
        _ => &types::WORDS,
    };
    let links = graph.map(|graph| {
        let is_met = |number: usize| trace.met.types & 1 << number != 0;
        let tasks = Tasks {
            names_cut: dialect == Dialect::Tfpx,
            has_modules: words.iter().enumerate().any(|(number, word)| *word == "module" && is_met(number)),
            one_clock: dialect.one_clock() || !trace.met.several_executors,
            trace: &trace,
        };
        join::join(graph, &tasks, &mut builder.stats)
    });
    let links = links.transpose()?;
    builder.stats.records(trace.tasks);
    locations(&trace, dialect, builder)?;
    tasks(trace, nesting, words, builder)?;
    links.map_or(Ok(()), |links: Links| links.append(builder))
}

fn guess_types(trace: &Trace, encloses: u64, builder: &mut RunBuilder) -> Numbering {
    let numbering = Numbering::guess(trace.met.types, encloses);
    builder.stats.note(findings::TYPES_GUESSED, trace.tasks, || {
        format!(
            "type numbers read as Taskflow {} wrote them; --option {}=… says better",
            numbering.name(),
            super::TYPES_OPTION
        )
    });
    builder.info.args.insert("types".to_owned(), numbering.name().into());
    numbering
}

/// Executors, each with the workers that the file mentions.
fn locations(trace: &Trace, dialect: Dialect, builder: &mut RunBuilder) -> Result<(), ImportError> {
    for (index, executor) in trace.executors.iter().enumerate() {
        let name = format!("E{index}");
        // JSON counts each executor's times from its own creation, and does not say when that was.
        let clock = Some(if dialect.one_clock() { "steady" } else { name.as_str() });
        let mut facts = serde_json::Map::new();
        if let Some(uid) = &executor.uid {
            facts.insert("uid".to_owned(), uid.as_str().into());
        }
        if let Some(origin) = executor.origin_ns {
            facts.insert("origin_ns".to_owned(), origin.into());
        }
        let args = (!facts.is_empty()).then(|| serde_json::Value::Object(facts).to_string());
        let (kind, role) = ("executor", "compute");
        builder.location(&Location {
            location: &name,
            kind,
            role,
            clock,
            args: args.as_deref(),
            ..Location::default()
        })?;
        for worker in &executor.workers {
            let location = &format!("{name}/W{worker}");
            let parent = Some(name.as_str());
            builder.location(&Location { location, parent, kind: "worker", role, clock, ..Location::default() })?;
        }
    }
    Ok(())
}

/// Moves the blocks into `tasks`.
fn tasks(
    mut trace: Trace,
    mut nesting: Nesting,
    words: &'static [&'static str],
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    *builder.words(tables::Tasks::name) = trace.take_names();
    let mut kinds = Kinds { words, keys: [-1; 64], unknown: 0, first_unknown: None };
    for (at, block) in std::mem::take(&mut trace.blocks).into_iter().enumerate() {
        let parents = nesting.take(at, &block)?;
        trace.release(block.memory());
        let mut pieces = block.pieces.fetched()?;
        pieces.shift(|lane| trace.offset(lane)).map_err(|time| trace.does_not_fit(time))?;
        kinds.name(&mut pieces, builder);
        let (location, depth) = lanes(block.lane, &pieces, builder);
        // No declared parents in this format: `parent` is the stack's.
        let parents = parents.iter().any(|parent| *parent >= 0).then(|| known(parents));
        let rows = pieces.rows;
        builder.append(tables::Tasks {
            parent: parents.clone().into(),
            stack_parent: parents.into(),
            name: rows.names.into_cells(),
            kind: rows.types.into_cells(),
            role: "work".into(),
            location,
            start: rows.starts.into(),
            finish: rows.finishes.into(),
            depth,
            ..Default::default()
        })?;
    }
    let first = kinds.first_unknown.unwrap_or_default();
    super::note_unknown_type(&mut builder.stats, kinds.unknown, || format!("type {first}"));
    Ok(())
}

/// The keys of task types in `tasks.kind`.
struct Kinds {
    words: &'static [&'static str],
    /// By type number, -1 until it is asked for.
    keys: [i32; 64],
    /// Tasks whose number has no word, and the first of the numbers.
    unknown: u64,
    first_unknown: Option<i32>,
}

impl Kinds {
    /// Replaces type numbers by keys.
    fn name(&mut self, pieces: &mut Pieces, builder: &mut RunBuilder) {
        let types = &mut pieces.rows.types;
        let tasks_of_one = if types.is_one() { pieces.rows.starts.len() as u64 } else { 1 };
        types.map(|_, number| {
            let slot = number as usize & 63;
            if slot >= self.words.len() {
                self.unknown += tasks_of_one;
                self.first_unknown.get_or_insert(number);
            }
            if self.keys[slot] < 0 {
                let word = self.words.get(slot).copied().unwrap_or(types::UNDEFINED);
                self.keys[slot] = builder.word(tables::Tasks::kind, word);
            }
            self.keys[slot]
        });
    }
}

/// Locations and depths of the tasks of a block.
fn lanes(lane: Option<Lane>, pieces: &Pieces, builder: &mut RunBuilder) -> (Cells<Word>, Cells<Integer>) {
    let mut key = |lane: Lane| builder.word(tables::Tasks::location, &format!("E{}/W{}", lane.executor, lane.worker));
    if let Some(lane) = lane {
        return (key(lane).into(), i64::from(lane.level).into());
    }
    let (mut locations, mut depths) = (Vec::new(), Vec::new());
    for (lane, rows) in pieces.iter() {
        locations.resize(rows.end, key(lane));
        depths.resize(rows.end, i64::from(lane.level));
    }
    (locations.into(), depths.into())
}

/// Positions of parents, NULL where negative.
fn known(parents: Vec<i64>) -> Int64Array {
    let known: Option<NullBuffer> = parents.contains(&-1).then(|| parents.iter().map(|parent| *parent >= 0).collect());
    Int64Array::new(parents.into(), known)
}
