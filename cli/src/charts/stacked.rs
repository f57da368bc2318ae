//! `stacked x=<category> y=<number> color=<text> [relative=true] [panel=<text>]`: a column per x, stacked from the y of
//! each color.
//!
//! Rows of one x, color and panel are summed. All panels share their categories and one scale. The color with the largest sum is at
//! the bottom of every column; negative values are below zero. Where there are more columns than fit, several are drawn as one,
//! with their mean; of names in no order, the first ones are drawn, so that each has its label. Few columns lie below each other, so that they fill the width and their names have room; times never do.

use std::collections::HashMap;

use super::ChartError;
use super::data::{Data, Words, in_words, natural};
use super::label::{fitted_apart, fitted_middle, shown};
use super::palette::{HUES, Need, style};
use super::scale::{Quantity, Scale, grouped};
use super::sheet::{
    Categories, LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, counted, hues_legend, marks_width,
};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, text_width};

/// The height of the columns, and where there are several panels.
const HEIGHT: [f64; 2] = [300.0, 150.0];
const PANELS_MAX: usize = 12;
/// Room for the name of a panel.
const NAME: f64 = 26.0;
const COLUMNS_MAX: usize = 320;
/// Columns of names that stand in the order of their rows: neighbours have nothing in common.
const NAMES_MAX: usize = 60;
/// The distance of columns that stand; so few that they would not fill the width lie instead.
const STEP_MAX: f64 = 83.2;

