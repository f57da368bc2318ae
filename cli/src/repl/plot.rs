//! `\plot`: an answer as bars or as a line, in text.
//!
//! ```text
//! gemm  ████████████████████████▌  1.24 ms
//! trsm  ████▏                       201 µs
//! ```

use std::collections::HashSet;
use std::fmt::Write;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use tq_engine::queries::Chart;
use tq_udfs::ticks::Tick;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::shown::LastAnswer;
use crate::errors::{Failure, Problem, did_you_mean};
use crate::output::Cells;
use crate::output::cells::Kind;
use crate::text::visible::visible;

/// Bars that are drawn.
const BARS_MAX: usize = 40;
const LABEL_MAX: usize = 36;
/// Rows of a line chart.
const HEIGHT: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Bars,
    Line,
}

/// The words for the numbers that a saved query's picture shows; empty where text has no such picture.
pub(super) fn words_of(chart: &Chart) -> String {
    let column = |key: &str| chart.options.iter().find(|(name, _)| name == key).map(|(_, column)| column.as_str());
    match (chart.kind.as_str(), column("x"), column("y")) {
        (_, Some(x), Some(y)) if x.starts_with('$') || y.starts_with('$') => String::new(),
        (kind @ ("bar" | "line"), Some(x), Some(y)) => format!("{kind} x={x} y={y}"),
        // A bar for each part: the texts that tell them apart stand beside it.
        ("stacked", Some(_), Some(y)) => format!("bar x={y}"),
        _ => String::new(),
    }
}

/// The picture. `words`: `[bar|line] [x=COLUMN] [y=COLUMN]` as in a chart line, where a bar's length is `x` and a line's height `y`;
/// what is not said is chosen by the columns, and where nothing is said, the picture of the saved query that was answered.
pub(super) fn draw(last: &LastAnswer, words: &str, width: usize, tick: Tick) -> Result<String, Failure> {
    let mut shape = None;
    let (mut x, mut y) = (None, None);
    let words = if words.trim().is_empty() { last.picture.as_str() } else { words };
    for word in words.split_whitespace() {
        match word.split_once('=') {
            None if word == "bar" => shape = Some(Shape::Bars),
            None if word == "line" => shape = Some(Shape::Line),
            Some(("x", column)) => x = Some(find(last, column)?),
            Some(("y", column)) => y = Some(find(last, column)?),
            _ => {
                return Err(Problem::new(format!("`\\plot` does not know `{word}`"))
                    .hint("it is written `\\plot`, `\\plot line`, `\\plot bar x=total y=name`")
                    .into());
            }
        }
    }
    let kinds: Vec<Kind> = last.schema.fields().iter().map(|field| Kind::of(field)).collect();
    // Where only one of them has numbers, that is the one to draw, whichever way round they are given.
    let has_numbers = |column: Option<usize>| column.is_some_and(|column| kinds[column].is_right());
    let is_bar = shape == Some(Shape::Bars) || (shape.is_none() && y.is_some() && !has_numbers(y));
    let (mut label, mut value) = if is_bar { (y, x) } else { (x, y) };
    if value.is_some() && !has_numbers(value) && has_numbers(label) {
        (label, value) = (value, label);
    }
    let value = match value.or_else(|| most_telling(last, &kinds, label)) {
        Some(value) if kinds[value].is_right() => value,
        Some(value) => {
            return Err(Problem::new(format!("`{}` has no numbers to draw", last.schema.field(value).name())).into());
        }
        None => return Err(Problem::new("the last answer has no column of numbers").into()),
    };
    let batch = concat_batches(&last.schema, &last.batches)?;
    if batch.num_rows() == 0 {
        return Ok("no rows\n".to_owned());
    }
    let mut labels: Vec<usize> = label.into_iter().collect();
    if labels.is_empty() && shape != Some(Shape::Line) {
        let texts = (0..kinds.len()).filter(|&column| column != value && kinds[column] == Kind::Text);
        labels = telling_apart(&batch, texts.collect(), tick)?;
    }
    if labels.is_empty() {
        labels.extend((0..kinds.len()).find(|&column| column != value && kinds[column].is_right()));
    }
    let by_number = labels.first().is_some_and(|&label| kinds[label].is_right());
    let shape = shape.unwrap_or(if by_number && batch.num_rows() > 3 { Shape::Line } else { Shape::Bars });
    let drawing = Drawing { batch: &batch, value, labels, width, tick };
    match shape {
        Shape::Bars => drawing.bars(last.rows),
        Shape::Line => drawing.line(),
    }
}

