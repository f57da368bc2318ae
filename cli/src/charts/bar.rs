//! `bar x=<number> y=<text>`: a horizontal bar per row, in the order of the rows, its value at the end.

use super::ChartError;
use super::data::{Data, in_words};
use super::palette::{assign, style};
use super::scale::Scale;
use super::sheet::{LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, counted, hues_legend, shown};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, fitted, text_width};

/// Bars that are drawn.
const BARS_MAX: usize = 60;
const ROW_HEIGHT: f64 = 19.0;
const LABELS_MAX: f64 = 300.0;
/// Room for the value behind the longest bar.
const VALUE_WIDTH: f64 = 76.0;

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let lengths = data.numbers(chart.column("x"))?;
    let labels = data.words_of_first(BARS_MAX, chart.column("y"))?;
    let colours = chart.get("color").map(|column| data.words_of_first(BARS_MAX, ("color", column))).transpose()?;
    let rows = lengths.values.len();
    let drawn = rows.min(BARS_MAX);
    let mut sheet = Sheet::new(
        title,
        format!("{} by {}, {}", in_words(&lengths.name), in_words(&labels.name), counted(rows, "row")),
    );
    if rows == 0 {
        return Ok(sheet.empty("no rows"));
    }
    let values = &lengths.values[..drawn];
    let known = || values.iter().copied().filter(|value| !value.is_nan());
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let scale = Scale::from_zero(lengths.quantity, least, most, 6);

    let classes = colours.as_ref().map(|colours| {
        let mut totals: Vec<(&str, i128)> = colours.words.iter().map(|word| (word.as_str(), 0)).collect();
        for (&code, value) in colours.codes.iter().zip(values) {
            totals[code as usize].1 += value.abs() as i128;
        }
        assign(&totals)
    });
    if let (Some(colours), Some(classes)) = (&colours, &classes) {
        let square = |class| Mark::Square(format!("f{class}"));
        sheet.legend = LegendEntry::flow(hues_legend(&colours.words, classes, |_| String::new(), square));
    }
    if rows > drawn {
        sheet.notes.push(format!("The first {drawn} of {} are drawn.", counted(rows, "row")));
    }
    let missing = values.iter().filter(|value| value.is_nan()).count();
    if missing > 0 {
        sheet.notes.push(format!("{} without a value.", counted(missing, "bar")));
    }

    let label_width = (0..drawn)
        .map(|row| text_width(shown(&labels.words[labels.codes[row] as usize])))
        .fold(0.0, f64::max)
        .min(LABELS_MAX);
    let left_room = if scale.from < 0.0 { VALUE_WIDTH } else { 0.0 };
    let top = sheet.top() + 6.0;
    let plot = Plot {
        left: MARGIN + label_width + 8.0 + left_room,
        right: WIDTH - MARGIN - VALUE_WIDTH,
        top,
        bottom: top + drawn as f64 * ROW_HEIGHT + 4.0,
    };
    Ok(sheet.draw(plot.bottom + 36.0, &style(), |svg| {
        plot.x_axis(svg, &scale);
        plot.x_title(svg, plot.bottom + 33.0, &axis_title(&in_words(&lengths.name), &scale));
        let zero = plot.x(&scale, 0.0);
        for (row, &value) in values.iter().enumerate() {
            let y = plot.top + 3.0 + row as f64 * ROW_HEIGHT;
            let label = shown(&labels.words[labels.codes[row] as usize]);
            let text = lengths.quantity.text(value);
            let base = y + (ROW_HEIGHT - 3.0) / 2.0 + FONT_SIZE * 0.35;
            svg.words("ink", plot.left - left_room - 8.0, base, "end", &fitted(label, LABELS_MAX));
            if value.is_nan() {
                svg.words("pale", zero + 5.0, base, "start", &text);
                continue;
            }
            let end = plot.x(&scale, value);
            let class = classes
                .as_ref()
                .zip(colours.as_ref())
                .map_or(0, |(classes, colours)| classes[colours.codes[row] as usize]);
            let rectangle =
                Rectangle { x: zero.min(end), y, width: (end - zero).abs().max(0.7), height: ROW_HEIGHT - 3.0 };
            svg.bar(&format!("f{class}"), rectangle, &format!("{label}: {text}"));
            let (x, anchor) = if value < 0.0 { (end - 5.0, "end") } else { (end + 5.0, "start") };
            svg.words("pale", x, base, anchor, &text);
        }
    }))
}
