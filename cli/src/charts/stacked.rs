//! `stacked x=<category> y=<number> color=<text> [relative=true] [panel=<text>]`: a column per x, stacked from the y of
//! each color.
//!
//! Rows of one x, color and panel are summed. All panels share their categories and one scale. The color with the largest sum is at
//! the bottom of every column; negative values are below zero. Where there are more columns than fit, several are drawn as one,
//! with their mean.

use std::collections::HashMap;

use super::ChartError;
use super::data::{Data, Words, in_words};
use super::label::fitted_middle;
use super::palette::{HUES, style};
use super::scale::{Quantity, Scale, grouped};
use super::sheet::{
    Categories, LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, counted, hues_legend, marks_width, shown,
};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, text_width};

/// The height of the columns, and where there are several panels.
const HEIGHT: [f64; 2] = [300.0, 150.0];
const PANELS_MAX: usize = 12;
/// Room for the name of a panel.
const NAME: f64 = 26.0;
const COLUMNS_MAX: usize = 320;
const COLUMN_WIDTH_MAX: f64 = 64.0;

/// A column: per class of colour what it sums up to.
type Column = [f64; HUES + 1];

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let categories = data.words(chart.column("x"))?;
    let heights = data.numbers(chart.column("y"))?;
    let colours = data.words(chart.column("color"))?;
    let panels = data.words_if("panel", chart.get("panel"))?.filter(Words::are_several);
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
    let (classes, totals) = colours.classes(data.names, &counted_values);
    let square = |class| Mark::Square(format!("f{class}"));
    sheet.legend = LegendEntry::flow(hues_legend(&colours.labels, &classes, &totals, true, square));
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
    let drawn = panel_order.len().min(PANELS_MAX);
    let (height, name_height) = if panels.is_some() { (HEIGHT[1], NAME) } else { (HEIGHT[0], 0.0) };
    let top = sheet.top() + 24.0;
    let left = MARGIN + marks_width(&scale) + 10.0;
    let room = WIDTH - MARGIN - left;
    let step = (room / labels.len() as f64).min(COLUMN_WIDTH_MAX * 1.3);
    let right = left + step * labels.len() as f64;
    let plots: Vec<Plot> = (0..drawn)
        .map(|index| {
            let top = top + name_height + index as f64 * (height + name_height);
            Plot { left, right, top, bottom: top + height }
        })
        .collect();
    let bottom = top + drawn as f64 * (height + name_height);
    let names = Categories::new(&labels, step, categories.are_numbers());
    let names_height = names.height();
    let mut by_class: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, &class) in classes.iter().enumerate() {
        by_class.entry(class).or_default().push(index);
    }
    let class_name = |class: usize| match by_class.get(&class).map(Vec::as_slice) {
        Some([one]) => shown(&colours.words[*one]).to_owned(),
        Some(several) => format!("{} others", grouped(several.len() as u64)),
        None => String::new(),
    };
    Ok(sheet.draw(bottom + names_height + 20.0, &style(), |svg| {
        // Above the name of the first panel.
        let titled = Plot { top, ..plots[0] };
        titled.y_title(svg, &axis_title(&in_words(&heights.name), &scale));
        let gap = if step >= 6.0 { (step * 0.15).min(10.0) } else { 0.0 };
        for (plot, &panel) in plots.iter().zip(&panel_order) {
            if let Some(panels) = &panels {
                svg.words(
                    "ink bold",
                    left,
                    plot.top - 8.0,
                    "start",
                    &fitted_middle(&panels.labels[panel as usize], room),
                );
            }
            Plot { right: WIDTH - MARGIN, ..*plot }.y_axis(svg, &scale);
            for (index, column) in columns_of[panel as usize].iter().enumerate() {
                let x = plot.left + index as f64 * step + gap / 2.0;
                let (mut up, mut down) = (0.0, 0.0);
                let whole: f64 = column.iter().map(|part| part.abs()).sum();
                for (class, part) in
                    upwards.iter().map(|&class| (class, column[class])).filter(|(_, part)| *part != 0.0)
                {
                    let from = if part > 0.0 { &mut up } else { &mut down };
                    let (a, b) = (plot.y(&scale, *from), plot.y(&scale, *from + part));
                    *from += part;
                    let height = (a - b).abs();
                    if height < 0.05 {
                        continue;
                    }
                    // Shares of one column with as many digits each.
                    let text = if relative { format!("{part:.1} %") } else { quantity.text(part) };
                    let share = match relative {
                        true => String::new(),
                        false => format!(", {:.1} % of its column", 100.0 * part.abs() / whole),
                    };
                    let tooltip = format!("{}, {}: {text}{share}", labels[index], class_name(class));
                    let rectangle = Rectangle { x, y: a.min(b), width: step - gap, height };
                    svg.bar(&format!("f{class}"), rectangle, &tooltip);
                    if height >= FONT_SIZE + 3.0 && text_width(&text) + 4.0 <= step - gap {
                        let base = a.min(b) + height / 2.0 + FONT_SIZE * 0.35;
                        svg.words(&format!("t{class}"), x + (step - gap) / 2.0, base, "middle", &text);
                    }
                }
            }
        }
        names.draw(svg, bottom, |index| left + (index as f64 + 0.5) * step);
        plots[0].x_title(svg, bottom + names_height + 14.0, &in_words(&categories.name));
    }))
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
