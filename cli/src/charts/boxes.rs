//! `box x=<category> y=<number> [color=<text>] [scale=log]`: quartiles, whiskers and outliers of raw values.
//!
//! The box reaches from the first to the third quartile with a line at the median (linear interpolation between order statistics,
//! as R's type 7 and NumPy have it); whiskers reach to the last values within 1.5 times the height of the box (Tukey), what lies
//! beyond is an outlier. Outliers that share a pixel are drawn as one dot. Without `scale`, the axis is logarithmic where half of the
//! boxes or more would be flat on a linear one; values of zero or less are drawn at its lower end, and count as all others do. With
//! `color`, a box has the colour of the text in its first row.

use super::ChartError;
use super::data::{Data, Words, in_words};
use super::label::shown;
use super::palette::{Need, PLAIN, style};
use super::scale::{Quantity, Scale};
use super::sheet::{
    Categories, LegendEntry, MARGIN, Mark, Plot, Sheet, WIDTH, axis_title, colours_legend, counted, grey_note,
    marks_width, rule,
};
use super::spec::Chart;
use super::svg::{Rectangle, Svg, number};

const HEIGHT: f64 = 340.0;
const BOXES_MAX: usize = 60;
const BOX_WIDTH_MAX: f64 = 72.0;

const STYLE: &str = ".q{fill-opacity:.45}.m{stroke-width:2.4}.k{stroke-width:1.2}.o{fill-opacity:.55}\n";

/// Values of a category in five numbers.
#[derive(Debug, PartialEq)]
struct Summary {
    count: usize,
    low: f64,
    first: f64,
    median: f64,
    third: f64,
    high: f64,
    /// Beyond the whiskers, ascending.
    outliers: Vec<f64>,
}

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let categories = data.words(chart.column("x"))?;
    let values = data.numbers(chart.column("y"))?;
    let is_log = values.values.iter().any(|&value| value > 0.0)
        && match chart.get("scale") {
            Some(scale) => scale == "log",
            None => are_flat(&categories, &values.values),
        };
    let subtitle = format!(
        "{} by {}, {}{}; box: quartiles, line: median, whiskers: 1.5 × the box",
        in_words(&values.name),
        in_words(&categories.name),
        counted(values.values.len(), "row"),
        if is_log { ", logarithmic scale" } else { "" }
    );
    let mut sheet = Sheet::new(title, subtitle);
    let mut by_category: Vec<Vec<f64>> = vec![Vec::new(); categories.words.len()];
    let (mut missing, mut without_log) = (0, 0);
    for (&code, &value) in categories.codes.iter().zip(&values.values) {
        if value.is_nan() {
            missing += 1;
        } else {
            without_log += usize::from(is_log && value <= 0.0);
            by_category[code as usize].push(value);
        }
    }
    let mut order = categories.in_order();
    order.retain(|&code| !by_category[code as usize].is_empty());
    if order.is_empty() {
        return Ok(sheet.empty("no values"));
    }
    if order.len() > BOXES_MAX {
        sheet.notes.push(format!("The first {BOXES_MAX} of {} values of {} are drawn.", order.len(), categories.name));
        order.truncate(BOXES_MAX);
    }
    if missing > 0 {
        sheet.notes.push(format!("{} without a value.", counted(missing, "row")));
    }
    if without_log > 0 {
        sheet.notes.push(format!(
            "Drawn at the lower end of the logarithmic axis: {} of zero or less.",
            counted(without_log, "value")
        ));
    }
    let colours = chart.get("color").map(|column| data.words(("color", column))).transpose()?;
    let classes = match colours.filter(Words::are_several) {
        Some(colours) => {
            let (of_colours, totals) = colours.classes(data.names, &values.values, Need::Any);
            let square = |class| Mark::Square(format!("f{class}"));
            sheet.legend = LegendEntry::flow(colours_legend(&colours, data.names, &of_colours, &totals, square));
            let mut classes = vec![PLAIN; categories.words.len()];
            // Backwards, so that the first row of a box decides.
            for (&code, &colour) in categories.codes.iter().zip(&colours.codes).rev() {
                classes[code as usize] = of_colours[colour as usize];
            }
            classes
        }
        None => {
            let classes = match categories.are_names() {
                true => categories.classes(data.names, &values.values, Need::Labelled).0,
                false => vec![PLAIN; categories.words.len()],
            };
            sheet.notes.extend(grey_note(order.iter().map(|&code| classes[code as usize]), "name"));
            classes
        }
    };
    let boxes: Vec<(usize, Summary)> =
        order.iter().map(|&code| (code as usize, summary(std::mem::take(&mut by_category[code as usize])))).collect();
    let all: usize = boxes.iter().map(|(_, summary)| summary.count).sum();
    let scale = scale_of(&boxes, values.quantity, is_log);
    let at = |value: f64| match (is_log, value > 0.0) {
        (true, true) => value.log10(),
        (true, false) => scale.from,
        (false, _) => value,
    };

    let top = sheet.top() + 22.0;
    let labels: Vec<String> = boxes.iter().map(|(code, _)| categories.labels[*code].clone()).collect();
    let step_of = |left: f64| (WIDTH - MARGIN - left) / boxes.len() as f64;
    let names_of = |left: f64| Categories::new(&labels, step_of(left), categories.are_on_a_scale());
    let left = MARGIN + marks_width(&scale) + 10.0;
    // The first names reach to the left of their boxes.
    let left = left.max(MARGIN + names_of(left).reach(step_of(left)));
    let (step, names) = (step_of(left), names_of(left));
    let plot = Plot { left, right: left + step * boxes.len() as f64, top, bottom: top + HEIGHT };
    let names_height = names.height();
    let wide = Plot { right: WIDTH - MARGIN, ..plot };
    Ok(sheet.draw(plot.bottom + names_height + 20.0, &format!("{}{STYLE}", style()), |svg| {
        wide.y_axis(svg, &scale);
        plot.y_title(svg, &axis_title(&in_words(&values.name), &scale));
        let width = (step * 0.6).min(BOX_WIDTH_MAX);
        for (index, (code, summary)) in boxes.iter().enumerate() {
            let (name, class) = (&categories.words[*code], classes[*code]);
            let middle = plot.left + (index as f64 + 0.5) * step;
            let place = Place { middle, width, y: &|value| plot.y(&scale, at(value)) };
            draw_box(svg, summary, &place, class, |value| values.quantity.text(value), shown(name), all);
        }
        names.draw(svg, plot.bottom, |index| plot.left + (index as f64 + 0.5) * step);
        plot.x_title(svg, plot.bottom + names_height + 14.0, &in_words(&categories.name));
    }))
}