/// A column: per class of colour what it sums up to.
type Column = [f64; HUES + 1];

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let categories = data.words(chart.column("x"))?;
    let heights = data.numbers(chart.column("y"))?;
    let colours = data.words(chart.column("color"))?;
    let panels = data.panels(chart.get("panel"))?;
    let relative = chart.flag("relative");
    let subtitle = format!(
        "{}{} by {} and {}{}, {}",
        if relative { "share of " } else { "" },
        in_words(&heights.name),
        in_words(&categories.name),
        in_words(&colours.name),
        panels.as_ref().map(|panels| format!(", per {}", in_words(&panels.name))).unwrap_or_default(),
        counted(heights.values.len(), "row")
    );
    let mut sheet = Sheet::new(title, subtitle);
    if heights.values.is_empty() {
        return Ok(sheet.empty("no rows"));
    }

    let counts = |value: f64| !(value.is_nan() || relative && value < 0.0);
    let left_out = heights.values.iter().filter(|value| !counts(**value)).count();
    let counted_values: Vec<f64> =
        heights.values.iter().map(|&value| if counts(value) { value } else { f64::NAN }).collect();
    let (classes, totals) = colours.classes(data.names, &counted_values, Need::Any);
    let square = |class| Mark::Square(format!("f{class}"));
    // A share of several panels together is true of none of them.
    let is_one = panels.as_ref().is_none_or(|panels| panels.words.len() < 2);
    sheet.legend = LegendEntry::flow(hues_legend(&colours.labels, &classes, &totals, is_one, square));
    // The color with the most lies at the bottom, what has no hue at the top.
    let mut class_totals = [0.0; HUES + 1];
    classes.iter().zip(&totals).for_each(|(&class, total)| class_totals[class] += total);
    let mut upwards: Vec<usize> = (0..=HUES).collect();
    upwards.sort_by(|&a, &b| (a == HUES).cmp(&(b == HUES)).then(class_totals[b].total_cmp(&class_totals[a])));

    let order = categories.in_order_within(&colours.codes);
    let mut place = vec![0usize; order.len()];
    for (index, &code) in order.iter().enumerate() {
        place[code as usize] = index;
    }
    let panel_order = panels.as_ref().map_or_else(|| vec![0], Words::in_order);
    let mut columns_of: Vec<Vec<Column>> = vec![vec![[0.0; HUES + 1]; order.len()]; panel_order.len()];
    for (row, &value) in heights.values.iter().enumerate() {
        if value >= 0.0 || (value < 0.0 && !relative) {
            let panel = panels.as_ref().map_or(0, |panels| panels.codes[row] as usize);
            let (category, colour) = (categories.codes[row] as usize, colours.codes[row] as usize);
            columns_of[panel][place[category]][classes[colour]] += value;
        }
    }
    let mut labels: Vec<String> = order.iter().map(|&code| categories.labels[code as usize].clone()).collect();
    let is_sorted = || order.is_sorted_by_key(|&code| natural(&categories.words[code as usize]));
    let have_order = categories.are_on_a_scale() || is_sorted();
    if !have_order && labels.len() > NAMES_MAX {
        sheet.notes.push(format!(
            "The first {NAMES_MAX} of {} are drawn; {} more follow.",
            counted(labels.len(), "column"),
            labels.len() - NAMES_MAX
        ));
        labels.truncate(NAMES_MAX);
        columns_of.iter_mut().for_each(|columns| columns.truncate(NAMES_MAX));
    }
    let merged = labels.len().div_ceil(COLUMNS_MAX);
    if merged > 1 {
        columns_of.iter_mut().for_each(|columns| *columns = together(columns, merged));
        labels = labels.chunks(merged).map(|group| group[0].clone()).collect();
        sheet.notes.push(format!("Each column is the mean of {merged} neighbouring values of {}.", categories.name));
    }
    if left_out > 0 {
        let why = if relative { "without a value or with a negative one" } else { "without a value" };
        sheet.notes.push(format!("{} {why} left out.", counted(left_out, "row")));
    }
    if relative {
        for column in columns_of.iter_mut().flatten() {
            let sum: f64 = column.iter().sum();
            if sum > 0.0 {
                column.iter_mut().for_each(|part| *part *= 100.0 / sum);
            }
        }
    }
    let quantity = if relative { Quantity::Percent } else { heights.quantity };
    let above = |column: &Column| column.iter().filter(|part| **part > 0.0).sum::<f64>();
    let below = |column: &Column| column.iter().filter(|part| **part < 0.0).sum::<f64>();
    let columns = || columns_of.iter().flatten();
    // Shares that are rounded to four digits may add up to a bit more than 1; a picture shows no difference.
    let most = if relative { 100.0 } else { columns().map(above).fold(0.0, f64::max) * (1.0 - 2e-4) };
    let scale = Scale::from_zero(quantity, columns().map(below).fold(0.0, f64::min), most, 6);

    if panel_order.len() > PANELS_MAX {
        sheet.notes.push(format!("Not drawn: {}.", counted(panel_order.len() - PANELS_MAX, "further panel")));
    }
    let mut by_class: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, &class) in classes.iter().enumerate() {
        by_class.entry(class).or_default().push(index);
    }
    let class_name = |class: usize| match by_class.get(&class).map(Vec::as_slice) {
        Some([one]) => shown(&colours.words[*one]).to_owned(),
        Some(several) => format!("{} others", grouped(several.len() as u64)),
        None => String::new(),
    };
    let panel_name = |panel: u32| panels.as_ref().map(|panels| panels.labels[panel as usize].clone());
    let mut stacks = Stacks {
        panels: panel_order
            .iter()
            .take(PANELS_MAX)
            .map(|&panel| (panel_name(panel), std::mem::take(&mut columns_of[panel as usize])))
            .collect(),
        labels,
        class_names: (0..=HUES).map(class_name).collect(),
        upwards,
        heights_title: axis_title(&in_words(&heights.name), &scale),
        categories_title: in_words(&categories.name),
        scale,
        quantity,
        relative,
    };
    // Times go from left to right, however few there are.
    let lies = !categories.are_times && stacks.labels.len() as f64 * STEP_MAX < stacks.room();
    if lies && categories.are_on_a_scale() {
        // No axis says what these numbers are.
        stacks.labels.iter_mut().for_each(|label| *label = format!("{} {label}", stacks.categories_title));
    }
    Ok(if lies { stacks.lying(&sheet) } else { stacks.standing(&sheet, categories.are_on_a_scale()) })
}

