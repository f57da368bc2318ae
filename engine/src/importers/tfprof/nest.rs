//! Nest: which task encloses which.
//!
//! The stack parent of a task at level L > 0 is the last task of level L - 1 of its worker that began no later, if it also ends no
//! earlier. There are two ways to find it:
//!
//! - [`Pairs`]: lanes are in order of begin, so a lane and the one around it are walked side by side, with one block of each in memory.
//! - [`Sweep`]: where pieces of many lanes alternate and are on disk, walking would read each block once per lane. The tasks of such workers
//!   are sorted by begin instead, and passed once, with the last task of each level in memory.
//!
//! Times are compared as they were read: those of one worker count from one origin. Where one of the two lanes is not in order of begin,
//! no parent is known.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::Peekable;

use datafusion::execution::memory_pool::MemoryReservation;

use super::lanes::{Block, Lane, Pieces, Trace};
use crate::error::ImportError;
use crate::trace::{Kept, Room, Sorted, Sorter, Stats, findings};

/// The stack parents of all tasks.
pub(super) struct Nesting {
    /// By block: the first row of some of its tasks, and the positions of what encloses them, -1 = nothing.
    by_block: Vec<Vec<(usize, Kept<Vec<i64>>)>>,
    /// Of the workers that were swept: positions of tasks and of what encloses them.
    swept: Option<Peekable<Sorted<(u64, i64)>>>,
    /// Bit `n`: a task of type number `n` encloses another.
    pub(super) encloses: u64,
    /// Bytes of what is in `by_block`.
    memory: MemoryReservation,
    room: Room,
}

/// Bytes that each of many small allocations is charged beside its own.
const OVERHEAD: usize = 64;

impl Nesting {
    /// Nests all tasks.
    ///
    /// # Errors
    /// The pool is exhausted; what is on disk cannot be read, or more not written.
    pub(super) fn of(trace: &Trace, stats: &mut Stats) -> Result<Nesting, ImportError> {
        let room = &trace.room;
        let mut nesting =
            Nesting { by_block: Vec::new(), swept: None, encloses: 0, memory: room.hold(), room: room.clone() };
        if trace.met.deepest == 0 {
            return Ok(nesting);
        }
        nesting.by_block.resize_with(trace.blocks.len(), Vec::new);
        let mut unknown = Vec::new();
        Pairs { trace, nesting: &mut nesting, unknown: &mut unknown }.nest()?;
        if !trace.scattered.is_empty() {
            Sweep::of(trace)?.nest(&mut nesting, &mut unknown)?;
        }
        // The same example, whichever way it was found.
        unknown.sort_unstable();
        for (_, count, at) in unknown {
            stats.note(findings::STACK_PARENTS_UNKNOWN, count, || {
                format!("task {at} begins before the one in front of it, so nesting around it cannot be told")
            });
        }
        Ok(nesting)
    }

    /// The positions of what encloses the tasks of a block, -1 = nothing; empty where none is enclosed. Blocks are asked for in their
    /// order, once each.
    ///
    /// # Errors
    /// They are on disk and cannot be read.
    pub(super) fn take(&mut self, at: usize, block: &Block) -> Result<Vec<i64>, ImportError> {
        let parts = self.by_block.get_mut(at).map(std::mem::take).unwrap_or_default();
        self.release(parts.iter().map(|(_, found)| found));
        let mut parents = Vec::new();
        for (from, found) in parts {
            let found = found.fetched()?;
            if found.len() == block.len {
                parents = found;
                continue;
            }
            parents.resize(block.len, -1);
            parents[from..from + found.len()].copy_from_slice(&found);
        }
        let behind = block.first + block.len as u64;
        let is_here = |next: &Result<(u64, i64), _>| next.as_ref().map_or(true, |(position, _)| *position < behind);
        while let Some(next) = self.swept.as_mut().and_then(|swept| swept.next_if(is_here)) {
            let (position, parent) = next?;
            parents.resize(block.len, -1);
            parents[(position - block.first) as usize] = parent;
        }
        Ok(parents)
    }

    /// Gives the memory of these parents back to the pool.
    fn release<'f>(&mut self, found: impl Iterator<Item = &'f Kept<Vec<i64>>>) {
        let bytes: usize = found.map(|found| found.memory() + OVERHEAD).sum();
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// Keeps what was found of the tasks of a lane.
    fn keep(&mut self, found: Vec<(Part, Kept<Vec<i64>>)>, encloses: u64) {
        self.encloses |= encloses;
        for (part, parents) in found {
            self.by_block[part.block].push((part.from, parents));
        }
    }
}

/// A lane whose parents are unknown: how many tasks it has, and the position of one that begins too early.
type Unknown = (Lane, u64, u64);

/// Rows of a block that are of one lane.
#[derive(Debug, Clone, Copy)]
struct Part {
    block: usize,
    from: usize,
    to: usize,
}

