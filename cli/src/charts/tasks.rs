//! `tasks`: a task between its parent and its subtasks on a time axis, as in Daisen's task view.
//!
//! Reads `role` (`parent`, `task` or `subtask`), `start`, `finish`, and if present `row` (from 0, within the role),
//! `name`, `kind`. Colours stand for kinds where there are several, else for names.

use super::ChartError;
use super::axis::axis;
use super::data::{Data, Words};
use super::label::{Cuts, shown};
use super::palette::{Need, style};
use super::sheet::{LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, counted, hues_legend};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, Svg};
use tq_udfs::ticks::{Tick, time_text};

/// The bands from top to bottom: role and label.
const BANDS: [(&str, &str); 3] = [("parent", "parent"), ("task", "task"), ("subtask", "subtasks")];
const ROW_MAX: f64 = 20.0;
const ROW_MIN: f64 = 3.0;
/// What the rows of subtasks share.
const SUBTASKS_HEIGHT: f64 = 460.0;
const LABELS: f64 = 62.0;
const BETWEEN: f64 = 14.0;
/// Bars that are drawn.
const BARS_MAX: usize = 20_000;

struct Bar {
    band: usize,
    row: usize,
    start: i64,
    finish: i64,
    name: u32,
    kind: u32,
}

pub(super) fn draw(_chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    const KIND: &str = "tasks";
    let fixed = |column| Ok(("", data.fixed(KIND, column)?));
    let roles = data.words(fixed("role")?)?;
    let (starts, finishes) = (data.numbers(fixed("start")?)?, data.numbers(fixed("finish")?)?);
    let optional = |column| data.fixed(KIND, column).ok();
    let (names, kinds) = (data.words_if("", optional("name"))?, data.words_if("", optional("kind"))?);
    let rows = data.numbers_if("", optional("row"))?;
    let code = |words: &Option<Words>, row: usize| words.as_ref().map_or(0, |words| words.codes[row]);

    let mut bars = Vec::new();
    let mut left_out = 0;
    for row in 0..starts.values.len() {
        let band = BANDS.iter().position(|(role, _)| *role == roles.words[roles.codes[row] as usize]);
        let (start, finish) = (starts.values[row], finishes.values[row]);
        let Some(band) = band.filter(|_| start <= finish) else {
            left_out += 1;
            continue;
        };
        let place = rows.as_ref().map_or(0.0, |rows| rows.values[row]);
        let place = if place.is_nan() { 0 } else { place.max(0.0) as usize };
        bars.push(Bar {
            band,
            row: place,
            start: start as i64,
            finish: finish as i64,
            name: code(&names, row),
            kind: code(&kinds, row),
        });
    }
    let count = |band: usize| bars.iter().filter(|bar| bar.band == band).count();
    let mut sheet = Sheet::new(
        title,
        format!("{} between its parent and {}", counted(count(1), "task"), counted(count(2), "subtask")),
    );
    if left_out > 0 {
        sheet.notes.push(format!(
            "{} without times, or whose role is not parent, task or subtask, left out.",
            counted(left_out, "row")
        ));
    }
    if bars.is_empty() {
        return Ok(sheet.empty("no tasks with times"));
    }
    let by_kind = kinds.as_ref().is_some_and(|kinds| kinds.words.len() > 1);
    let words = if by_kind { &kinds } else { &names };
    let one = || vec!["task".to_owned()];
    let (words, labels) =
        words.as_ref().map_or_else(|| (one(), one()), |words| (words.words.clone(), words.labels.clone()));
    let mut totals: Vec<(&str, i128)> = words.iter().map(|word| (word.as_str(), 0)).collect();
    for bar in &bars {
        totals[if by_kind { bar.kind } else { bar.name } as usize].1 += i128::from(bar.finish) - i128::from(bar.start);
    }
    let classes = data.names.classes(&totals, Need::Any);
    let totals: Vec<f64> = totals.iter().map(|(_, total)| *total as f64).collect();
    let square = |class| Mark::Square(format!("f{class}"));
    sheet.legend = LegendEntry::flow(hues_legend(&labels, &classes, &totals, false, square));
    bars.sort_by_key(|bar| (bar.band, bar.row, bar.start, -bar.finish, bar.name));
    let (names, labels) =
        names.map(|names| (names.words, names.labels)).unwrap_or_else(|| (vec![String::new()], vec![String::new()]));
    let cuts = Cuts::new(labels.iter().map(String::as_str));
    let view = View::new(&bars, sheet.top() + 8.0, data.tick);
    let hidden = view.hidden(&bars);
    if hidden > 0 {
        sheet.notes.push(format!("Narrower than a pixel, drawn with its neighbours: {}.", counted(hidden, "task")));
    }
    Ok(sheet.draw(view.plot.bottom + 36.0, &style(), |svg| {
        view.frame(svg);
        for bar in view.visible(&bars) {
            let class = classes[if by_kind { bar.kind } else { bar.name } as usize];
            view.bar(svg, bar, class, shown(&names[bar.name as usize]), &|width| {
                cuts.fit(&labels[bar.name as usize], width)
            });
        }
    }))
}