/// What is drawn.
struct Stacks {
    /// The name of each panel, where there are several, and its columns, as many as there are labels.
    panels: Vec<(Option<String>, Vec<Column>)>,
    labels: Vec<String>,
    /// By class.
    class_names: Vec<String>,
    /// The classes from the zero outwards.
    upwards: Vec<usize>,
    heights_title: String,
    categories_title: String,
    scale: Scale,
    quantity: Quantity,
    relative: bool,
}

/// A part of a column.
struct Part {
    class: usize,
    /// Between what values it stands; the first is the one nearer to zero.
    from: f64,
    to: f64,
    text: String,
    tooltip: String,
}

impl Stacks {
    /// Where columns begin when they stand.
    fn left(&self) -> f64 {
        MARGIN + marks_width(&self.scale) + 10.0
    }

    /// How much room there is for columns that stand.
    fn room(&self) -> f64 {
        WIDTH - MARGIN - self.left()
    }

    /// The parts of a column, from the zero outwards.
    fn parts(&self, index: usize, column: &Column) -> Vec<Part> {
        let (mut up, mut down) = (0.0, 0.0);
        let whole: f64 = column.iter().map(|part| part.abs()).sum();
        let there = self.upwards.iter().map(|&class| (class, column[class])).filter(|(_, part)| *part != 0.0);
        there
            .map(|(class, part)| {
                let end = if part > 0.0 { &mut up } else { &mut down };
                let from = *end;
                *end += part;
                // Shares of one column with as many digits each.
                let text = if self.relative { format!("{part:.1} %") } else { self.quantity.text(part) };
                let share = match self.relative {
                    true => String::new(),
                    false => format!(", {:.1} % of its column", 100.0 * part.abs() / whole),
                };
                let tooltip = format!("{}, {}: {text}{share}", self.labels[index], self.class_names[class]);
                Part { class, from, to: *end, text, tooltip }
            })
            .collect()
    }

    /// Columns beside each other.
    fn standing(&self, sheet: &Sheet, ordered: bool) -> String {
        let named = self.panels.iter().any(|(name, _)| name.is_some());
        let (height, name_height) = if named { (HEIGHT[1], NAME) } else { (HEIGHT[0], 0.0) };
        let top = sheet.top() + 24.0;
        let step_of = |left: f64| ((WIDTH - MARGIN - left) / self.labels.len() as f64).min(STEP_MAX);
        let names_of = |left: f64| Categories::new(&self.labels, step_of(left), ordered);
        // The first names reach to the left of their columns.
        let left = self.left().max(MARGIN + names_of(self.left()).reach(step_of(self.left())));
        let (step, names) = (step_of(left), names_of(left));
        let right = left + step * self.labels.len() as f64;
        let plots: Vec<Plot> = (0..self.panels.len())
            .map(|index| {
                let top = top + name_height + index as f64 * (height + name_height);
                Plot { left, right, top, bottom: top + height }
            })
            .collect();
        let bottom = top + self.panels.len() as f64 * (height + name_height);
        let names_height = names.height();
        sheet.draw(bottom + names_height + 20.0, &style(), |svg| {
            // Above the name of the first panel.
            let titled = Plot { top, ..plots[0] };
            titled.y_title(svg, &self.heights_title);
            let gap = if step >= 6.0 { (step * 0.15).min(10.0) } else { 0.0 };
            for (plot, (name, columns)) in plots.iter().zip(&self.panels) {
                if let Some(name) = name {
                    svg.words("ink bold", left, plot.top - 8.0, "start", &fitted_middle(name, WIDTH - MARGIN - left));
                }
                Plot { right: WIDTH - MARGIN, ..*plot }.y_axis(svg, &self.scale);
                for (index, column) in columns.iter().enumerate() {
                    let x = plot.left + index as f64 * step + gap / 2.0;
                    for part in self.parts(index, column) {
                        let (a, b) = (plot.y(&self.scale, part.from), plot.y(&self.scale, part.to));
                        let height = (a - b).abs();
                        if height < 0.05 {
                            continue;
                        }
                        let rectangle = Rectangle { x, y: a.min(b), width: step - gap, height };
                        svg.bar(&format!("f{}", part.class), rectangle, &part.tooltip);
                        if height >= FONT_SIZE + 3.0 && text_width(&part.text) + 4.0 <= step - gap {
                            let base = a.min(b) + height / 2.0 + FONT_SIZE * 0.35;
                            svg.words(&format!("t{}", part.class), x + (step - gap) / 2.0, base, "middle", &part.text);
                        }
                    }
                }
            }
            names.draw(svg, bottom, |index| left + (index as f64 + 0.5) * step);
            plots[0].x_title(svg, bottom + names_height + 14.0, &self.categories_title);
        })
    }