/// Walks each lane side by side with the lane around it.
struct Pairs<'n> {
    trace: &'n Trace,
    nesting: &'n mut Nesting,
    unknown: &'n mut Vec<Unknown>,
}

impl Pairs<'_> {
    fn nest(&mut self) -> Result<(), ImportError> {
        let lanes = self.lanes()?;
        for (lane, children) in &lanes {
            let Some(level) = lane.level.checked_sub(1) else { continue };
            let Some(outer) = lanes.get(&Lane { level, ..*lane }) else { continue };
            if let Some(at) = self.pair(outer, children)? {
                self.unknown.push((*lane, children.iter().map(|part| (part.to - part.from) as u64).sum(), at));
            }
        }
        Ok(())
    }

    /// The parts of all lanes that are not swept.
    fn lanes(&self) -> Result<BTreeMap<Lane, Vec<Part>>, ImportError> {
        let mut lanes: BTreeMap<Lane, Vec<Part>> = BTreeMap::new();
        for (at, block) in self.trace.blocks.iter().enumerate() {
            let mut add = |lane: Lane, from, to| {
                if !self.trace.scattered.contains(&lane.executor_and_worker()) {
                    lanes.entry(lane).or_default().push(Part { block: at, from, to });
                }
            };
            match (block.lane, &block.pieces) {
                (Some(lane), _) => add(lane, 0, block.len),
                (None, Kept::Held(pieces)) => pieces.iter().for_each(|(lane, rows)| add(lane, rows.start, rows.end)),
                // All of its workers are swept.
                (None, Kept::OnDisk(..)) => {}
            }
        }
        let bytes: usize = lanes.values().map(|parts| OVERHEAD + parts.capacity() * size_of::<Part>()).sum();
        self.grow(bytes)?;
        Ok(lanes)
    }

    /// Finds the parents of the tasks of a lane among those of `outer`, the lane around it. Returns a task that begins too early where one of
    /// the lanes is not in order; no parents are kept then.
    fn pair(&mut self, outer: &[Part], children: &[Part]) -> Result<Option<u64>, ImportError> {
        let blocks = &self.trace.blocks;
        let mut outer = Walk::new(blocks, outer);
        let mut next = outer.next()?;
        let mut last: Option<Task> = None;
        let (mut encloses, mut found) = (0, Vec::with_capacity(children.len()));
        let mut order = Order::default();
        for part in children {
            let pieces = blocks[part.block].pieces.get()?;
            let rows = &pieces.rows;
            let mut parents = Vec::with_capacity(part.to - part.from);
            for row in part.from..part.to {
                let (start, finish) = (rows.starts[row], rows.finishes[row]);
                order.see(start, blocks[part.block].first + row as u64);
                while let Some(task) = next.filter(|task| task.start <= start) {
                    last = Some(task);
                    next = outer.next()?;
                }
                parents.push(match last {
                    Some(task) if finish <= task.finish => {
                        encloses |= 1 << (task.type_number & 63);
                        task.position as i64
                    }
                    _ => -1,
                });
            }
            let mut parents = Kept::Held(parents);
            self.grow(parents.memory() + OVERHEAD)?;
            if let Some(spill) = self.trace.room.short() {
                self.nesting.memory.shrink(parents.memory());
                parents.put_away(spill)?;
            }
            found.push((*part, parents));
        }
        while outer.next()?.is_some() {}
        let early = outer.order.early.or(order.early);
        match early {
            None => self.nesting.keep(found, encloses),
            Some(_) => self.nesting.release(found.iter().map(|(_, parents)| parents)),
        }
        Ok(early)
    }

    fn grow(&self, bytes: usize) -> Result<(), ImportError> {
        self.nesting.room.resize(&self.nesting.memory, self.nesting.memory.size() + bytes)
    }
}

/// Whether a lane is in order of begin.
#[derive(Debug, Default)]
struct Order {
    last: Option<i64>,
    /// The position of the first task that begins before the one in front of it.
    early: Option<u64>,
}

impl Order {
    #[inline]
    fn see(&mut self, start: i64, position: u64) {
        if self.last.is_some_and(|last| start < last) {
            self.early.get_or_insert(position);
        }
        self.last = Some(start);
    }
}

/// A task that may enclose others.
#[derive(Debug, Clone, Copy)]
struct Task {
    start: i64,
    finish: i64,
    type_number: i32,
    position: u64,
}

/// The tasks of a lane, one after the other, a block in memory.
struct Walk<'b> {
    blocks: &'b [Block],
    parts: std::slice::Iter<'b, Part>,
    part: Part,
    pieces: Option<Cow<'b, Pieces>>,
    order: Order,
}

