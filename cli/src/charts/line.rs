//! `line x=<number> y=<number> [y2=…] [by=…] [panel=…] [bound=…] [steps=true] [scales=own]`: lines, one per `by`, a field per
//! `panel`.
//!
//! All fields share both scales, so that they can be compared by eye; with `scales=own`, each has its own for y, since counters of
//! cache misses and of bytes have nothing in common. Points are sorted by x; a NULL in y interrupts the
//! line. Where a line has more points than pixels, each pixel column shows its first, least, greatest and last point,
//! which looks the same as drawing all of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::data::{Data, Numbers, Shares, Words, in_words};
use super::label::{fitted_middle, shown};
use super::palette::{Need, PLAIN, style};
use super::scale::{Quantity, Scale};
use super::sheet::{LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, colours_legend, counted, marks_width};
use super::spec::Chart;
use super::svg::{Svg, number};
use super::{ChartError, Names};

/// Fields that are drawn.
const FIELDS_MAX: usize = 24;
/// A line with more points has no dots.
const DOTS_MAX: usize = 60;

const STYLE: &str = "\
.w{stroke-width:1.8;stroke-linejoin:round}.d{stroke-width:1.8;stroke-dasharray:2 3}.a{fill-opacity:.28;stroke:none}\
.no{fill-opacity:0}.u{stroke:#59636e;fill:none}\
.bound{stroke:#cf222e;stroke-width:1.6;stroke-dasharray:7 4;fill:none}
@media (prefers-color-scheme:dark){.no{fill-opacity:0}.u{stroke:#59636e;fill:none}\
.bound{stroke:#ffdf5d}}
";

/// How points become a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Lines,
    /// A point holds until the next one, as the memory that is in use does.
    Held,
    /// A point is the beginning of a stretch that lasts until the next one; the area below is filled.
    Steps,
}

/// The lines of one field, in the order of the legend.
type Field = BTreeMap<usize, Vec<usize>>;

struct Columns {
    x: Numbers,
    y: Numbers,
    y2: Option<Numbers>,
    bound: Option<Numbers>,
    by: Option<Words>,
    panel: Option<Words>,
}

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let shape = if chart.get("steps") == Some("true") { Shape::Held } else { Shape::Lines };
    draw_as(shape, chart, title, data)
}

pub(super) fn draw_as(shape: Shape, chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let columns = Columns {
        x: data.numbers(chart.column("x"))?,
        y: data.numbers(chart.column("y"))?,
        y2: data.numbers_if("y2", chart.get("y2"))?,
        bound: data.numbers_if("bound", chart.get("bound"))?,
        by: data.words_if("by", chart.get("by"))?,
        panel: data.panels(chart.get("panel"))?,
    };
    let mut sheet = Sheet::new(title, columns.subtitle());
    let known = columns.x.values.iter().filter(|x| !x.is_nan()).count();
    if known == 0 {
        return Ok(sheet.empty(if columns.x.values.is_empty() { "no rows" } else { "no row has an x" }));
    }
    if known < columns.x.values.len() {
        let missing = columns.x.values.len() - known;
        sheet.notes.push(format!("{} without {} left out.", counted(missing, "row"), columns.x.name));
    }
    let (classes, totals) = match &columns.by {
        Some(by) => by.classes(data.names, &columns.y.values, Need::Any),
        None => (vec![PLAIN], Vec::new()),
    };
    sheet.legend = LegendEntry::flow(columns.legend(data.names, &classes, &totals));
    let mut fields = columns.fields();
    if fields.len() > FIELDS_MAX {
        sheet.notes.push(format!(
            "Not drawn: {} of {}.",
            counted(fields.len() - FIELDS_MAX, "further value"),
            chart.get("panel").unwrap_or_default()
        ));
        fields.truncate(FIELDS_MAX);
    }
    let has_own_scales = chart.get("scales") == Some("own");
    let picture = Picture::new(shape, has_own_scales, &columns, classes, &fields, sheet.top());
    if picture.is_crowded(&fields) {
        sheet.notes.push(match shape {
            Shape::Lines | Shape::Held => {
                "More points than pixels: each pixel shows the range of its points.".to_owned()
            }
            Shape::Steps => "More stretches than pixels: each pixel shows the mean of its stretches.".to_owned(),
        });
    }
    Ok(sheet.draw(picture.bottom, &format!("{}{STYLE}", style()), |svg| picture.draw(svg, &fields)))
}

impl Columns {
    /// Room for the titles of the axes above a field, where their usual line has the name of the field.
    fn axis_titles(&self) -> f64 {
        if self.panel.is_some() { 15.0 } else { 0.0 }
    }

    fn subtitle(&self) -> String {
        let mut text = in_words(&self.y.name);
        for name in self.y2.iter().chain(&self.bound).map(|numbers| &numbers.name) {
            let _ = write!(text, ", {}", in_words(name));
        }
        let _ = write!(text, " over {}", in_words(&self.x.name));
        for name in self.by.iter().chain(&self.panel).map(|words| &words.name) {
            let _ = write!(text, ", per {}", in_words(name));
        }
        let _ = write!(text, ", {}", counted(self.x.values.len(), "row"));
        text
    }

    fn legend(&self, names: &Names, classes: &[usize], totals: &[f64]) -> Vec<(Mark, String)> {
        let line = |class| Mark::Line(format!("s{class} w"));
        let plain = || line(PLAIN.to_string());
        let mut entries = match (&self.by, &self.y2) {
            (Some(by), _) => colours_legend(by, names, classes, totals, line),
            (None, Some(_)) => vec![(plain(), format!("{} (left)", in_words(&self.y.name)))],
            (None, None) if self.bound.is_some() => vec![(plain(), in_words(&self.y.name))],
            (None, None) => Vec::new(),
        };
        if let Some(y2) = &self.y2 {
            let mark = if self.by.is_some() { "u d" } else { "s1 d" };
            entries.push((Mark::Line(mark.to_owned()), format!("{} (right)", in_words(&y2.name))));
        }
        if let Some(bound) = &self.bound {
            entries.push((Mark::Line("bound".to_owned()), in_words(&bound.name)));
        }
        entries
    }

    /// The rows of each line of each field, sorted by x.
    fn fields(&self) -> Vec<(String, Field)> {
        let order = |words: &Words| {
            let mut place = vec![0usize; words.words.len()];
            for (index, code) in words.in_order().into_iter().enumerate() {
                place[code as usize] = index;
            }
            place
        };
        let panels = self.panel.as_ref().map(order).unwrap_or_default();
        let mut fields: BTreeMap<usize, (String, Field)> = BTreeMap::new();
        for (row, _) in self.x.values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            let line = self.by.as_ref().map_or(0, |by| by.codes[row] as usize);
            let (place, name) = match &self.panel {
                Some(panel) => (panels[panel.codes[row] as usize], panel.words[panel.codes[row] as usize].as_str()),
                None => (0, ""),
            };
            let (_, field) = fields.entry(place).or_insert_with(|| (name.to_owned(), Field::new()));
            field.entry(line).or_default().push(row);
        }
        for rows in fields.values_mut().flat_map(|(_, field)| field.values_mut()) {
            rows.sort_by(|&a, &b| self.x.values[a].total_cmp(&self.x.values[b]));
        }
        fields.into_values().collect()
    }

    fn name_of(&self, line: usize) -> &str {
        self.by.as_ref().map_or("", |by| shown(&by.words[line]))
    }
}