    /// Columns below each other, which fill the width where there are few.
    fn lying(&self, sheet: &Sheet) -> String {
        const ROW: f64 = 26.0;
        const GAP: f64 = 4.0;
        const LABEL_MAX: f64 = 260.0;
        let labels = fitted_apart(&self.labels, LABEL_MAX);
        let widest = labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
        let left = MARGIN + widest + 8.0;
        let is_there = |column: &Column| column.iter().any(|part| *part != 0.0);
        let mut top = sheet.top() + 6.0;
        // Of several panels, each has the columns that something is in.
        let panels: Vec<(Plot, Option<&String>, Vec<usize>)> = (self.panels.iter())
            .map(|(name, columns)| {
                let rows = (0..columns.len()).filter(|&index| name.is_none() || is_there(&columns[index]));
                let rows: Vec<usize> = rows.collect();
                top += if name.is_some() { NAME - 6.0 } else { 0.0 };
                let bottom = top + rows.len() as f64 * ROW;
                let plot = Plot { left, right: WIDTH - MARGIN - 20.0, top, bottom };
                top = bottom + 6.0;
                (plot, name.as_ref(), rows)
            })
            .collect();
        let bottom = top - 6.0;
        sheet.draw(bottom + 36.0, &style(), |svg| {
            let axis = Plot { bottom, ..panels[0].0 };
            axis.x_axis(svg, &self.scale);
            axis.x_title(svg, bottom + 33.0, &self.heights_title);
            for ((plot, name, rows), (_, columns)) in panels.iter().zip(&self.panels) {
                if let Some(name) = name {
                    svg.words("ink bold", left, plot.top - 5.0, "start", &fitted_middle(name, plot.width()));
                }
                for (place, &index) in rows.iter().enumerate() {
                    let (y, height) = (plot.top + place as f64 * ROW + GAP / 2.0, ROW - GAP);
                    let base = y + height / 2.0 + FONT_SIZE * 0.35;
                    svg.words("ink", left - 8.0, base, "end", &labels[index]);
                    for part in self.parts(index, &columns[index]) {
                        let (a, b) = (plot.x(&self.scale, part.from), plot.x(&self.scale, part.to));
                        let width = (b - a).abs();
                        if width < 0.05 {
                            continue;
                        }
                        let rectangle = Rectangle { x: a.min(b), y, width, height };
                        svg.bar(&format!("f{}", part.class), rectangle, &part.tooltip);
                        if text_width(&part.text) + 6.0 <= width {
                            svg.words(&format!("t{}", part.class), a.min(b) + width / 2.0, base, "middle", &part.text);
                        }
                    }
                }
            }
        })
    }
}

/// Neighbours as their mean.
fn together(columns: &[Column], merged: usize) -> Vec<Column> {
    let mean = |group: &[Column]| {
        let mut mean = [0.0; HUES + 1];
        for column in group {
            for (sum, part) in mean.iter_mut().zip(column) {
                *sum += part / group.len() as f64;
            }
        }
        mean
    };
    columns.chunks(merged).map(mean).collect()
}