impl<'b> Walk<'b> {
    fn new(blocks: &'b [Block], parts: &'b [Part]) -> Walk<'b> {
        let nothing = Part { block: 0, from: 0, to: 0 };
        Walk { blocks, parts: parts.iter(), part: nothing, pieces: None, order: Order::default() }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Task>, ImportError> {
        while self.part.from == self.part.to {
            let Some(part) = self.parts.next() else { return Ok(None) };
            self.part = *part;
            self.pieces = Some(self.blocks[part.block].pieces.get()?);
        }
        let row = self.part.from;
        self.part.from += 1;
        let task = self.pieces.as_ref().map(|pieces| Task {
            start: pieces.rows.starts[row],
            finish: pieces.rows.finishes[row],
            type_number: pieces.rows.types.get(row),
            position: self.blocks[self.part.block].first + row as u64,
        });
        if let Some(task) = task {
            self.order.see(task.start, task.position);
        }
        Ok(task)
    }
}

/// Worker · begin, level, position · finish, type number: the order in which tasks are swept.
type InOrder = ((u32, u32), (i64, u32, u64), (i64, i32));

/// Passes the tasks of all levels of a worker in order of begin.
struct Sweep<'t> {
    tasks: Sorter<InOrder>,
    lanes: BTreeMap<Lane, SweptLane>,
    memory: MemoryReservation,
    trace: &'t Trace,
}

#[derive(Debug, Default)]
struct SweptLane {
    tasks: u64,
    order: Order,
}

