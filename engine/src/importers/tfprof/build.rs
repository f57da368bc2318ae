//! Build: pieces of lanes become locations, tasks and links.
//!
//! The order of the steps follows from what they need: times from one origin → stack parents (which need the times) →
//! names of task types (guessed from which types enclose others) → the join with a task graph (which needs names and
//! positions) → tables. Long pieces become chunks of the tables without a copy; short ones are combined first, so that a
//! trace with many lanes does not become many small batches.

use std::collections::HashMap;

use datafusion::arrow::array::Int64Array;
use datafusion::arrow::buffer::NullBuffer;

use super::Dialect;
use super::dot::Graph;
use super::join::{self, Links, Tasks};
use super::lanes::{Lane, Piece, Trace};
use super::types::{self, Numbering};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{Location, ROWS_PER_BATCH, RunBuilder, findings};

/// Fills the tables of a run.
pub(super) fn build(
    mut trace: Trace,
    dialect: Dialect,
    numbering: Option<Numbering>,
    graph: Option<&Graph>,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    shift(&mut trace)?;
    let positions = positions(&trace.pieces);
    let nesting = Nesting::of(&trace, &positions, builder)?;
    name_types(&mut trace, dialect, numbering, nesting.encloses, builder);
    let links = graph.map(|graph| {
        let tasks = Tasks {
            positions: &positions,
            names_cut: dialect == Dialect::Tfpx,
            has_modules: builder.words(tables::Tasks::kind).find("module").is_some(),
            one_clock: dialect.one_clock() || one_executor(&trace.pieces),
            trace: &trace,
        };
        join::join(graph, &tasks, &mut builder.stats)
    });
    builder.stats.records(trace.tasks);
    locations(&trace, dialect, builder)?;
    tasks(trace, nesting, builder)?;
    links.map_or(Ok(()), |links: Links| links.append(builder))
}

/// Counts all times from the origin of the run.
fn shift(trace: &mut Trace) -> Result<(), ImportError> {
    let mut misfit = None;
    for piece in &mut trace.pieces {
        let offset = trace.executors[piece.lane.executor as usize].offset;
        if offset == 0 {
            continue;
        }
        for time in piece.rows.starts.iter_mut().chain(&mut piece.rows.finishes) {
            let (shifted, overflowed) = time.overflowing_add(offset);
            if overflowed {
                misfit = Some(*time);
            }
            *time = shifted;
        }
    }
    misfit.map_or(Ok(()), |time| Err(trace.damaged(0, format!("a time {time} ns behind its executor's origin"))))
}

/// The position of the first task of each piece.
fn positions(pieces: &[Piece]) -> Vec<i64> {
    let mut next = 0;
    pieces
        .iter()
        .map(|piece| {
            let first = next;
            next += piece.rows.len() as i64;
            first
        })
        .collect()
}

fn one_executor(pieces: &[Piece]) -> bool {
    pieces.windows(2).all(|pair| pair[0].lane.executor == pair[1].lane.executor)
}

/// Who encloses whom.
struct Nesting {
    /// By piece: the position of the enclosing task, -1 = none. Empty for pieces of the outermost level.
    parents: Vec<Vec<i64>>,
    /// Bit `n`: a task of type number `n` encloses another.
    encloses: u64,
}

impl Nesting {
    /// The stack parent of a task at level L > 0 is the last task of level L - 1 of its worker that began no later, if it
    /// also ends no earlier. Both lanes are in order of begin, so two pointers suffice.
    fn of(trace: &Trace, positions: &[i64], builder: &mut RunBuilder) -> Result<Nesting, ImportError> {
        let pieces = &trace.pieces;
        let mut nesting = Nesting { parents: vec![Vec::new(); pieces.len()], encloses: 0 };
        if pieces.iter().all(|piece| piece.lane.level == 0) {
            return Ok(nesting);
        }
        let mut lanes: HashMap<Lane, Vec<usize>> = HashMap::new();
        for (index, piece) in pieces.iter().enumerate() {
            lanes.entry(piece.lane).or_default().push(index);
        }
        let mut inner: Vec<(&Lane, &Vec<usize>)> = lanes.iter().filter(|(lane, _)| lane.level > 0).collect();
        inner.sort_unstable();
        for (lane, children) in inner {
            let Some(outer) = lanes.get(&Lane { level: lane.level - 1, ..*lane }) else { continue };
            if let Some(at) = [outer, children].iter().find_map(|indices| disorder(pieces, indices, positions)) {
                let count = children.iter().map(|&index| pieces[index].rows.len() as u64).sum();
                builder.stats.note(findings::STACK_PARENTS_UNKNOWN, count, || {
                    format!("task {at} begins before the one in front of it, so nesting around it cannot be told")
                });
                continue;
            }
            nesting.nest(pieces, outer, children, positions);
        }
        Ok(nesting)
    }

    fn nest(&mut self, pieces: &[Piece], outer: &[usize], children: &[usize], positions: &[i64]) {
        let mut outer_tasks = tasks_of(pieces, outer).peekable();
        let mut last: Option<(usize, usize)> = None;
        for &index in children {
            let rows = &pieces[index].rows;
            let parents = rows.starts.iter().zip(&rows.finishes).map(|(&start, &finish)| {
                while let Some((piece, row)) =
                    outer_tasks.next_if(|&(piece, row)| pieces[piece].rows.starts[row] <= start)
                {
                    last = Some((piece, row));
                }
                match last {
                    Some((piece, row)) if finish <= pieces[piece].rows.finishes[row] => {
                        // Type numbers are below 64 in every dialect.
                        self.encloses |= 1 << pieces[piece].rows.types.get(row);
                        positions[piece] + row as i64
                    }
                    _ => -1,
                }
            });
            self.parents[index] = parents.collect();
        }
    }
}

