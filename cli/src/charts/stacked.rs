//! `stacked x=<category> y=<number> color=<text> [relative=true] [panel=<text>]`: a column per x, made of y per color.
//!
//! Rows of one x, color and panel are summed. All panels share their categories and one scale. The color with the most lies at the bottom of every column; negative values stand
//! below zero. More columns than there is room for are drawn together, several as their mean.

use std::collections::HashMap;

use super::ChartError;
use super::data::{Data, Words, in_words};
use super::palette::{HUES, assign, style};
use super::scale::{Quantity, Scale, grouped};
use super::sheet::{
    Categories, LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, counted, hues_legend, marks_width, shown,
};
use super::spec::Chart;
use super::svg::{Rectangle, fitted};

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

    let mut totals = vec![0.0; colours.words.len()];
    let mut left_out = 0usize;
    for (&code, &value) in colours.codes.iter().zip(&heights.values) {
        if value.is_nan() || (relative && value < 0.0) {
            left_out += 1;
        } else {
            totals[code as usize] += value.abs();
        }
    }
    let largest = totals.iter().copied().fold(0.0, f64::max);
    // Totals of any size as whole numbers: only their order counts.
    let whole = |total: f64| if largest > 0.0 { (total / largest * 1e15) as i128 } else { 0 };
    let ranked: Vec<(&str, i128)> =
        colours.words.iter().map(String::as_str).zip(totals.iter().map(|&total| whole(total))).collect();
    let classes = assign(&ranked);
    let sum: f64 = totals.iter().sum();
    let share = |index: usize| if sum > 0.0 { format!(" {:.1} %", 100.0 * totals[index] / sum) } else { String::new() };
    let square = |class| Mark::Square(format!("f{class}"));
    sheet.legend = LegendEntry::flow(hues_legend(&colours.words, &classes, share, square));

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
    let mut labels: Vec<String> = order.iter().map(|&code| categories.words[code as usize].clone()).collect();
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
    let most = if relative { 100.0 } else { columns().map(above).fold(0.0, f64::max) };
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
                    &fitted(shown(&panels.words[panel as usize]), room),
                );
            }
            Plot { right: WIDTH - MARGIN, ..*plot }.y_axis(svg, &scale);
            for (index, column) in columns_of[panel as usize].iter().enumerate() {
                let x = plot.left + index as f64 * step + gap / 2.0;
                let (mut up, mut down) = (0.0, 0.0);
                for (class, &part) in column.iter().enumerate().filter(|(_, part)| **part != 0.0) {
                    let from = if part > 0.0 { &mut up } else { &mut down };
                    let (a, b) = (plot.y(&scale, *from), plot.y(&scale, *from + part));
                    *from += part;
                    let height = (a - b).abs();
                    if height < 0.05 {
                        continue;
                    }
                    let tooltip = format!("{}, {}: {}", shown(&labels[index]), class_name(class), quantity.text(part));
                    let rectangle = Rectangle { x, y: a.min(b), width: step - gap, height };
                    svg.bar(&format!("f{class}"), rectangle, &tooltip);
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