/// Where fields stand, and their scales.
struct Picture<'a> {
    shape: Shape,
    columns: &'a Columns,
    classes: Vec<usize>,
    x: Scale,
    /// By field.
    y: Vec<Scale>,
    y2: Option<Scale>,
    plots: Vec<Plot>,
    bottom: f64,
}

impl<'a> Picture<'a> {
    fn new(
        shape: Shape,
        has_own_scales: bool,
        columns: &'a Columns,
        classes: Vec<usize>,
        fields: &[(String, Field)],
        top: f64,
    ) -> Picture<'a> {
        let (across, height) = match fields.len() {
            0 | 1 => (1, 320.0),
            2 => (2, 250.0),
            3 | 4 => (2, 210.0),
            _ => (3, 160.0),
        };
        let extent_of = |fields: &[(String, Field)], values: &[f64]| {
            fields
                .iter()
                .flat_map(|(_, field)| field.values().flatten().copied())
                .map(|row| values[row])
                .filter(|value| !value.is_nan())
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
        };
        let extent = |values: &[f64]| extent_of(fields, values);
        let marks = if height > 200.0 { 6 } else { 4 };
        let scale_of = |fields: &[(String, Field)]| {
            let (mut least, mut most) = extent_of(fields, &columns.y.values);
            if let Some(bound) = &columns.bound {
                let (bound_least, bound_most) = extent_of(fields, &bound.values);
                (least, most) = (least.min(bound_least), most.max(bound_most));
            }
            if shape == Shape::Steps {
                let is_share = columns.y.quantity == Quantity::Number;
                (least, most) = (least.min(0.0), if is_share { most.max(1.0) } else { most });
            }
            value_scale(columns.y.quantity, least, most, marks)
        };
        let y: Vec<Scale> = match has_own_scales {
            true => fields.chunks(1).map(scale_of).collect(),
            false => vec![scale_of(fields); fields.len()],
        };
        let y2 = columns.y2.as_ref().map(|numbers| {
            let (least, most) = extent(&numbers.values);
            value_scale(numbers.quantity, least, most, marks)
        });
        let (x_least, mut x_most) = extent(&columns.x.values);
        if shape == Shape::Steps {
            let widths = fields.iter().flat_map(|(_, field)| field.values());
            let last = |rows: &Vec<usize>| last_end(rows, &columns.x.values);
            x_most = widths.map(last).fold(x_most, f64::max);
        }
        let left_room = y.iter().map(marks_width).fold(0.0, f64::max) + 10.0;
        let right_room = y2.as_ref().map_or(0.0, |y2| marks_width(y2) + 12.0);
        const BETWEEN: f64 = 22.0;
        let field_width = (WIDTH - 2.0 * MARGIN - (across - 1) as f64 * BETWEEN) / across as f64;
        let x_marks = ((field_width / 110.0) as usize).max(3);
        let x = Scale::within(columns.x.quantity, x_least, x_most, x_marks);
        let title_room = 26.0;
        let below = 24.0;
        let top = top + columns.axis_titles();
        let mut plots = Vec::new();
        for index in 0..fields.len() {
            let left = MARGIN + (index % across) as f64 * (field_width + BETWEEN) + left_room;
            let top = top + (index / across) as f64 * (height + title_room + below) + title_room;
            let right = left - left_room + field_width - right_room - 4.0;
            plots.push(Plot { left, right, top, bottom: top + height });
        }
        let bottom = plots.last().map_or(top, |plot| plot.bottom) + below + 14.0;
        Picture { shape, columns, classes, x, y, y2, plots, bottom }
    }

    fn is_crowded(&self, fields: &[(String, Field)]) -> bool {
        let width = self.plots.first().map_or(1.0, Plot::width);
        fields.iter().flat_map(|(_, field)| field.values()).any(|rows| is_crowded(rows.len(), width))
    }

    fn draw(&self, svg: &mut Svg, fields: &[(String, Field)]) {
        let Columns { x, y, y2, bound, panel, .. } = self.columns;
        for (index, (((name, field), plot), y_scale)) in fields.iter().zip(&self.plots).zip(&self.y).enumerate() {
            plot.x_axis(svg, &self.x);
            plot.y_axis(svg, y_scale);
            if let Some(y2) = &self.y2 {
                plot.right_axis(svg, y2);
            }
            if panel.is_some() {
                let name = fitted_middle(shown(name), plot.width());
                svg.words("ink bold", plot.left + plot.width() / 2.0, plot.top - 8.0, "middle", &name);
            }
            if index == 0 {
                let base = plot.top - 8.0 - self.columns.axis_titles();
                svg.words("pale", MARGIN, base, "start", &axis_title(&in_words(&y.name), y_scale));
                if let (Some(y2), Some(scale)) = (y2, &self.y2) {
                    svg.words("pale", WIDTH - MARGIN, base, "end", &axis_title(&in_words(&y2.name), scale));
                }
            }
            if y_scale.unit != self.y[0].unit {
                svg.words("pale", plot.left, plot.top - 8.0, "start", y_scale.unit);
            }
            for (&line, rows) in field {
                if self.shape == Shape::Steps {
                    let area = self.path(rows, &y.values, y_scale, plot, true);
                    svg.path(&format!("f{} a", self.classes[line]), &area, "");
                }
                let path = self.path(rows, &y.values, y_scale, plot, false);
                svg.path(&format!("s{} w", self.classes[line]), &path, &self.range(line, rows, y));
                if let (Some(y2), Some(scale)) = (y2, &self.y2) {
                    let class = if self.columns.by.is_some() { self.classes[line] } else { 1 };
                    let path = self.path(rows, &y2.values, scale, plot, false);
                    svg.path(&format!("s{class} d"), &path, &self.range(line, rows, y2));
                }
            }
            if let Some(bound) = bound {
                let mut paths: Vec<String> =
                    field.values().map(|rows| self.path(rows, &bound.values, y_scale, plot, false)).collect();
                paths.dedup();
                for path in paths {
                    svg.path("bound", &path, &in_words(&bound.name));
                }
            }
            for (&line, rows) in field {
                self.dots(svg, line, rows, y, y_scale, self.classes[line], plot);
                if let (Some(y2), Some(scale)) = (y2, &self.y2) {
                    let class = if self.columns.by.is_some() { self.classes[line] } else { 1 };
                    self.dots(svg, line, rows, y2, scale, class, plot);
                }
            }
        }
        if let Some(last) = self.plots.last() {
            let title = axis_title(&in_words(&x.name), &self.x);
            let middle = if self.plots.len() == 1 { last.left + last.width() / 2.0 } else { WIDTH / 2.0 };
            svg.words("pale", middle, self.bottom - 4.0, "middle", &title);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a dot is, and where")]
    fn dots(&self, svg: &mut Svg, line: usize, rows: &[usize], y: &Numbers, scale: &Scale, class: usize, plot: &Plot) {
        let x = &self.columns.x;
        if rows.len() > DOTS_MAX {
            return;
        }
        let shares = Shares::of(y, rows.iter().map(|&row| y.values[row])).of_largest();
        for &row in rows.iter().filter(|&&row| !y.values[row].is_nan()) {
            let place = (plot.x(&self.x, x.values[row]), plot.y(scale, y.values[row]));
            let name = self.columns.name_of(line);
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            let tooltip = format!(
                "{name}{} {} at {} {}",
                in_words(&y.name),
                y.quantity.text(y.values[row]),
                in_words(&x.name),
                x.quantity.text(x.values[row])
            ) + &shares.text(y.values[row]);
            // Steps are seen without dots, but have their tooltips.
            let class = if self.shape == Shape::Steps { "no".to_owned() } else { format!("f{class}") };
            svg.dot(&class, place, 2.6, &tooltip);
        }
    }

    /// The tooltip of a line: its name, and the least and the greatest value.
    fn range(&self, line: usize, rows: &[usize], y: &Numbers) -> String {
        let known = rows.iter().map(|&row| y.values[row]).filter(|value| !value.is_nan());
        let (least, most) =
            known.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        let (name, text) = (self.columns.name_of(line), |value: f64| y.quantity.text(value));
        let of = if name.is_empty() { String::new() } else { format!("{name}: ") };
        match least <= most {
            true => format!("{of}{} from {} to {}", in_words(&y.name), text(least), text(most)),
            false => format!("{of}{}", in_words(&y.name)),
        }
    }

    /// A line, or with `closed` the area below it.
    fn path(&self, rows: &[usize], values: &[f64], y: &Scale, plot: &Plot, closed: bool) -> String {
        let point = |row: usize| (plot.x(&self.x, self.columns.x.values[row]), plot.y(y, values[row]));
        let mut points: Vec<(f64, f64)> = rows.iter().map(|&row| point(row)).collect();
        let crowded = is_crowded(points.len(), plot.width());
        match self.shape {
            Shape::Lines | Shape::Held => {
                if crowded {
                    points = ranges(&points);
                }
                if self.shape == Shape::Held {
                    let end = points.last().map_or(plot.right, |(x, _)| *x);
                    points = steps(&points, end);
                }
            }
            Shape::Steps => {
                if crowded {
                    points = means(&points);
                }
                let end = plot.x(&self.x, last_end(rows, &self.columns.x.values)).min(plot.right);
                points = steps(&points, end);
            }
        }
        let ground = plot.y(y, 0.0).clamp(plot.top, plot.bottom);
        let mut path = String::new();
        for piece in points.split(|(_, y)| y.is_nan()).filter(|piece| !piece.is_empty()) {
            if closed {
                let _ = write!(path, "M{} {}L", number(piece[0].0), number(ground));
            } else {
                path.push('M');
            }
            for (index, (x, y)) in piece.iter().enumerate() {
                if index > 0 {
                    path.push(if closed || index > 1 { ' ' } else { 'L' });
                }
                let _ = write!(path, "{} {}", tenth(*x), tenth(*y));
            }
            if closed {
                let _ = write!(path, " {} {}Z", tenth(piece[piece.len() - 1].0), number(ground));
            } else if piece.len() == 1 {
                path.push_str("h1");
            }
        }
        path
    }
}

/// A scale for lines: with 0 where that does not hide the differences.
fn value_scale(quantity: Quantity, least: f64, most: f64, wanted: usize) -> Scale {
    if least > 0.0 && least > 0.6 * most {
        Scale::around(quantity, least, most, wanted)
    } else {
        Scale::from_zero(quantity, least, most, wanted)
    }
}

fn is_crowded(points: usize, width: f64) -> bool {
    points as f64 > 2.0 * width
}

/// Where the last stretch ends: it is as long as the one before.
fn last_end(rows: &[usize], x: &[f64]) -> f64 {
    match rows {
        [.., before, last] => 2.0 * x[*last] - x[*before],
        [only] => x[*only],
        [] => f64::NEG_INFINITY,
    }
}

/// First, least, largest and last point of each pixel column.
fn ranges(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let known: Vec<(f64, f64)> = column.iter().copied().filter(|(_, y)| !y.is_nan()).collect();
        let (Some(first), Some(last)) = (known.first(), known.last()) else {
            kept.extend(column.first());
            continue;
        };
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (least, most) = (known.iter().min_by(by_y).unwrap_or(first), known.iter().max_by(by_y).unwrap_or(last));
        let mut four = vec![*first, *least, *most, *last];
        four[1..3].sort_by(|a, b| a.0.total_cmp(&b.0));
        four.dedup();
        kept.append(&mut four);
    }
    kept
}