/// The axis of all boxes. What has no logarithm counts as a value, but does not stretch it.
fn scale_of(boxes: &[(usize, Summary)], quantity: Quantity, is_log: bool) -> Scale {
    let least_drawn = |(_, summary): &(usize, Summary)| {
        let of_boxes = [summary.low, summary.first, summary.median, summary.third, summary.high];
        let is_drawn = |value: &f64| !is_log || *value > 0.0;
        of_boxes.into_iter().chain(summary.outliers.iter().copied()).filter(is_drawn).fold(f64::INFINITY, f64::min)
    };
    let highest =
        |(_, summary): &(usize, Summary)| summary.outliers.last().copied().unwrap_or(summary.high).max(summary.high);
    let least = boxes.iter().map(least_drawn).fold(f64::INFINITY, f64::min);
    let most = boxes.iter().map(highest).fold(f64::NEG_INFINITY, f64::max);
    if is_log { Scale::log(quantity, least, most) } else { Scale::from_zero(quantity, least, most, 7) }
}

/// Where a box stands.
struct Place<'a> {
    middle: f64,
    width: f64,
    /// The height of a value.
    y: &'a dyn Fn(f64) -> f64,
}

/// Draws the box of a category: `all` is the number of values of all boxes.
fn draw_box(
    svg: &mut Svg,
    summary: &Summary,
    place: &Place<'_>,
    class: usize,
    text: impl Fn(f64) -> String,
    name: &str,
    all: usize,
) {
    let &Place { middle, width, y } = place;
    let (from, to) = (middle - width / 2.0, middle + width / 2.0);
    let tooltip = format!(
        "{name}: median {}, quartiles {} and {}, whiskers {} and {}, {}, {}, {:.1} % of all",
        text(summary.median),
        text(summary.first),
        text(summary.third),
        text(summary.low),
        text(summary.high),
        counted(summary.outliers.len(), "outlier"),
        counted(summary.count, "value"),
        100.0 * summary.count as f64 / all as f64
    );
    let outline_class = format!("s{class} k");
    for (end, side) in [(summary.low, summary.first), (summary.high, summary.third)] {
        rule(svg, &outline_class, (middle, y(side)), (middle, y(end)), &tooltip);
        rule(svg, &outline_class, (middle - width / 4.0, y(end)), (middle + width / 4.0, y(end)), &tooltip);
    }
    let height = (y(summary.first) - y(summary.third)).max(1.0);
    let rectangle = Rectangle { x: from, y: y(summary.third), width, height };
    svg.bar(&format!("f{class} q"), rectangle, &tooltip);
    let [x, top, across, down] = [from, rectangle.y, width, height].map(number);
    svg.path(&outline_class, &format!("M{x} {top}h{across}v{down}h-{across}Z"), &tooltip);
    rule(svg, &format!("s{class} m"), (from, y(summary.median)), (to, y(summary.median)), &tooltip);
    let mut last = f64::NAN;
    for &outlier in &summary.outliers {
        let place = y(outlier).round();
        if place == last {
            continue;
        }
        let times = match summary.median > 0.0 {
            true => format!(", {:.1} times the median", outlier / summary.median),
            false => String::new(),
        };
        svg.dot(&format!("f{class} o"), (middle, place), 2.2, &format!("{name}: {}{times}", text(outlier)));
        last = place;
    }
}

