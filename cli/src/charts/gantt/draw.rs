//! The picture of a [`Gantt`]: layout, axis, lanes, legend.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use tq_udfs::ticks::time_text;

use super::{Bar, Gantt, Lane, LaneOrder, REST, Row};
use crate::charts::axis::axis;
use crate::charts::data::natural;
use crate::charts::label::{Cuts, fitted_apart, fitted_middle, shown};
use crate::charts::palette::{HUES, Need, style};
use crate::charts::sheet::{LegendEntry, MARGIN, Mark, Sheet, WIDTH, counted, hues_legend};
use crate::charts::svg::{FONT_SIZE, Rectangle, Svg, number, text_width};
use crate::charts::{Names, totals_of_work};

const LABELS_MAX: f64 = 200.0;
/// What the rows of all lanes share.
const ROWS_HEIGHT: f64 = 520.0;
const ROW_MIN: f64 = 2.0;
const ROW_MAX: f64 = 18.0;
/// Rows of all lanes that are drawn.
const ROWS_DRAWN_MAX: usize = 900;
pub(super) const LANES_DRAWN_MAX: usize = 300;
/// So many lanes are drawn whatever runs on them: they fit on a screen.
pub(super) const LANES_OF_A_SCREEN: usize = 40;
/// Of more lanes, those are left out on which nothing ran for longer than this part of the time shown.
const NEARLY_EMPTY: f64 = 0.005;
/// Stretches of one colour that are drawn: about ten bytes each.
const STRETCHES_MAX: usize = 32_000;
/// Shades of a colour for how much of a bin was busy.
const SHADES: i64 = 4;
/// A taller plot has the marks of time above it, too: it does not fit on a screen.
const TALL: f64 = 620.0;
/// Bars narrower than this would vanish.
const BAR_MIN: f64 = 0.7;
/// Of many tasks those that are at least so wide are bars of their own.
const LONG: f64 = 24.0;