/// The mean of each pixel column.
fn means(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |column: &[(f64, f64)]| {
        let known: Vec<f64> = column.iter().map(|(_, y)| *y).filter(|y| !y.is_nan()).collect();
        let mean = if known.is_empty() { f64::NAN } else { known.iter().sum::<f64>() / known.len() as f64 };
        (column[0].0, mean)
    };
    points.chunk_by(|a, b| a.0.floor() == b.0.floor()).map(column).collect()
}

/// Two points for each: where its stretch begins and where it ends.
fn steps(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let ends = points.iter().skip(1).map(|(x, _)| *x).chain([end]);
    points.iter().zip(ends).flat_map(|(&(x, y), end)| [(x, y), (end, y)]).collect()
}

fn tenth(value: f64) -> String {
    number((value * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use tq_udfs::ticks::Tick;

    use super::*;

    #[test]
    fn a_pixel_keeps_what_can_be_seen() {
        let points = [(0.1, 5.0), (0.2, 1.0), (0.3, 9.0), (0.4, 5.0), (0.5, 6.0), (1.5, 2.0)];
        assert_eq!(ranges(&points), [(0.1, 5.0), (0.2, 1.0), (0.3, 9.0), (0.5, 6.0), (1.5, 2.0)]);
        assert_eq!(means(&points)[0], (0.1, 5.2));
    }

    #[test]
    fn a_value_that_holds_has_no_slopes() {
        let batch = RecordBatch::try_from_iter([
            ("time", Arc::new(Int64Array::from(vec![0, 4_000, 6_000])) as ArrayRef),
            ("bytes", Arc::new(Int64Array::from(vec![0, 100, 50])) as ArrayRef),
        ])
        .unwrap();
        let schema = batch.schema();
        let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &Names::default() };
        let line = Chart::parse("line x=time y=bytes steps=true").unwrap();
        let svg = line.draw("memory", &data).unwrap();
        let path = svg.split("<path class=\"s").nth(1).and_then(|path| path.split(" d=\"M").nth(1)).unwrap();
        let points: Vec<f64> =
            path.split('"').next().unwrap().split([' ', 'L']).map(|number| number.parse().unwrap()).collect();
        let places: Vec<(f64, f64)> = points.chunks(2).map(|place| (place[0], place[1])).collect();
        assert!(places.windows(2).all(|ends| ends[0].0 == ends[1].0 || ends[0].1 == ends[1].1), "{places:?}");
    }

    #[test]
    fn a_stretch_lasts_until_the_next() {
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 3.0)], 4.0), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (4.0, 3.0)]);
        assert_eq!(last_end(&[0, 1], &[2.0, 5.0]), 8.0);
    }
}