/// Whether at least half of the boxes would be flat on a linear scale, and nine of ten values have a logarithm.
fn are_flat(categories: &Words, values: &[f64]) -> bool {
    let mut by_category: Vec<Vec<f64>> = vec![Vec::new(); categories.words.len()];
    let mut positive = 0;
    for (&code, &value) in categories.codes.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
        by_category[code as usize].push(value);
        positive += usize::from(value > 0.0);
    }
    let known: usize = by_category.iter().map(Vec::len).sum();
    let most = by_category.iter().flatten().copied().fold(0.0, f64::max);
    by_category.retain(|values| !values.is_empty());
    by_category.truncate(BOXES_MAX);
    let count = by_category.len();
    let is_flat = |summary: &Summary| (summary.third - summary.first) / most * HEIGHT < 3.0;
    let flat = by_category.into_iter().map(summary).filter(is_flat).count();
    most > 0.0 && known > 3 && positive * 10 >= known * 9 && flat * 2 >= count
}

/// The summary of values; there is at least one, and none is NaN.
fn summary(mut values: Vec<f64>) -> Summary {
    values.sort_unstable_by(f64::total_cmp);
    let [first, median, third] = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
    let reach = 1.5 * (third - first);
    let inside = |value: &&f64| (first - reach..=third + reach).contains(*value);
    let low = values.iter().find(inside).copied().unwrap_or(first);
    let high = values.iter().rev().find(inside).copied().unwrap_or(third);
    let outliers = values.iter().copied().filter(|value| !(first - reach..=third + reach).contains(value)).collect();
    // With few values, an interpolated quartile may lie beyond the last value within the whiskers' reach.
    Summary { count: values.len(), low: low.min(first), first, median, third, high: high.max(third), outliers }
}

/// The value below which `share` of the sorted values lie, by linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_numpy() {
        let summary = summary(vec![10.0, 1.0, 2.0, 3.0, 4.0, 100.0]);
        // numpy.percentile([1, 2, 3, 4, 10, 100], [25, 50, 75]) = 2.25, 3.5, 8.5
        assert_eq!((summary.first, summary.median, summary.third), (2.25, 3.5, 8.5));
        assert_eq!((summary.low, summary.high, summary.outliers.as_slice()), (1.0, 10.0, [100.0].as_slice()));
    }

    #[test]
    fn one_value_is_a_box_of_its_own() {
        let summary = summary(vec![7.0]);
        assert_eq!((summary.low, summary.median, summary.high, summary.outliers.len()), (7.0, 7.0, 7.0, 0));
    }
}