/// The tasks of a lane as (piece, row).
fn tasks_of<'p>(pieces: &'p [Piece], lane: &'p [usize]) -> impl Iterator<Item = (usize, usize)> + 'p {
    lane.iter().flat_map(|&piece| (0..pieces[piece].rows.len()).map(move |row| (piece, row)))
}

/// The position of a task that begins before its forerunner in the lane.
fn disorder(pieces: &[Piece], lane: &[usize], positions: &[i64]) -> Option<i64> {
    let mut last = i64::MIN;
    tasks_of(pieces, lane).find_map(|(piece, row)| {
        let start = pieces[piece].rows.starts[row];
        let before = start < last;
        last = start;
        before.then(|| positions[piece] + row as i64)
    })
}

/// Replaces type numbers by keys of `tasks.kind`.
fn name_types(
    trace: &mut Trace,
    dialect: Dialect,
    numbering: Option<Numbering>,
    encloses: u64,
    builder: &mut RunBuilder,
) {
    let words: &[&'static str] = match dialect {
        Dialect::T0 => {
            let numbering = numbering.unwrap_or_else(|| guess_types(trace, encloses, builder));
            numbering.words()
        }
        _ => &types::WORDS,
    };
    let mut keys = [-1i32; 64];
    let mut unknown = 0;
    let mut first_unknown = None;
    for piece in &mut trace.pieces {
        let rows = piece.rows.len() as u64;
        let one = piece.rows.types.is_one();
        piece.rows.types.map(|_, number| {
            let slot = number as usize & 63;
            if slot >= words.len() {
                unknown += if one { rows } else { 1 };
                first_unknown.get_or_insert(number);
            }
            if keys[slot] < 0 {
                let word = words.get(slot).copied().unwrap_or(types::UNDEFINED);
                keys[slot] = builder.word(tables::Tasks::kind, word);
            }
            keys[slot]
        });
    }
    super::note_unknown_type(&mut builder.stats, unknown, || format!("type {}", first_unknown.unwrap_or_default()));
}

fn guess_types(trace: &Trace, encloses: u64, builder: &mut RunBuilder) -> Numbering {
    let mut occurs = 0u64;
    for piece in &trace.pieces {
        let rows = if piece.rows.types.is_one() { 1 } else { piece.rows.len() };
        for row in 0..rows {
            occurs |= 1 << (piece.rows.types.get(row) & 63);
        }
    }
    let numbering = Numbering::guess(occurs, encloses);
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

/// Moves the pieces into `tasks`.
fn tasks(mut trace: Trace, nesting: Nesting, builder: &mut RunBuilder) -> Result<(), ImportError> {
    *builder.words(tables::Tasks::name) = std::mem::take(&mut trace.names);
    let pieces = std::mem::take(&mut trace.pieces);
    let mut gathered = Gathered::default();
    for (piece, parents) in pieces.into_iter().zip(nesting.parents) {
        let Lane { executor, worker, level } = piece.lane;
        let location = builder.word(tables::Tasks::location, &format!("E{executor}/W{worker}"));
        let memory = piece.rows.memory();
        if piece.rows.len() < ROWS_PER_BATCH {
            gathered.add(&piece, &parents, location);
            trace.release(memory);
            if gathered.starts.len() >= ROWS_PER_BATCH {
                std::mem::take(&mut gathered).append(builder)?;
            }
            continue;
        }
        std::mem::take(&mut gathered).append(builder)?;
        trace.release(memory);
        // No declared parents in this format: `parent` is the stack's.
        let parents = (!parents.is_empty()).then(|| known(parents));
        builder.append(tables::Tasks {
            parent: parents.clone().into(),
            stack_parent: parents.into(),
            name: piece.rows.names.into_cells(),
            kind: piece.rows.types.into_cells(),
            role: "work".into(),
            location: location.into(),
            start: piece.rows.starts.into(),
            finish: piece.rows.finishes.into(),
            depth: i64::from(level).into(),
            ..Default::default()
        })?;
    }
    gathered.append(builder)
}

/// Positions of parents, NULL where negative.
fn known(parents: Vec<i64>) -> Int64Array {
    let known: Option<NullBuffer> = parents.contains(&-1).then(|| parents.iter().map(|parent| *parent >= 0).collect());
    Int64Array::new(parents.into(), known)
}

/// Short pieces of several lanes.
#[derive(Default)]
struct Gathered {
    names: Vec<i32>,
    kinds: Vec<i32>,
    locations: Vec<i32>,
    starts: Vec<i64>,
    finishes: Vec<i64>,
    depths: Vec<i64>,
    parents: Vec<i64>,
}

impl Gathered {
    fn add(&mut self, piece: &Piece, parents: &[i64], location: i32) {
        let rows = piece.rows.len();
        self.names.extend((0..rows).map(|row| piece.rows.names.get(row)));
        self.kinds.extend((0..rows).map(|row| piece.rows.types.get(row)));
        self.locations.extend(std::iter::repeat_n(location, rows));
        self.starts.extend(&piece.rows.starts);
        self.finishes.extend(&piece.rows.finishes);
        self.depths.extend(std::iter::repeat_n(i64::from(piece.lane.level), rows));
        self.parents.extend(parents);
        self.parents.resize(self.starts.len(), -1);
    }

    fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        let parents = self.parents.iter().any(|parent| *parent >= 0).then(|| known(self.parents));
        builder.append(tables::Tasks {
            parent: parents.clone().into(),
            stack_parent: parents.into(),
            name: self.names.into(),
            kind: self.kinds.into(),
            role: "work".into(),
            location: self.locations.into(),
            start: self.starts.into(),
            finish: self.finishes.into(),
            depth: self.depths.into(),
            ..Default::default()
        })
    }
}