const STYLE: &str = "\
.b{stroke-width:0}.o1{opacity:.3}.o2{opacity:.53}.o3{opacity:.77}.p{fill:none;stroke:#1f2328;stroke-width:1.8}.n{fill:#1f2328}
@media (prefers-color-scheme:dark){.p{stroke:#ffffff}.n{fill:#ffffff}}
";

/// Where things stand.
struct Layout<'a> {
    gantt: &'a Gantt,
    /// Drawn lanes, in order.
    lanes: Vec<DrawnLane>,
    /// Of several runs: the baseline of the name of each, above its lanes.
    headings: Vec<(&'a str, f64)>,
    row_height: f64,
    lane_gap: f64,
    left: f64,
    plot_width: f64,
    top: f64,
    bottom: f64,
    from: i64,
    to: i64,
    classes: Vec<usize>,
    /// What the drawn lanes are called.
    labels: Vec<String>,
}

struct DrawnLane {
    number: usize,
    /// The y of its first row.
    y: f64,
    /// Its rows that are drawn.
    rows: Vec<usize>,
}

pub(super) fn draw(gantt: &Gantt, title: &str, order: &LaneOrder, page: &Names) -> String {
    let mut sheet = Sheet::new(title, subtitle(gantt));
    if gantt.tasks == 0 {
        return match gantt.without_times as usize {
            0 => sheet.empty("no tasks with times"),
            tasks => {
                let tasks = counted(tasks, "task");
                sheet.empty(&format!("none of {tasks} has a start, and a finish that is not before it"))
            }
        };
    }
    let names = if gantt.by_kind { &gantt.kinds } else { &gantt.names };
    let totals: Vec<(&str, i128)> = names.words.iter().map(String::as_str).zip(names.totals.iter().copied()).collect();
    let rows = drawn_rows(gantt, order);
    let seen = seen(gantt, &rows);
    let by_work = totals_of_work(&names.totals, &names.tells).into_iter().enumerate();
    // No hue for names that are not drawn: the legend would list what is not there. None for the rest, either: it is many names.
    let by_work = names.words.iter().zip(by_work).map(|(word, (number, total))| {
        (word.as_str(), if seen.contains(&(number as u32)) && word != REST { total } else { 0 })
    });
    let by_work: Vec<(&str, i128)> = by_work.collect();
    let classes = page.classes(&by_work, Need::Strong);
    let of_path = (!gantt.path.bars().is_empty()).then_some(gantt.outlined);
    sheet.legend = legend(&totals, &classes, !has_several_runs(gantt), of_path, page);
    // A line for marks of time.
    let layout = Layout::new(gantt, rows, order, sheet.top() + FONT_SIZE, classes);
    sheet.notes = notes(&layout);
    sheet.draw(layout.bottom + 36.0, &format!("{STYLE}{}", style()), |svg| {
        layout.axis(svg);
        layout.labels(svg);
        match &gantt.bars {
            Some(bars) => layout.bars(svg, bars, page),
            None => {
                layout.bins(svg, &totals);
                let long = |bar: &Bar| layout.x(bar.finish) - layout.x(bar.start) >= LONG;
                let bars: Vec<Bar> = gantt.longest.bars().into_iter().filter(long).collect();
                layout.bars(svg, &bars, page);
            }
        }
        layout.path(svg);
    })
}

fn subtitle(gantt: &Gantt) -> String {
    let mut text = format!("{} on {}", counted(gantt.tasks as usize, "task"), counted(gantt.lanes.len(), "location"));
    if gantt.tasks > 0 {
        let makespan = gantt.last_finish.saturating_sub(gantt.first_start);
        let what = if gantt.window.is_whole() { "from first start to last finish" } else { "are shown" };
        let _ = write!(text, ", {} {what}", time_text(makespan, gantt.tick));
    }
    text
}

fn notes(layout: &Layout<'_>) -> Vec<String> {
    let gantt = layout.gantt;
    let mut notes = Vec::new();
    if layout.classes.len() > 1 && !has_several_runs(gantt) {
        notes.push(
            "Shares: of the time of all tasks, waits and transfers among them; of nested tasks, the innermost counts."
                .to_owned(),
        );
    }
    let others = layout.classes.iter().filter(|class| **class == HUES).count();
    if others > 1 && gantt.lanes.iter().any(|lane| lane.rows.len() > 1) {
        notes.push(
            "Grey: waits, and names with little time of their own; what runs inside of them does not count.".to_owned(),
        );
    }
    if gantt.bars.is_none() {
        let pixel = (gantt.slice.width as f64 * layout.scale()).max(1.0);
        let slice = time_text((pixel / layout.scale()) as i64, gantt.tick);
        notes.push(format!(
            "More tasks than pixels: each pixel (about {slice}) has the colour that ran longest in it; paler = busy for a smaller part of it."
        ));
    }
    let unlabelled = layout.lanes.len() - layout.labelled().len();
    if unlabelled > 0 {
        notes.push(format!("No room for the name of {}.", counted(unlabelled, "location")));
    }
    let hidden = gantt.lanes.len() - layout.lanes.len();
    if hidden > 0 {
        let drawn: HashSet<usize> = layout.lanes.iter().map(|lane| lane.number).collect();
        let hidden_lanes = gantt.lanes.iter().enumerate().filter(|(number, _)| !drawn.contains(number));
        let most = hidden_lanes.map(|(_, lane)| busy_share(gantt, lane)).fold(0.0, f64::max);
        let (locations, each) = (counted(hidden, "further location"), if hidden == 1 { "" } else { " on each" });
        // Rounded up, so that it is true of all.
        let most = (most * 1_000.0).ceil() / 10.0;
        notes.push(format!("Not drawn: {locations}, where least ran (at most {most:.1} % of the time shown{each})."));
    }
    let left_out: usize = layout.lanes.iter().map(|lane| gantt.lanes[lane.number].rows.len() - lane.rows.len()).sum();
    if left_out > 0 {
        let most = layout.lanes.iter().map(|lane| lane.rows.len()).max().unwrap_or(0);
        notes.push(format!(
            "Of each location at most {} are drawn, those with most time of their own. Not drawn: {} with less.",
            counted(most, "row"),
            counted(left_out, "row")
        ));
    }
    if gantt.too_deep > 0 {
        notes.push(format!("Not drawn: {} below too many others.", counted(gantt.too_deep as usize, "task")));
    }
    if gantt.without_times > 0 {
        let tasks = counted(gantt.without_times as usize, "task");
        notes.push(format!("Not drawn: {tasks} without a start, or a finish that is not before it."));
    }
    notes
}

impl<'a> Layout<'a> {
    fn new(
        gantt: &'a Gantt,
        lanes: Vec<(usize, Vec<usize>)>,
        order: &LaneOrder,
        top: f64,
        classes: Vec<usize>,
    ) -> Layout<'a> {
        let rows: usize = lanes.iter().map(|(_, rows)| rows.len()).sum();
        let row_height = (ROWS_HEIGHT / rows.max(1) as f64).clamp(ROW_MIN, ROW_MAX);
        let lane_gap = if row_height >= 6.0 { 6.0 } else { 2.0 };
        let labels = labels(lanes.iter().map(|(lane, _)| &gantt.lanes[*lane]), order);
        let label_width = labels.iter().map(|label| text_width(label)).fold(0.0, f64::max).min(LABELS_MAX);
        let left = MARGIN + label_width + 8.0;
        let mut y = top;
        let has_runs = has_several_runs(gantt);
        let mut headings: Vec<(&str, f64)> = Vec::new();
        let lanes = lanes
            .into_iter()
            .map(|(number, rows)| {
                let run = gantt.lanes[number].run.as_str();
                if has_runs && headings.last().is_none_or(|(last, _)| *last != run) {
                    y += if headings.is_empty() { 0.0 } else { 6.0 } + 16.0;
                    headings.push((run, y - 4.0));
                }
                let first = y;
                y += rows.len() as f64 * row_height + lane_gap;
                DrawnLane { number, y: first + lane_gap / 2.0, rows }
            })
            .collect();
        Layout {
            gantt,
            lanes,
            headings,
            row_height,
            lane_gap,
            left,
            plot_width: WIDTH - MARGIN - left,
            top,
            bottom: y,
            from: gantt.first_start,
            // Instants alone have no extent; a tick gives them one.
            to: gantt.last_finish.max(gantt.first_start.saturating_add(1)),
            classes,
            labels,
        }
    }

    /// Pixels of a tick.
    fn scale(&self) -> f64 {
        self.plot_width / (self.to as f64 - self.from as f64)
    }

    /// Where a time is drawn; what lies outside is at the border.
    fn x(&self, time: i64) -> f64 {
        let time = time.clamp(self.from, self.to);
        self.left + (i128::from(time) - i128::from(self.from)) as f64 * self.scale()
    }

    fn axis(&self, svg: &mut Svg) {
        for (index, lane) in self.lanes.iter().enumerate() {
            if index % 2 == 0 {
                let height = lane.rows.len() as f64 * self.row_height + self.lane_gap;
                let (x, width) = (self.left, self.plot_width);
                svg.bar("band", Rectangle { x, y: lane.y - self.lane_gap / 2.0, width, height }, "");
            }
        }
        let axis = axis(self.from, self.to, 8, self.gantt.tick);
        let is_tall = self.bottom - self.top > TALL;
        for (time, label) in &axis.marks {
            let x = self.x(*time);
            svg.line("grid", (x, self.top), (x, self.bottom + 4.0));
            svg.words("pale", x, self.bottom + 17.0, "middle", label);
            if is_tall {
                svg.words("pale", x, self.top - 4.0, "middle", label);
            }
        }
        let middle = self.left + self.plot_width / 2.0;
        svg.words(
            "pale",
            middle,
            self.bottom + 32.0,
            "middle",
            &format!("time since the {} ({})", self.origin(), axis.unit),
        );
    }

    /// Where the axis has its zero.
    fn origin(&self) -> &'static str {
        match &self.gantt.origins {
            Some(origins) if origins.len() > 1 => "first task of each run",
            Some(_) => "first task",
            None => "origin of the run",
        }
    }

    fn labels(&self, svg: &mut Svg) {
        for (run, base) in &self.headings {
            svg.words("ink bold", self.left, *base, "start", &fitted_middle(shown(run), self.plot_width / 1.12));
        }
        let labels = fitted_apart(&self.labels, LABELS_MAX);
        for (place, middle) in self.labelled() {
            svg.words("ink", self.left - 8.0, middle + FONT_SIZE * 0.35, "end", &labels[place]);
        }
    }

    /// Which of the drawn lanes have room for their name, and where its middle is.
    fn labelled(&self) -> Vec<(usize, f64)> {
        let mut free_from = f64::MIN;
        let mut labelled = Vec::new();
        for (place, lane) in self.lanes.iter().enumerate() {
            let middle = lane.y + lane.rows.len() as f64 * self.row_height / 2.0;
            // Lines of text need some air between them.
            let half_line = FONT_SIZE * 0.6;
            if middle - half_line >= free_from {
                free_from = middle + half_line;
                labelled.push((place, middle));
            }
        }
        labelled
    }

    /// The rows that are drawn, by lane and row, and where.
    fn rows(&self) -> impl Iterator<Item = ((usize, usize), f64)> + '_ {
        self.lanes.iter().flat_map(|lane| {
            let place = |(place, row): (usize, &usize)| ((lane.number, *row), lane.y + place as f64 * self.row_height);
            lane.rows.iter().enumerate().map(place)
        })
    }

    fn bars(&self, svg: &mut Svg, bars: &[Bar], page: &Names) {
        let rows: HashMap<(usize, usize), f64> = self.rows().collect();
        let labels = page.labels(self.gantt.names.words.iter().map(|name| shown(name)));
        let cuts = Cuts::new(labels.iter().map(String::as_str));
        let gap = if self.row_height >= 6.0 { 1.0 } else { 0.0 };
        for bar in bars {
            let Some(&y) = rows.get(&(bar.lane, bar.row)) else { continue };
            let (x, end) = (self.x(bar.start), self.x(bar.finish));
            let width = (end - x).max(BAR_MIN);
            // Neighbours of one colour stay apart where there is room.
            let drawn = if width > 3.0 { width - 0.5 } else { width };
            let height = self.row_height - gap;
            let class = self.classes[if self.gantt.by_kind { bar.kind } else { bar.name } as usize];
            let name = shown(&self.gantt.names.words[bar.name as usize]);
            let start = time_text(bar.start, self.gantt.tick);
            let duration = time_text(bar.finish.saturating_sub(bar.start), self.gantt.tick);
            let tooltip = format!("{name}: {duration} from {start}, {}", self.share(bar.start, bar.finish));
            svg.bar(&format!("f{class}"), Rectangle { x, y, width: drawn, height }, &tooltip);
            let label = cuts.fit(&labels[bar.name as usize], drawn - 6.0).filter(|_| self.row_height >= 11.0);
            if let Some(label) = label {
                svg.words(&format!("t{class}"), x + 3.0, y + height / 2.0 + FONT_SIZE * 0.35, "start", &label);
            }
        }
    }

    /// Stretches of one colour and shade as one path each: a stretch costs ten bytes.
    fn bins(&self, svg: &mut Svg, totals: &[(&str, i128)]) {
        let mut merged = 1;
        while self.stretches(merged).map(|stretches| stretches.len()).sum::<usize>() > STRETCHES_MAX {
            merged *= 2;
        }
        let gap = if self.row_height >= 6.0 { 1.0 } else { 0.0 };
        let height = self.row_height - gap;
        let mut paths: BTreeMap<(usize, i64), String> = BTreeMap::new();
        for (stretches, (_, top)) in self.stretches(merged).zip(self.rows()) {
            let y = top + height / 2.0;
            for stretch in stretches {
                // Both ends are rounded, not the width: the next stretch begins where this one ends.
                let tenth = |value: f64| (value * 10.0).round() / 10.0;
                let (x, end) = (tenth(self.x(stretch.from)), tenth(self.x(stretch.to.min(self.to))));
                let path = paths.entry((stretch.class, stretch.shade)).or_default();
                let _ = write!(path, "M{} {}h{}", number(x), number(tenth(y)), number((end - x).max(BAR_MIN)));
            }
        }
        let tooltips = self.tooltips(totals);
        svg.raw(&format!("<g stroke-width=\"{}\" shape-rendering=\"crispEdges\">", number(height)));
        for ((class, shade), path) in paths {
            svg.path(&format!("s{class} o{shade}"), &path, &tooltips[class]);
        }
        svg.raw("</g>");
    }

    /// By class: which names have it, how long they ran themselves, and which share that is.
    fn tooltips(&self, totals: &[(&str, i128)]) -> Vec<String> {
        let all: i128 = totals.iter().map(|(_, total)| total).sum();
        let of_class = |class: usize| {
            let of: Vec<&(&str, i128)> = totals
                .iter()
                .zip(&self.classes)
                .filter(|(_, other)| **other == class)
                .map(|(total, _)| total)
                .collect();
            let sum: i128 = of.iter().map(|(_, total)| total).sum();
            let name =
                if let [(name, _)] = of.as_slice() { shown(name).to_owned() } else { counted(of.len(), "other") };
            let time = time_text(i64::try_from(sum).unwrap_or(i64::MAX), self.gantt.tick);
            format!("{name}: {time}, {:.1} % of the busy time", 100.0 * sum as f64 / all.max(1) as f64)
        };
        (0..=HUES).map(of_class).collect()
    }

    /// Which part of the time that is shown a span is.
    fn share(&self, start: i64, finish: i64) -> String {
        let part = finish as f64 - start as f64;
        format!("{:.1} % of the time shown", 100.0 * part / (self.to as f64 - self.from as f64))
    }

    /// The stretches of each drawn row, `merged` bins taken together.
    fn stretches(&self, merged: usize) -> impl Iterator<Item = Vec<Stretch>> + '_ {
        self.rows().map(move |((lane, row), _)| self.stretches_of(&self.gantt.lanes[lane].rows[row], merged))
    }

    fn stretches_of(&self, row: &Row, merged: usize) -> Vec<Stretch> {
        let slice = self.gantt.slice;
        let width = slice.width.saturating_mul(merged as i64);
        let mut stretches: Vec<Stretch> = Vec::new();
        for (index, bins) in row.bins.0.chunks(merged).enumerate() {
            let Some(colour) = super::bins::dominant(bins) else { continue };
            let busy: i64 = bins.iter().map(|bin| bin.busy).sum();
            let shade = (i128::from(busy) * i128::from(SHADES)).div_euclid(i128::from(width)) as i64 + 1;
            let from = slice.origin.saturating_add((index as i64).saturating_mul(width));
            let stretch = Stretch {
                from,
                to: from.saturating_add(width),
                class: self.classes[colour as usize],
                shade: shade.min(SHADES),
            };
            match stretches.last_mut() {
                Some(last) if (last.to, last.class, last.shade) == (stretch.from, stretch.class, stretch.shade) => {
                    last.to = stretch.to;
                }
                _ => stretches.push(stretch),
            }
        }
        stretches
    }

    fn path(&self, svg: &mut Svg) {
        let rows: HashMap<(usize, usize), f64> = self.rows().collect();
        let gap = if self.row_height >= 6.0 { 1.0 } else { 0.0 };
        for bar in self.gantt.path.bars() {
            let Some(&y) = rows.get(&(bar.lane, bar.row)) else { continue };
            let (x, end) = (self.x(bar.start), self.x(bar.finish));
            let width = (end - x - 0.5).max(BAR_MIN);
            // An outline of something so narrow would cover its neighbours.
            let class = if width < 4.0 { "n" } else { "p" };
            let duration = time_text(bar.finish.saturating_sub(bar.start), self.gantt.tick);
            let start = time_text(bar.start, self.gantt.tick);
            let (what, share) = (self.gantt.outlined, self.share(bar.start, bar.finish));
            let tooltip = format!("{what}: {duration} from {start}, {share}");
            svg.bar(class, Rectangle { x, y, width, height: self.row_height - gap }, &tooltip);
        }
    }
}

