//! `bar x=<number> y=<text> [color=<text>] [most=20]`: a horizontal bar per row, in the order of the rows, its value at the end.
//!
//! Task names have fixed colours. Where `color` distinguishes runs, the bars of a name are adjacent; of two runs the first is
//! paler.

use super::ChartError;
use super::data::{Data, Shares, Words, in_words};
use super::label::{fitted_apart, shown};
use super::palette::{HUES, Need, PLAIN, style};
use super::scale::{Scale, grouped};
use super::sheet::{LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, colours_legend, counted, grey_note};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, text_width};

/// Bars that are drawn, unless the chart says how many (`most`).
const BARS_MAX: usize = 60;
const ROW_HEIGHT: f64 = 19.0;
const LABELS_MAX: f64 = 400.0;

const STYLE: &str = ".before{fill-opacity:.5}\n";

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let most_bars = chart.get("most").and_then(|most| most.parse().ok()).unwrap_or(BARS_MAX);
    let lengths = data.numbers(chart.column("x"))?;
    let labels = data.words_of_first(most_bars, chart.column("y"))?;
    let colours = chart.get("color").map(|column| data.words_of_first(most_bars, ("color", column))).transpose()?;
    let only_run = colours.as_ref().filter(|words| words.name == "run" && words.words.len() == 1);
    let only_run = only_run.filter(|_| data.names.runs.len() > 1).map(|words| words.labels[0].clone());
    let colours = colours.filter(Words::are_several);
    let rows = lengths.values.len();
    let drawn = rows.min(most_bars);
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

    let runs = colours.as_ref().filter(|colours| colours.name == "run");
    // In the order in which they were opened: a name that only the second one has may come first.
    let mut in_order: Vec<usize> = (0..runs.map_or(0, |runs| runs.words.len())).collect();
    in_order.sort_by_key(|&code| runs.map(|runs| data.names.place_of_run(&runs.words[code])));
    let mut places = vec![0; in_order.len()];
    in_order.iter().enumerate().for_each(|(place, &code)| places[code] = place);
    let place = |code: u32| places[code as usize];
    let mut order: Vec<usize> = (0..drawn).collect();
    if let Some(runs) = runs {
        let mut first = vec![usize::MAX; labels.words.len()];
        for row in 0..drawn {
            let place = &mut first[labels.codes[row] as usize];
            *place = row.min(*place);
        }
        order.sort_by_key(|&row| (first[labels.codes[row] as usize], place(runs.codes[row]), row));
    }
    let is_paired = runs.is_some_and(|runs| runs.words.len() == 2);
    let square = |class| Mark::Square(format!("f{class}"));
    let classes: Vec<String> = match &colours {
        Some(colours) if !is_paired => {
            let (classes, totals) = colours.classes(data.names, values, Need::Any);
            sheet.legend = LegendEntry::flow(colours_legend(colours, data.names, &classes, &totals, square));
            colours.codes.iter().map(|&code| format!("f{}", classes[code as usize])).collect()
        }
        _ => {
            let classes = match labels.are_names() {
                true => labels.classes(data.names, values, Need::Labelled).0,
                false => vec![PLAIN; labels.words.len()],
            };
            sheet.notes.extend(grey_note(classes.iter().copied(), "name"));
            let pale = |row: usize| {
                if is_paired && colours.as_ref().is_some_and(|runs| place(runs.codes[row]) == 0) {
                    " before"
                } else {
                    ""
                }
            };
            if let Some(runs) = runs {
                // The shades alone tell runs apart: names have hues of their own.
                let hue = if labels.are_names() { HUES } else { PLAIN };
                let entry = |(place, &code): (usize, &usize)| {
                    (square(format!("{hue}{}", if place == 0 { " before" } else { "" })), runs.labels[code].clone())
                };
                sheet.legend = LegendEntry::flow(in_order.iter().enumerate().map(entry).collect());
            }
            (0..drawn).map(|row| format!("f{}{}", classes[labels.codes[row] as usize], pale(row))).collect()
        }
    };
    if rows > drawn {
        sheet.notes.push(format!(
            "The first {drawn} of {} are drawn; {} more follow.",
            counted(rows, "row"),
            grouped((rows - drawn) as u64)
        ));
    }
    let what = if rows > drawn { "that is drawn" } else { "of it" };
    sheet.notes.extend(only_run.map(|run| format!("All {what} is of {run}.")));
    let missing = values.iter().filter(|value| value.is_nan()).count();
    if missing > 0 {
        sheet.notes.push(format!("{} without a value.", counted(missing, "bar")));
    }

    let texts = fitted_apart(&labels.labels, LABELS_MAX);
    let label_width = labels.codes.iter().map(|&code| text_width(&texts[code as usize])).fold(0.0, f64::max);
    // Room for the values behind the bars.
    let value_width = known().map(|value| text_width(&lengths.quantity.text(value))).fold(30.0, f64::max) + 10.0;
    let left_room = if scale.from < 0.0 { value_width } else { 0.0 };
    let top = sheet.top() + 6.0;
    let plot = Plot {
        left: MARGIN + label_width + 8.0 + left_room,
        right: WIDTH - MARGIN - value_width,
        top,
        bottom: top + drawn as f64 * ROW_HEIGHT + 4.0,
    };
    let shares = Shares::of(&lengths, lengths.values.iter().copied());
    Ok(sheet.draw(plot.bottom + 36.0, &format!("{}{STYLE}", style()), |svg| {
        plot.x_axis(svg, &scale);
        plot.x_title(svg, plot.bottom + 33.0, &axis_title(&in_words(&lengths.name), &scale));
        let zero = plot.x(&scale, 0.0);
        for (place, &row) in order.iter().enumerate() {
            let (code, value) = (labels.codes[row] as usize, values[row]);
            let y = plot.top + 3.0 + place as f64 * ROW_HEIGHT;
            let text = lengths.quantity.text(value);
            let base = y + (ROW_HEIGHT - 3.0) / 2.0 + FONT_SIZE * 0.35;
            // Runs of one name share its label.
            if place == 0 || runs.is_none() || labels.codes[order[place - 1]] as usize != code {
                svg.words("ink", plot.left - left_room - 8.0, base, "end", &texts[code]);
            }
            if value.is_nan() {
                svg.words("pale above", zero + 5.0, base, "start", &text);
                continue;
            }
            let end = plot.x(&scale, value);
            let rectangle =
                Rectangle { x: zero.min(end), y, width: (end - zero).abs().max(0.7), height: ROW_HEIGHT - 3.0 };
            let of =
                colours.as_ref().map(|colours| format!(", {}", shown(&colours.words[colours.codes[row] as usize])));
            let name = shown(&labels.words[code]);
            let tooltip = format!("{name}{}: {text}{}", of.unwrap_or_default(), shares.text(value));
            svg.bar(&classes[row], rectangle, &tooltip);
            let (x, anchor) = if value < 0.0 { (end - 5.0, "end") } else { (end + 5.0, "start") };
            svg.words("pale above", x, base, anchor, &text);
        }
    }))
}
