//! A Gantt chart: a lane per location, in it rows of tasks that do not overlap, time from left to right.
//!
//! Life of the data: tasks arrive sorted by start ([`Gantt::add`]), each goes to the first row of its lane that is free
//! (the rule of `floating_row`). The first [`BARS_MAX`] are kept as bars. Should more come, all of them become *bins*
//! instead: per row and slice of time, how long which name ran. Bins are as wide as they must be for the time seen so
//! far to fit [`BINS_PER_ROW`], and all double together when it does not, or when there are more than [`BINS_MAX`]: five
//! million tasks need the memory of a picture. [`Gantt::draw`] draws bars with tooltips, or the bins, coloured by the
//! name that ran longest and shaded by how much of the slice was busy, and above them the longest tasks as bars ([`Longest`]).
//! Hues go to the names that ran longest themselves, without what ran inside of them ([`Open`]), to work before waits.
//!
//! A lane with more than [`ROWS_DRAWN`] rows shows those with the most self time: in deep stacks of Python most frames only enclose others, and
//! the work is at the lower end. The picture says what it leaves out: rows, lanes beyond the limit, tasks without times.

mod bins;
mod draw;
mod longest;
mod path;
pub(crate) mod rows;

use std::collections::HashMap;

use tq_engine::trace::Slice as TimeSlice;
use tq_udfs::lanes::open::Open;
use tq_udfs::ticks::Tick;

use super::Tells;
use bins::{Bins, Slice};
use longest::Longest;
use path::{Path, PathBar};

/// More tasks than this are drawn as bins.
const BARS_MAX: usize = 2_000;
/// Rows of a lane that are kept ...
const ROWS_KEPT: usize = 128;
/// ... and that are drawn.
const ROWS_DRAWN: usize = 24;
/// When all lanes together have this many rows, a lane keeps no more rows than are drawn.
const ROWS_OF_ALL: usize = 1 << 14;
/// Names that are told apart; later ones share a class.
const NAMES_MAX: usize = 1 << 16;
/// Bins of all rows together.
const BINS_MAX: usize = 1 << 20;
/// Bins of a row: about two per pixel.
const BINS_PER_ROW: i64 = 2_048;
/// Bins of a row when there are very many rows.
const BINS_PER_ROW_MIN: i64 = 16;

/// A chart that tasks are added to.
pub(crate) struct Gantt {
    tick: Tick,
    lanes: Vec<Lane>,
    lane_numbers: HashMap<(String, String), usize>,
    names: Names,
    /// Names that have a hue on the page already, since they ran longest.
    known: Option<super::Names>,
    kinds: Names,
    /// Bars while they are few, `None` once there are bins.
    bars: Option<Vec<Bar>>,
    /// The longest tasks, which have names and tooltips above the bins.
    longest: Longest,
    /// Tasks on the critical path, drawn above everything.
    path: Path,
    /// What the legend calls them.
    outlined: &'static str,
    slice: Slice,
    /// Whether colours tell kinds instead of names; decided when bars become bins or are drawn.
    by_kind: bool,
    tasks: u64,
    /// Rows of all lanes.
    rows: usize,
    /// What is drawn; tasks that reach out of it are cut at its borders.
    window: TimeSlice,
    first_start: i64,
    last_finish: i64,
    without_times: u64,
    too_deep: u64,
    /// Where several runs are laid on one start: the first start of each.
    origins: Option<HashMap<String, i64>>,
}

/// A task of the chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) run: &'a str,
    pub(crate) location: &'a str,
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) role: &'a str,
    /// First tick, and first tick after it; `None` = not known, not drawn.
    pub(crate) times: Option<(i64, i64)>,
    pub(crate) on_path: bool,
}

/// The order of lanes and what is written beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaneOrder {
    /// Run and location of each lane that is known, in order, and what it is called beside that, if anything.
    pub(crate) lanes: Vec<(String, String, String)>,
}

struct Lane {
    run: String,
    location: String,
    rows: Vec<Row>,
    tasks: u64,
    /// For how long something ran.
    busy: i128,
    /// What runs.
    open: Open<Running>,
}

/// Name and kind of a task, and its row, if it has one.
type Running = (u32, u32, Option<usize>);

#[derive(Default)]
struct Row {
    /// A task may start here from this tick on …
    free_for_spans: i64,
    /// … and an instant only from this one on: it also conflicts with a span that ends at it.
    free_for_instants: i64,
    /// For how long its tasks ran themselves, without those below.
    own: i128,
    bins: Bins,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Bar {
    lane: usize,
    row: usize,
    name: u32,
    kind: u32,
    start: i64,
    finish: i64,
}

impl Gantt {
    /// An empty chart of times in `tick`s.
    pub(crate) fn new(tick: Tick) -> Gantt {
        Gantt {
            tick,
            lanes: Vec::new(),
            lane_numbers: HashMap::new(),
            names: Names::default(),
            known: None,
            kinds: Names::default(),
            bars: Some(Vec::new()),
            longest: Longest::default(),
            path: Path::new(),
            outlined: "critical path",
            slice: Slice { origin: 0, width: 1 },
            by_kind: false,
            tasks: 0,
            rows: 0,
            window: TimeSlice::default(),
            first_start: i64::MAX,
            last_finish: i64::MIN,
            without_times: 0,
            too_deep: 0,
            origins: None,
        }
    }