struct Stretch {
    from: i64,
    to: i64,
    class: usize,
    shade: i64,
}

/// The numbers of the lanes: known ones in their order, then the others by name, numbers in names by value.
fn in_order(lanes: &[Lane], order: &LaneOrder) -> Vec<usize> {
    let places: HashMap<(&str, &str), usize> = order
        .lanes
        .iter()
        .enumerate()
        .map(|(place, (run, location, _))| ((run.as_str(), location.as_str()), place))
        .collect();
    let mut numbers: Vec<usize> = (0..lanes.len()).collect();
    numbers.sort_by_cached_key(|&number| {
        let lane = &lanes[number];
        let place = places.get(&(lane.run.as_str(), lane.location.as_str())).copied().unwrap_or(usize::MAX);
        (place, natural(&lane.run), natural(&lane.location))
    });
    numbers
}

/// Of these lanes those that are drawn, in the same order: what fits on a screen in any case, and beyond that, as long as the picture is not
/// too tall, those that are not nearly empty or that the path runs through. Those on which most ran come first.
fn worth_drawing(gantt: &Gantt, numbers: Vec<usize>) -> Vec<usize> {
    if numbers.len() <= LANES_OF_A_SCREEN {
        return numbers;
    }
    let on_path: HashSet<usize> = gantt.path.bars().iter().map(|bar| bar.lane).collect();
    let is_worth = |number: &usize| on_path.contains(number) || busy_share(gantt, &gantt.lanes[*number]) > NEARLY_EMPTY;
    let mut by_work = numbers.clone();
    by_work.sort_by_key(|number| Reverse((on_path.contains(number), gantt.lanes[*number].busy)));
    let worth = by_work.iter().filter(|number| is_worth(number)).count();
    let drawn: HashSet<usize> = by_work.into_iter().take(worth.clamp(LANES_OF_A_SCREEN, LANES_DRAWN_MAX)).collect();
    numbers.into_iter().filter(|number| drawn.contains(number)).collect()
}