/// Where bands and times stand.
struct View {
    plot: Plot,
    /// Top and row height of each band; `None` = it has no tasks.
    bands: [Option<(f64, f64, usize)>; 3],
    from: i64,
    to: i64,
    tick: Tick,
    /// Pixels that narrow tasks share.
    grain: f64,
}

impl View {
    fn new(bars: &[Bar], top: f64, tick: Tick) -> View {
        let mut y = top;
        let bands = std::array::from_fn(|band| {
            let rows = bars.iter().filter(|bar| bar.band == band).map(|bar| bar.row + 1).max()?;
            let height = (SUBTASKS_HEIGHT / rows as f64).clamp(ROW_MIN, ROW_MAX);
            let first = y;
            y += rows as f64 * height + BETWEEN;
            Some((first, height, rows))
        });
        let from = bars.iter().map(|bar| bar.start).min().unwrap_or(0);
        let to = bars.iter().map(|bar| bar.finish).max().unwrap_or(1).max(from.saturating_add(1));
        let plot = Plot { left: MARGIN + LABELS, right: WIDTH - MARGIN, top, bottom: y };
        let mut view = View { plot, bands, from, to, tick, grain: 1.0 };
        while bars.len() - view.hidden(bars) > BARS_MAX && view.grain < WIDTH {
            view.grain *= 2.0;
        }
        view
    }

    fn x(&self, time: i64) -> f64 {
        let share =
            (i128::from(time) - i128::from(self.from)) as f64 / (i128::from(self.to) - i128::from(self.from)) as f64;
        self.plot.left + share * self.plot.width()
    }

    /// Whether a narrow task stands where one was drawn already.
    fn is_hidden(&self, last: &mut (usize, usize, f64), bar: &Bar) -> bool {
        let (x, end) = (self.x(bar.start), self.x(bar.finish));
        let pixel = |x: f64| (bar.band, bar.row, (x / self.grain).floor());
        let hidden = end - x < 0.7 * self.grain && *last == pixel(x);
        if !hidden {
            *last = pixel(if end - x < 0.7 * self.grain { x } else { end });
        }
        hidden
    }

    fn hidden(&self, bars: &[Bar]) -> usize {
        let mut last = (usize::MAX, 0, 0.0);
        bars.iter().filter(|bar| self.is_hidden(&mut last, bar)).count()
    }

    fn visible<'a>(&'a self, bars: &'a [Bar]) -> impl Iterator<Item = &'a Bar> {
        let mut last = (usize::MAX, 0, 0.0);
        bars.iter().filter(move |bar| !self.is_hidden(&mut last, bar))
    }

    fn frame(&self, svg: &mut Svg) {
        let axis = axis(self.from, self.to, 8, self.tick);
        for ((_, label), (y, height, rows)) in
            BANDS.iter().zip(self.bands).filter_map(|(band, place)| Some((band, place?)))
        {
            let tall = rows as f64 * height;
            svg.bar(
                "band",
                Rectangle { x: self.plot.left, y: y - 2.0, width: self.plot.width(), height: tall + 4.0 },
                "",
            );
            svg.words("ink", self.plot.left - 8.0, y + tall / 2.0 + FONT_SIZE * 0.35, "end", label);
        }
        for (time, label) in &axis.marks {
            let x = self.x(*time);
            svg.line("grid", (x, self.plot.top - 4.0), (x, self.plot.bottom + 2.0));
            svg.words("pale", x, self.plot.bottom + 15.0, "middle", label);
        }
        self.plot.x_title(svg, self.plot.bottom + 31.0, &format!("time since the origin of the run ({})", axis.unit));
    }

    fn bar(&self, svg: &mut Svg, bar: &Bar, class: usize, name: &str, label: &dyn Fn(f64) -> Option<String>) {
        let Some((top, height, _)) = self.bands[bar.band] else { return };
        let (x, end) = (self.x(bar.start), self.x(bar.finish));
        let width = (end - x).max(0.7);
        let drawn = if width > 3.0 { width - 0.5 } else { width };
        let gap = if height >= 6.0 { 1.0 } else { 0.0 };
        let y = top + bar.row as f64 * height;
        let duration = time_text(bar.finish - bar.start, self.tick);
        let share = 100.0 * (bar.finish as f64 - bar.start as f64) / (self.to as f64 - self.from as f64);
        let start = time_text(bar.start, self.tick);
        let tooltip = format!("{name}: {duration} from {start}, {share:.1} % of the time shown");
        svg.bar(&format!("f{class}"), Rectangle { x, y, width: drawn, height: height - gap }, &tooltip);
        if let Some(label) = label(drawn - 6.0).filter(|_| height >= 12.0) {
            svg.words(&format!("t{class}"), x + 3.0, y + height / 2.0 + FONT_SIZE * 0.3, "start", &label);
        }
    }
}