fn find(last: &LastAnswer, column: &str) -> Result<usize, Failure> {
    let names: Vec<&str> = last.schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.iter().position(|name| *name == column).ok_or_else(|| {
        let near = did_you_mean(column, names.iter().copied());
        Problem::new(format!("the last answer has no column `{column}`{near}"))
            .hint(format!("it has {}", names.join(", ")))
            .into()
    })
}

/// The last time that something took where texts stand beside it, else the last number: what a query computes comes behind what it groups by,
/// and counts and shares behind the times that they are of.
fn most_telling(last: &LastAnswer, kinds: &[Kind], label: Option<usize>) -> Option<usize> {
    let is_length = |column: &usize| {
        let name = last.schema.field(*column).name();
        kinds[*column] == Kind::Time && (name == "duration" || name.ends_with("_time"))
    };
    let numbers = || (0..kinds.len()).filter(|&column| Some(column) != label && kinds[column].is_right());
    let times = kinds.contains(&Kind::Text).then(|| numbers().rfind(is_length));
    times.flatten().or_else(|| numbers().next_back())
}

/// The first column whose texts differ in all bars; where there is none, all that have more than one text.
fn telling_apart(batch: &RecordBatch, columns: Vec<usize>, tick: Tick) -> Result<Vec<usize>, Failure> {
    let rows = batch.num_rows().min(BARS_MAX);
    let cells = Cells::new(batch)?;
    let mut varying = Vec::new();
    for &column in &columns {
        let texts = (0..rows).map(|row| cells.shown(column, row, tick)).collect::<Result<HashSet<_>, _>>()?;
        match texts.len() {
            all if all == rows => return Ok(vec![column]),
            2.. => varying.push(column),
            _ => {}
        }
    }
    Ok(if varying.is_empty() { columns.into_iter().take(1).collect() } else { varying })
}

struct Drawing<'a> {
    batch: &'a RecordBatch,
    value: usize,
    /// What tells the bars apart; of a line the first, which is its `x` where it has numbers.
    labels: Vec<usize>,
    width: usize,
    tick: Tick,
}