/// The lanes that are drawn and which of their rows: as many of each as fit in all, those with most time of their own.
fn drawn_rows(gantt: &Gantt, order: &LaneOrder) -> Vec<(usize, Vec<usize>)> {
    let lanes = worth_drawing(gantt, in_order(&gantt.lanes, order));
    let rows = |cap: usize| lanes.iter().map(|&lane| gantt.lanes[lane].rows.len().min(cap)).sum::<usize>();
    let cap = (1..=super::ROWS_DRAWN).rev().find(|&cap| rows(cap) <= ROWS_DRAWN_MAX).unwrap_or(1);
    lanes.into_iter().map(|lane| (lane, gantt.lanes[lane].richest_rows(cap))).collect()
}

/// The names, or kinds where they are the colours, of what has a place in these rows.
fn seen(gantt: &Gantt, drawn: &[(usize, Vec<usize>)]) -> HashSet<u32> {
    let rows = drawn.iter().flat_map(|(lane, rows)| rows.iter().map(move |row| (*lane, *row)));
    match &gantt.bars {
        Some(bars) => {
            let rows: HashSet<(usize, usize)> = rows.collect();
            let bars = bars.iter().filter(|bar| rows.contains(&(bar.lane, bar.row)));
            bars.map(|bar| if gantt.by_kind { bar.kind } else { bar.name }).collect()
        }
        None => rows.flat_map(|(lane, row)| gantt.lanes[lane].rows[row].bins.colours()).collect(),
    }
}