    /// The same, with the times of each run from its first task on: clocks of several runs have nothing in common. Tasks must come in the
    /// order of their starts.
    pub(crate) fn on_one_start(self) -> Gantt {
        Gantt { origins: Some(HashMap::new()), ..self }
    }

    /// The same, but only what lies in the window is drawn.
    pub(crate) fn within(self, window: TimeSlice) -> Gantt {
        Gantt { window, ..self }
    }

    /// A chart of a page on which some names have hues already: those are told apart, however many others come before them.
    pub(crate) fn knowing(self, known: super::Names) -> Gantt {
        Gantt { known: Some(known), ..self }
    }

    /// Adds a task. Starts must not decrease within a lane.
    pub(crate) fn add(&mut self, span: Span<'_>) {
        let Some((start, finish)) = span.times.filter(|(start, finish)| start <= finish) else {
            self.without_times += 1;
            return;
        };
        let origin = match &mut self.origins {
            Some(origins) => *origins.entry(span.run.to_owned()).or_insert(start),
            None => 0,
        };
        let (start, finish) = (start.saturating_sub(origin), finish.saturating_sub(origin));
        let lane = self.lane(span.run, span.location);
        let tells = Tells::of(span.role, span.kind, span.name);
        let known = |word: &str| self.known.as_ref().is_some_and(|known| known.hue_of(word).is_some());
        let name = self.names.intern(span.name, tells, known);
        let kind = self.kinds.intern(span.kind, tells, |_| false);
        self.lanes[lane].tasks += 1;
        self.tasks += 1;
        let (first, last) = self.in_window(start, finish);
        self.first_start = self.first_start.min(first);
        self.last_finish = self.last_finish.max(last);
        let rows_before = self.lanes[lane].rows.len();
        let row = self.lanes[lane].place(start, finish, if self.rows < ROWS_OF_ALL { ROWS_KEPT } else { ROWS_DRAWN });
        self.rows += self.lanes[lane].rows.len() - rows_before;
        // Tasks of no known location do not nest: each has its whole time, as `self_time` has it.
        let nests = !span.location.is_empty();
        self.ran(lane, |open, tell| match nests {
            true => open.begin((name, kind, row), first, last, tell),
            false => tell((name, kind, row), i128::from(last) - i128::from(first)),
        });
        let Some(row) = row else {
            self.too_deep += 1;
            return;
        };
        if span.on_path {
            self.path.add(PathBar { lane, row, start, finish }, self.slice.width);
        }
        let bar = Bar { lane, row, name, kind, start, finish };
        match &mut self.bars {
            Some(bars) if bars.len() < BARS_MAX => bars.push(bar),
            Some(_) => {
                self.bars_become_bins();
                self.bin(bar);
            }
            None => self.bin(bar),
        }
    }

    /// Sets what the legend calls the outlined tasks, where they are not the critical path.
    pub(crate) fn outlining(self, what: &'static str) -> Gantt {
        Gantt { outlined: what, ..self }
    }

    /// The picture. Lanes of `order` come first, in its order; the others follow by name.
    pub(crate) fn draw(mut self, title: &str, order: &LaneOrder, page: &super::Names) -> String {
        for lane in 0..self.lanes.len() {
            self.ran(lane, |open, tell| open.until(i64::MAX, tell));
        }
        if self.bars.is_some() {
            self.by_kind = self.kinds_tell_more();
        }
        draw::draw(&self, title, order, page)
    }

    /// Takes a step through what runs on a lane, and adds the self times that it gives to names, kinds and rows.
    fn ran(&mut self, lane: usize, step: impl FnOnce(&mut Open<Running>, &mut dyn FnMut(Running, i128))) {
        let (names, kinds) = (&mut self.names.totals, &mut self.kinds.totals);
        let Lane { open, busy, rows, .. } = &mut self.lanes[lane];
        step(open, &mut |(name, kind, row), ticks| {
            names[name as usize] += ticks;
            kinds[kind as usize] += ticks;
            *busy += ticks;
            if let Some(row) = row {
                rows[row].own += ticks;
            }
        });
    }