impl Drawing<'_> {
    fn bars(&self, all: usize) -> Result<String, Failure> {
        let rows = self.batch.num_rows().min(BARS_MAX);
        let cells = Cells::new(self.batch)?;
        let values = self.numbers(self.value)?;
        let shown = |column: usize, row: usize| -> Result<String, Failure> {
            Ok(cells.shown(column, row, self.tick)?.unwrap_or_else(|| "NULL".to_owned()))
        };
        let mut labels = Vec::new();
        let mut texts = Vec::new();
        for row in 0..rows {
            let words = self.labels.iter().map(|&label| shown(label, row)).collect::<Result<Vec<_>, _>>()?;
            labels.push(cut(&words.join(" ")));
            texts.push(shown(self.value, row)?);
        }
        let widest = |texts: &[String]| texts.iter().map(|text| text.width()).max().unwrap_or(0);
        let (label_width, text_width) = (widest(&labels), widest(&texts));
        let room = self.width.saturating_sub(label_width + text_width + 5).max(10);
        let most = values[..rows].iter().copied().filter(|value| !value.is_nan()).map(f64::abs).fold(0.0, f64::max);
        let mut text = self.title();
        for row in 0..rows {
            let share = if most > 0.0 && !values[row].is_nan() { values[row].abs() / most } else { 0.0 };
            let bar = bar(share, room, values[row] < 0.0);
            let label = format!("{}{}", labels[row], " ".repeat(label_width - labels[row].width()));
            let value = format!("{}{}", " ".repeat(text_width - texts[row].width()), texts[row]);
            let _ = writeln!(text, "{label}  {value}  {bar}");
        }
        if all > rows {
            let _ = writeln!(text, "({rows} of {all} rows)");
        }
        Ok(text)
    }

    /// Braille dots: two across and four down in a character.
    fn line(&self) -> Result<String, Failure> {
        let ys = self.numbers(self.value)?;
        let along = self.labels.first().copied().filter(|&x| Kind::of(self.batch.schema().field(x)).is_right());
        let xs = match along {
            Some(x) => self.numbers(x)?,
            None => (0..ys.len()).map(|row| row as f64).collect(),
        };
        let mut points: Vec<(f64, f64)> =
            xs.into_iter().zip(ys).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else {
            return Ok("no values\n".to_owned());
        };
        let (least, most) = points
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (_, y)| (least.min(*y), most.max(*y)));
        let (top, bottom) = (self.text(self.value, most), self.text(self.value, least.min(0.0)));
        let margin = top.width().max(bottom.width());
        let columns = self.width.saturating_sub(margin + 3).clamp(10, 160);
        let mut canvas = Canvas::new(columns, HEIGHT);
        let floor = least.min(0.0);
        let x_of = |x: f64| scaled(x, first.0, last.0, columns * 2 - 1);
        let y_of = |y: f64| HEIGHT * 4 - 1 - scaled(y, floor, most, HEIGHT * 4 - 1);
        for pair in points.windows(2) {
            canvas.stroke((x_of(pair[0].0), y_of(pair[0].1)), (x_of(pair[1].0), y_of(pair[1].1)));
        }
        if points.len() == 1 {
            canvas.dot(x_of(first.0), y_of(first.1));
        }
        let mut text = self.title();
        for (row, line) in canvas.lines().into_iter().enumerate() {
            let mark = if row == 0 {
                &top
            } else if row + 1 == HEIGHT {
                &bottom
            } else {
                ""
            };
            let _ = writeln!(text, "{}{mark} ┤{}", " ".repeat(margin - mark.width()), line.trim_end());
        }
        if let Some(x) = along {
            let (from, to) = (self.text(x, first.0), self.text(x, last.0));
            let gap = columns.saturating_sub(from.width() + to.width()).max(1);
            let _ = writeln!(text, "{}{from}{}{to}", " ".repeat(margin + 2), " ".repeat(gap));
        }
        Ok(text)
    }

    fn title(&self) -> String {
        let schema = self.batch.schema();
        let name = schema.field(self.value).name();
        let labels: Vec<&str> = self.labels.iter().map(|&label| schema.field(label).name().as_str()).collect();
        if labels.is_empty() { format!("{name}\n") } else { format!("{name} by {}\n", labels.join(" and ")) }
    }

    /// A number as the column shows it.
    fn text(&self, column: usize, value: f64) -> String {
        match Kind::of(self.batch.schema().field(column)) {
            Kind::Time => tq_udfs::ticks::mean_time_text(value, self.tick),
            _ if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
            _ => format!("{value:.4}"),
        }
    }

    fn numbers(&self, column: usize) -> Result<Vec<f64>, Failure> {
        let doubles = cast(self.batch.column(column), &DataType::Float64)?;
        let doubles = doubles.as_primitive::<Float64Type>();
        Ok((0..doubles.len()).map(|row| if doubles.is_valid(row) { doubles.value(row) } else { f64::NAN }).collect())
    }
}