/// For which part of the time shown something ran on a lane.
fn busy_share(gantt: &Gantt, lane: &Lane) -> f64 {
    // Tasks of no known location may run at once.
    (lane.busy as f64 / (gantt.last_finish as f64 - gantt.first_start as f64).max(1.0)).min(1.0)
}

/// `stream 7 (0/7)` where a location has a name that does not say the same; where both have no room, `rank 0: thread 27844 (python)`, or the
/// name alone, if no other location of the run is called so.
fn labels<'a>(lanes: impl Iterator<Item = &'a Lane>, order: &LaneOrder) -> Vec<String> {
    let mut names: HashMap<(&str, &str), &str> = HashMap::new();
    let mut so_called: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (run, location, name) in &order.lanes {
        names.insert((run, location), name);
        *so_called.entry((run, "", name)).or_default() += 1;
        if let Some(process) = process_of(location) {
            *so_called.entry((run, process, name)).or_default() += 1;
        }
    }
    let label = |lane: &Lane| {
        let name = names.get(&(lane.run.as_str(), lane.location.as_str())).copied().unwrap_or_default();
        if lane.location.is_empty() {
            return "(no location)".to_owned();
        }
        if name.is_empty() || lane.location.ends_with(name) {
            return lane.location.clone();
        }
        let both = format!("{} ({})", shown(name), lane.location);
        let is_one = |process: &str| so_called.get(&(lane.run.as_str(), process, name)) == Some(&1);
        match process_of(&lane.location) {
            _ if text_width(&both) <= LABELS_MAX => both,
            Some(process) if is_one(process) && !name.contains(process) => format!("{process}: {}", shown(name)),
            _ if is_one("") => shown(name).to_owned(),
            _ => lane.location.clone(),
        }
    };
    lanes.map(label).collect()
}

/// `rank 0` of `rank 0/27844/27844`: numbers alone say nothing.
fn process_of(location: &str) -> Option<&str> {
    let (process, _) = location.split_once('/')?;
    process.contains(char::is_alphabetic).then_some(process)
}

/// A share of the time of several runs together is true of none of them.
fn has_several_runs(gantt: &Gantt) -> bool {
    gantt.lanes.iter().any(|lane| lane.run != gantt.lanes[0].run)
}

/// The names with a hue, longest first, where it is wanted with their share of the time in which lanes were busy, then the others, then
/// what is outlined.
fn legend(
    totals: &[(&str, i128)],
    classes: &[usize],
    with_shares: bool,
    outlined: Option<&str>,
    page: &Names,
) -> Vec<LegendEntry> {
    let labels = page.labels(totals.iter().map(|(name, _)| shown(name)));
    let totals: Vec<f64> = totals.iter().map(|(_, total)| *total as f64).collect();
    let square = |class: String| Mark::Square(format!("f{class}"));
    let mut entries = hues_legend(&labels, classes, &totals, with_shares, square);
    entries.extend(outlined.map(|what| (Mark::Square("p".to_owned()), what.to_owned())));
    LegendEntry::flow(entries)
}