impl<'t> Sweep<'t> {
    /// Sorts the tasks of the workers with scattered pieces.
    fn of(trace: &'t Trace) -> Result<Sweep<'t>, ImportError> {
        let room = &trace.room;
        let mut sweep = Sweep { tasks: Sorter::new(room), lanes: BTreeMap::new(), memory: room.hold(), trace };
        let is_swept = |lane: Lane| trace.scattered.contains(&lane.executor_and_worker());
        for block in trace.blocks.iter().filter(|block| block.lane.is_none_or(is_swept)) {
            let pieces = block.pieces.get()?;
            for (lane, rows) in pieces.iter() {
                let swept = sweep.lanes.entry(lane).or_default();
                swept.tasks += rows.len() as u64;
                let worker = lane.executor_and_worker();
                for row in rows {
                    let (start, finish) = (pieces.rows.starts[row], pieces.rows.finishes[row]);
                    let position = block.first + row as u64;
                    swept.order.see(start, position);
                    let type_number = pieces.rows.types.get(row);
                    sweep.tasks.push((worker, (start, lane.level, position), (finish, type_number)))?;
                }
            }
            room.resize(&sweep.memory, sweep.lanes.len() * (size_of::<(Lane, SweptLane)>() + OVERHEAD))?;
        }
        Ok(sweep)
    }

    fn nest(self, nesting: &mut Nesting, unknown: &mut Vec<Unknown>) -> Result<(), ImportError> {
        let Sweep { tasks, lanes, memory, trace } = self;
        let mut parents = Sorter::new(&trace.room);
        let mut levels: Vec<Level> = Vec::new();
        let mut open = None;
        for task in tasks.sorted()? {
            let (worker, (start, level, position), (finish, type_number)) = task?;
            if open.replace(worker) != Some(worker) {
                levels = levels_of(worker, &lanes, unknown);
            }
            let Ok(own) = levels.binary_search_by_key(&level, |level| level.number) else { continue };
            let around = own.checked_sub(1).filter(|_| levels[own].has_parents).and_then(|around| levels[around].last);
            if let Some(around) = around.filter(|around| finish <= around.finish) {
                nesting.encloses |= 1 << (around.type_number & 63);
                parents.push((position, around.position as i64))?;
            }
            levels[own].last = Some(Task { start, finish, type_number, position });
        }
        drop(memory);
        nesting.swept = Some(parents.sorted()?.peekable());
        Ok(())
    }
}

/// A level of the worker that is swept.
struct Level {
    number: u32,
    /// Whether there is a level around it, and both are in order.
    has_parents: bool,
    /// The task that began last.
    last: Option<Task>,
}

/// The levels of a worker, ascending.
fn levels_of(
    (executor, worker): (u32, u32),
    lanes: &BTreeMap<Lane, SweptLane>,
    unknown: &mut Vec<Unknown>,
) -> Vec<Level> {
    let lane = |level| Lane { executor, worker, level };
    let mut levels: Vec<Level> = Vec::new();
    let mut around: Option<(u32, &SweptLane)> = None;
    for (Lane { level, .. }, swept) in lanes.range(lane(0)..=lane(u32::MAX)) {
        let pair = around.filter(|(outer, _)| outer + 1 == *level);
        let early = pair.and_then(|(_, outer)| outer.order.early.or(swept.order.early));
        unknown.extend(early.map(|at| (lane(*level), swept.tasks, at)));
        levels.push(Level { number: *level, has_parents: pair.is_some() && early.is_none(), last: None });
        around = Some((*level, swept));
    }
    levels
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::lanes::Rows;
    use super::*;
    use crate::trace::{Budget, Source, Spill};

    /// A piece: its lane, and start, length and type of each task.
    type Piece = ((u32, u32), Vec<(i64, i64, i32)>);

    /// A trace of these pieces, which goes to disk from so many bytes in use on.
    fn trace(pieces: &[Piece], above: usize, folder: &Path) -> Trace {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let spill = Spill::new(folder.to_owned(), &pool, above);
        let source = Source::of_bytes(vec![0]).unwrap();
        let mut trace = Trace::new(&source, &Budget::from(pool).spilling(spill));
        for ((worker, level), tasks) in pieces {
            let mut rows = Rows::default();
            tasks.iter().for_each(|(start, length, kind)| rows.push(*start, start + length, 0, *kind));
            trace.add(Lane { executor: 0, worker: *worker, level: *level }, rows).unwrap();
        }
        trace.end().unwrap();
        trace
    }

    /// Parents, which types enclose others, and what was found.
    fn nested(trace: &Trace) -> (Vec<i64>, u64, String) {
        let mut stats = Stats::default();
        let mut nesting = Nesting::of(trace, &mut stats).unwrap();
        let parents = trace.blocks.iter().enumerate().flat_map(|(at, block)| {
            let mut parents = nesting.take(at, block).unwrap();
            parents.resize(block.len, -1);
            parents
        });
        (parents.collect(), nesting.encloses, format!("{:?}", stats.close(0)))
    }

    /// The definition, asked of every pair.
    fn naive(pieces: &[Piece]) -> Vec<i64> {
        let tasks: Vec<((u32, u32), i64, i64)> = pieces
            .iter()
            .flat_map(|(lane, tasks)| tasks.iter().map(|(start, length, _)| (*lane, *start, start + length)))
            .collect();
        let starts = |lane| tasks.iter().filter(move |task| task.0 == lane).map(|task| task.1);
        let parent = |((worker, level), start, finish): &((u32, u32), i64, i64)| {
            let around = (*worker, level.checked_sub(1)?);
            if !starts(around).is_sorted() || !starts((*worker, *level)).is_sorted() {
                return None;
            }
            let (at, last) = tasks.iter().enumerate().rfind(|(_, task)| task.0 == around && task.1 <= *start)?;
            (*finish <= last.2).then_some(at as i64)
        };
        tasks.iter().map(|task| parent(task).unwrap_or(-1)).collect()
    }

    proptest! {
        #[test]
        fn parents_are_the_same_in_memory_on_disk_and_by_definition(
            mut pieces in vec(((0..3u32, 0..3u32), vec((0..20i64, 0..40i64, 0..5i32), 0..20)), 0..12),
            is_sorted in any::<bool>(),
            above in 0..20_000usize,
        ) {
            // The pieces of a lane go on where the one before ended, but for some.
            let mut ends: HashMap<(u32, u32), i64> = HashMap::new();
            for (lane, tasks) in pieces.iter_mut().filter(|(lane, _)| is_sorted || lane.0 > 0) {
                for (start, ..) in tasks {
                    let end = ends.entry(*lane).or_default();
                    *end += *start;
                    *start = *end;
                }
            }
            let folder = tempfile::tempdir().unwrap();
            let in_memory = nested(&trace(&pieces, usize::MAX, folder.path()));
            prop_assert_eq!(&in_memory.0, &naive(&pieces));
            for above in [0, above] {
                prop_assert_eq!(&nested(&trace(&pieces, above, folder.path())), &in_memory);
            }
        }
    }

    #[test]
    fn workers_whose_short_pieces_alternate_are_swept_and_others_are_not() {
        let long = |start: i64| (0..6).map(|task| (start + 10 * task, 9, 1)).collect::<Vec<_>>();
        // Worker 0 has long pieces only, the short ones of workers 1 and 2 alternate.
        let pieces: Vec<Piece> = vec![
            ((0, 0), long(0)),
            ((0, 1), long(1)),
            ((1, 0), vec![(0, 50, 2)]),
            ((2, 0), vec![(0, 50, 3)]),
            ((1, 1), vec![(5, 5, 1)]),
            ((2, 1), vec![(6, 60, 1)]),
            ((0, 0), long(100)),
        ];
        let folder = tempfile::tempdir().unwrap();
        let trace = trace(&pieces, 0, folder.path());
        assert_eq!(trace.scattered, [(1, 0), (2, 0)].map(|(worker, _)| (0, worker)).into());
        let (parents, encloses, _) = nested(&trace);
        assert_eq!(parents[6..12], [-1; 6]);
        assert_eq!(parents[12..16], [-1, -1, 12, -1]);
        assert_eq!(encloses, 1 << 2);
    }
}