/// A bar in eighths of a character; negative ones are hollow.
fn bar(share: f64, room: usize, negative: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * (room * 8) as f64).round() as usize;
    if negative {
        return "░".repeat(eighths.div_ceil(8));
    }
    // What is there shows at least a hair.
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn cut(label: &str) -> String {
    let label = visible(label);
    if label.width() <= LABEL_MAX {
        return label.into_owned();
    }
    let mut kept = String::new();
    for c in label.chars() {
        if kept.width() + c.width().unwrap_or(0) + 1 > LABEL_MAX {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

fn scaled(value: f64, from: f64, to: f64, most: usize) -> usize {
    if to <= from {
        return 0;
    }
    (((value - from) / (to - from)) * most as f64).round() as usize
}

struct Canvas {
    columns: usize,
    cells: Vec<u8>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Canvas {
        Canvas { columns, cells: vec![0; columns * rows] }
    }

    fn dot(&mut self, x: usize, y: usize) {
        const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell |= DOTS[x % 2][y % 4];
        }
    }

    fn stroke(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        for step in 0..=steps {
            let at = |a: usize, b: usize| (a * (steps - step) + b * step + steps / 2) / steps;
            self.dot(at(from.0, to.0), at(from.1, to.1));
        }
    }

    fn lines(&self) -> Vec<String> {
        let character =
            |cell: &u8| if *cell == 0 { ' ' } else { char::from_u32(0x2800 + u32::from(*cell)).unwrap_or(' ') };
        self.cells.chunks(self.columns).map(|row| row.iter().map(character).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
    use expect_test::expect;

    use super::*;

    fn answer(columns: Vec<(&str, ArrayRef)>) -> LastAnswer {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        LastAnswer { schema: batch.schema(), rows: batch.num_rows(), batches: vec![batch], picture: String::new() }
    }

    #[test]
    fn bars_stand_beside_their_values() {
        let answer = answer(vec![
            ("name", Arc::new(StringArray::from(vec![Some("gemm"), Some("trsm"), None])) as ArrayRef),
            ("duration", Arc::new(Int64Array::from(vec![Some(1_240_000), Some(201_000), None]))),
        ]);
        let text = draw(&answer, "", 40, Tick::Nanosecond).unwrap();
        expect![[r#"
            duration by name
            gemm  1.24 ms  ████████████████████████
            trsm   201 µs  ███▉
            NULL     NULL  
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn the_picture_of_a_saved_query_is_drawn_where_nothing_is_said() {
        let words = |kind: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(key, column)| ((*key).to_owned(), (*column).to_owned())).collect();
            words_of(&Chart { kind: kind.to_owned(), options, line: 1 })
        };
        assert_eq!(words("line", &[("x", "time"), ("y", "value"), ("color", "run")]), "line x=time y=value");
        assert_eq!(words("stacked", &[("x", "device"), ("y", "total"), ("color", "part")]), "bar x=total");
        assert_eq!(words("heatmap", &[("x", "a"), ("y", "b"), ("value", "c")]), "");
        assert_eq!(words("bar", &[("x", "$metric"), ("y", "b")]), "");
        let mut answer = answer(vec![
            ("total", Arc::new(Int64Array::from(vec![3])) as ArrayRef),
            ("count", Arc::new(Int64Array::from(vec![7]))),
        ]);
        answer.picture = "bar x=total y=count".to_owned();
        assert!(draw(&answer, "", 40, Tick::Nanosecond).unwrap().starts_with("total by count"));
        assert!(draw(&answer, "bar x=count", 40, Tick::Nanosecond).unwrap().starts_with("count by total"));
    }

    #[test]
    fn bars_are_named_by_what_tells_them_apart() {
        let texts = |texts: [&'static str; 4]| Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
        let total = Arc::new(Int64Array::from(vec![4, 3, 2, 1])) as ArrayRef;
        let title =
            |columns| draw(&answer(columns), "", 40, Tick::Nanosecond).unwrap().lines().next().map(str::to_owned);
        let names = texts(["gemm", "trsm", "syrk", "potrf"]);
        let kinds = texts(["blas", "blas", "blas", "lapack"]);
        let columns = vec![("name", names), ("kind", kinds.clone()), ("total", total.clone())];
        assert_eq!(title(columns).as_deref(), Some("total by name"));
        let columns =
            vec![("run", texts(["a", "a", "b", "b"])), ("name", texts(["x", "y", "x", "y"])), ("total", total.clone())];
        assert_eq!(title(columns).as_deref(), Some("total by run and name"));
        let columns = vec![("run", texts(["a"; 4])), ("kind", kinds), ("total", total)];
        assert_eq!(title(columns).as_deref(), Some("total by kind"));
    }

    #[test]
    fn times_beside_texts_are_drawn_before_what_counts_them() {
        let columns = vec![
            ("rank", Arc::new(StringArray::from(vec!["rank 0", "rank 1"])) as ArrayRef),
            ("wait_time", Arc::new(Int64Array::from(vec![900, 300]))),
            ("collectives", Arc::new(Int64Array::from(vec![1, 5]))),
        ];
        assert!(draw(&answer(columns), "", 40, Tick::Nanosecond).unwrap().starts_with("wait_time by rank"));
    }

    #[test]
    fn numbers_over_numbers_are_a_line() {
        let answer = answer(vec![
            ("time", Arc::new(Int64Array::from_iter_values((0..100).map(|x| x * 1_000))) as ArrayRef),
            ("running", Arc::new(Int64Array::from_iter_values((0..100).map(|x| x % 50)))),
        ]);
        let text = draw(&answer, "", 60, Tick::Nanosecond).unwrap();
        assert_eq!(text.lines().count(), HEIGHT + 2);
        assert!(text.starts_with("running by time\n49 ┤") && text.contains("99.0 µs"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let answer = answer(vec![("name", Arc::new(StringArray::from(vec!["a"])) as ArrayRef)]);
        for words in ["", "y=name", "x=nam", "pie"] {
            assert!(draw(&answer, words, 60, Tick::Nanosecond).is_err(), "{words}");
        }
    }
}