    fn lane(&mut self, run: &str, location: &str) -> usize {
        // Tasks of a lane often come one after the other: look at the last lane before the table.
        if let Some(last) = self.lanes.last()
            && last.location == location
            && last.run == run
        {
            return self.lanes.len() - 1;
        }
        let key = (run.to_owned(), location.to_owned());
        *self.lane_numbers.entry(key).or_insert_with(|| {
            let (run, location) = (run.to_owned(), location.to_owned());
            self.lanes.push(Lane { run, location, rows: Vec::new(), tasks: 0, busy: 0, open: Open::default() });
            self.lanes.len() - 1
        })
    }

    /// Names tell nothing when there is one, and nothing that a legend could say when most differ; one kind tells less.
    fn kinds_tell_more(&self) -> bool {
        let (names, kinds) = (self.names.words.len(), self.kinds.words.len());
        kinds > 1 && (names == 1 || (names > palette_limit(self.tasks) && kinds < names))
    }

    fn bars_become_bins(&mut self) {
        self.by_kind = self.kinds_tell_more();
        let bars = self.bars.take().unwrap_or_default();
        self.slice.origin = self.first_start;
        for bar in bars {
            self.bin(bar);
        }
    }

    fn bin(&mut self, bar: Bar) {
        let per_row = BINS_PER_ROW.min((BINS_MAX / self.rows.max(1)) as i64).max(BINS_PER_ROW_MIN);
        while self.slice.index(self.last_finish) >= per_row {
            self.slice.width *= 2;
            for row in self.lanes.iter_mut().flat_map(|lane| &mut lane.rows) {
                row.bins.halve();
            }
        }
        let colour = if self.by_kind { bar.kind } else { bar.name };
        let (first, last) = self.in_window(bar.start, bar.finish);
        self.longest.add(bar, last.saturating_sub(first));
        self.lanes[bar.lane].rows[bar.row].bins.add(self.slice, colour, first, last);
    }

    /// The part of a span that lies in the window; one that lies outside stays what it is.
    fn in_window(&self, start: i64, finish: i64) -> (i64, i64) {
        let first = self.window.from.map_or(start, |from| from.max(start));
        let last = self.window.to.map_or(finish, |to| to.min(finish));
        if first <= last { (first, last) } else { (start, finish) }
    }
}

/// From how many distinct names on a legend says nothing: half of the tasks, but a handful at least.
fn palette_limit(tasks: u64) -> usize {
    (tasks / 2).max(12) as usize
}

impl Lane {
    /// The smallest row that is free, `None` when all that are kept are taken.
    fn place(&mut self, start: i64, finish: i64, kept: usize) -> Option<usize> {
        let free =
            |row: &Row| if start == finish { row.free_for_instants <= start } else { row.free_for_spans <= start };
        let row = match self.rows.iter().position(free) {
            Some(row) => row,
            None if self.rows.len() < kept => {
                let bins = Bins::default();
                self.rows.push(Row { free_for_spans: i64::MIN, free_for_instants: i64::MIN, own: 0, bins });
                self.rows.len() - 1
            }
            None => return None,
        };
        let taken = &mut self.rows[row];
        // A span may start where another ends, but not where an instant stands.
        let after = if start == finish { finish.saturating_add(1) } else { finish };
        taken.free_for_spans = taken.free_for_spans.max(after);
        taken.free_for_instants = taken.free_for_instants.max(finish.saturating_add(1));
        Some(row)
    }

    /// The rows with most time of their own, at most `count`, in order.
    fn richest_rows(&self, count: usize) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.rows.len()).collect();
        rows.sort_by_key(|&row| std::cmp::Reverse(self.rows[row].own));
        rows.truncate(count);
        rows.sort_unstable();
        rows
    }
}

/// Words with the time in which they ran themselves.
#[derive(Default)]
struct Names {
    words: Vec<String>,
    totals: Vec<i128>,
    /// What a hue would tell of it, from the first task that has the word.
    tells: Vec<Tells>,
    numbers: HashMap<String, u32>,
    last: u32,
}

impl Names {
    /// The number of a word; one beyond the limit has its own only where `is_known` says so.
    fn intern(&mut self, word: &str, tells: Tells, is_known: impl Fn(&str) -> bool) -> u32 {
        // Neighbours often share their name.
        if self.words.get(self.last as usize).is_some_and(|last| last == word) {
            return self.last;
        }
        self.last = match self.numbers.get(word) {
            Some(&number) => number,
            None => {
                let word = if self.words.len() < NAMES_MAX || is_known(word) { word } else { REST };
                if let Some(&number) = self.numbers.get(word) {
                    number
                } else {
                    let number = self.words.len() as u32;
                    self.words.push(word.to_owned());
                    self.totals.push(0);
                    self.tells.push(tells);
                    self.numbers.insert(word.to_owned(), number);
                    number
                }
            }
        };
        self.last
    }
}

/// What all names beyond [`NAMES_MAX`] are called.
const REST: &str = "(more names)";

#[cfg(test)]
mod tests;
