//! `table`: rows for people. The layout is our own and not a table library's, because rows stream after a sample, and because what gives way
//! in a narrow terminal (the list below) must never be a number.
//!
//! ```text
//!  name   │ tasks │    busy
//! ────────┼───────┼─────────
//!  gemm   │    12 │ 1.24 ms
//!  NULL   │     3 │    17 ns
//! (2 rows)
//! ```
//!
//! Life of the data: the first [`SAMPLE`] rows are kept to find the widths; then everything streams. Where the terminal is too narrow, in
//! this order and as far as needed:
//!
//! 1. columns that hold nothing but NULL are left out;
//! 2. so are columns that are the same in all rows; what they hold stands below the table;
//! 3. texts lose their middle (paths and names of templates differ at their ends), and no two become the same;
//! 4. whole columns are left out from the middle, and named below the table.
//!
//! A number is never cut: it rather exceeds the width of its column. In expanded form, a row is a list of its columns. NULL is printed
//! as `NULL`, and the text "NULL" as `'NULL'`. Control characters are escaped ([`crate::text::visible`]): a trace must not steer the
//! terminal. EXPLAIN keeps its lines.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::buffer::Buffer;
use super::cells::{Cells, Kind, kinds};
use super::writer::{Look, Output, Writer};
use crate::errors::Failure;
use crate::text::visible::{visible, visible_lines};
use crate::text::words::plural;

/// Rows that decide the widths.
const SAMPLE: usize = 1_000;
/// The most cut texts of a column that are remembered, so that no two are cut to the same.
const CUTS_REMEMBERED: usize = 10_000;
/// A text column is not made narrower than this; before, columns are left out.
const TEXT_MIN: usize = 8;

/// Prints tables.
pub(crate) struct TableOutput {
    writer: Writer,
    look: Look,
    results: usize,
    result: Option<ResultTable>,
}

struct ResultTable {
    names: Vec<String>,
    kinds: Vec<Kind>,
    is_plan: bool,
    sample: Vec<Vec<Option<String>>>,
    layout: Option<Layout>,
    rows: u64,
    /// Rows that are printed as lists.
    printed: Cell<u64>,
    /// All rows of the result, where not all are printed.
    of_rows: Option<u64>,
}

/// Widths, once they are known.
struct Layout {
    /// Width by column; `None` = left out.
    widths: Vec<Option<usize>>,
    /// Columns that are left out because they hold nothing but NULL.
    empty: Vec<usize>,
    /// Columns that are left out because they are the same in all rows, with what they hold.
    constant: Vec<(usize, String)>,
    /// Columns are left out before this one.
    gap_before: Option<usize>,
    /// What was cut, by column; `None` where texts are not.
    cuts: Option<RefCell<Vec<Cuts>>>,
}

/// The cut texts of a column.
#[derive(Default)]
struct Cuts {
    by_text: HashMap<String, String>,
    /// How many texts are cut to the same.
    alike: HashMap<String, usize>,
}

impl Cuts {
    /// The text without its middle; with a number where another one would be the same.
    fn cut(&mut self, text: &str, width: usize) -> String {
        if let Some(cut) = self.by_text.get(text) {
            return cut.clone();
        }
        let cut = without_middle(text, width);
        if self.by_text.len() >= CUTS_REMEMBERED {
            return cut;
        }
        let alike = self.alike.entry(cut.clone()).or_default();
        *alike += 1;
        let apart = match alike {
            1 => cut,
            number => {
                let behind = format!(" ({number})");
                without_middle(text, width.saturating_sub(behind.len())) + &behind
            }
        };
        self.by_text.insert(text.to_owned(), apart.clone());
        apart
    }
}

/// The beginning and the end of a text, with `…` between them.
fn without_middle(text: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    let fits = |most: usize| {
        let mut used = 0;
        move |c: &char| {
            used += c.width().unwrap_or(0);
            used <= most
        }
    };
    let head: String = text.chars().take_while(fits(room.div_ceil(2))).collect();
    let tail: Vec<char> = text.chars().rev().take_while(fits(room - head.width())).collect();
    head + "…" + &tail.iter().rev().collect::<String>()
}

impl Look {
    /// A cell for people.
    fn cell(&self, cells: &Cells<'_>, column: usize, row: usize) -> Result<Option<String>, Failure> {
        if self.people || cells.is_null(column, row) || cells.kind(column) != Kind::Time {
            return Ok(cells.shown(column, row, self.tick)?);
        }
        let mut text = String::new();
        cells.exact(column, row, &mut text)?;
        Ok(Some(text))
    }
}

/// A whole table as text, for pages.
pub(crate) fn text(batch: &RecordBatch, look: Look) -> Result<String, Failure> {
    let buffer = Buffer::default();
    let mut output = TableOutput::new(buffer.writer(), look);
    output.begin(&batch.schema())?;
    output.rows(batch)?;
    output.end()?;
    Ok(buffer.text())
}

impl TableOutput {
    pub(crate) fn new(writer: Writer, look: Look) -> TableOutput {
        TableOutput { writer, look, results: 0, result: None }
    }

    /// The number of rows of the whole result, of which only the first were given.
    pub(crate) fn there_are_more(&mut self, rows: u64) {
        if let Some(result) = &mut self.result {
            result.of_rows = Some(rows);
        }
    }

    fn print_sample(&mut self) -> Result<(), Failure> {
        let Some(result) = &mut self.result else { return Ok(()) };
        if result.layout.is_some() {
            return Ok(());
        }
        let sample = std::mem::take(&mut result.sample);
        let is_whole = result.rows == sample.len() as u64;
        let layout = Layout::fit(result, &sample, self.look.width, is_whole);
        let mut text = layout.head(result, self.look.colours);
        for row in &sample {
            layout.row(row, &result.kinds, self.look.colours, &mut text);
        }
        result.layout = Some(layout);
        Ok(self.writer.write_all(text.as_bytes())?)
    }
}

impl Output for TableOutput {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        if self.results > 0 {
            self.writer.write_all(b"\n")?;
        }
        self.results += 1;
        let names: Vec<String> = schema.fields().iter().map(|field| visible(field.name()).into_owned()).collect();
        self.result = Some(ResultTable {
            is_plan: names == ["plan_type", "plan"],
            names,
            kinds: kinds(schema),
            sample: Vec::new(),
            layout: None,
            rows: 0,
            printed: Cell::new(0),
            of_rows: None,
        });
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let Some(result) = &mut self.result else { return Ok(()) };
        let cells = Cells::new(batch)?;
        result.rows += batch.num_rows() as u64;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            if result.is_plan {
                let cell = |column| cells.shown(column, row, self.look.tick).map(Option::unwrap_or_default);
                // Anybody can call two columns so.
                let (kind, plan) = (cell(0)?, cell(1)?);
                let _ = writeln!(text, "{}:\n{}\n", visible(&kind), visible_lines(plan.trim_end()));
                continue;
            }
            let shown = (0..batch.num_columns())
                .map(|column| {
                    Ok(self.look.cell(&cells, column, row)?.map(|cell| distinct(visible(&cell).into_owned())))
                })
                .collect::<Result<Vec<_>, Failure>>()?;
            match &result.layout {
                _ if self.look.expanded => result.record(&shown, &self.look, &mut text),
                Some(layout) => layout.row(&shown, &result.kinds, self.look.colours, &mut text),
                None => result.sample.push(shown),
            }
        }
        self.writer.write_all(text.as_bytes())?;
        if self.result.as_ref().is_some_and(|result| result.sample.len() >= SAMPLE) {
            self.print_sample()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        if self.result.as_ref().is_some_and(|result| !result.is_plan) && !self.look.expanded {
            self.print_sample()?;
        }
        let Some(result) = self.result.take() else { return Ok(()) };
        if result.layout.is_some() || (self.look.expanded && !result.is_plan) {
            let rows = result.rows;
            let mut footer = match result.of_rows {
                Some(all) => format!("(the first {rows} of {all} rows"),
                None => format!("({rows} {}", plural(rows, "row")),
            };
            if let Some(layout) = &result.layout {
                let (empty, hidden) = layout.left_out(&result.names);
                if !layout.constant.is_empty() {
                    let said =
                        layout.constant.iter().map(|(column, cell)| format!("{} = {cell}", result.names[*column]));
                    let _ = write!(footer, "; the same in all rows: {}", said.collect::<Vec<_>>().join(", "));
                }
                if !empty.is_empty() {
                    let _ = write!(footer, "; all NULL: {}", empty.join(", "));
                }
                if !hidden.is_empty() {
                    let _ = write!(footer, "; no room for {}", hidden.join(", "));
                }
            }
            footer.push_str(")\n");
            let footer = wrap(&footer, self.look.width);
            self.writer.write_all(footer.as_bytes())?;
        }
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(self.writer.flush()?)
    }
}

impl ResultTable {
    /// A row as a list of its columns.
    fn record(&self, cells: &[Option<String>], look: &Look, text: &mut String) {
        const NARROW: usize = 12;
        let names = self.names.iter().map(|name| name.width()).max().unwrap_or(0);
        let room = look.width.map_or(usize::MAX, |width| width.saturating_sub(names + 5).max(NARROW));
        let number = self.printed.replace(self.printed.get() + 1) + 1;
        let _ = writeln!(text, "─[ {number} ]{}", "─".repeat((names + 2).saturating_sub(5 + number.to_string().len())));
        for (name, cell) in self.names.iter().zip(cells) {
            let padding = " ".repeat(names - name.width());
            let bold = if look.colours { format!("\x1b[1m{name}\x1b[0m") } else { name.clone() };
            let cell = match cell {
                Some(cell) => cell.clone(),
                None if look.colours => "\x1b[2mNULL\x1b[0m".to_owned(),
                None => "NULL".to_owned(),
            };
            // What is longer than the line goes on below itself.
            let mut lines = broken(&cell, room).into_iter();
            let _ = writeln!(text, " {bold}{padding} │ {}", lines.next().unwrap_or_default());
            for line in lines {
                let _ = writeln!(text, " {} │ {line}", " ".repeat(names));
            }
        }
    }
}

/// A text in pieces that fit.
fn broken(text: &str, room: usize) -> Vec<String> {
    if text.width() <= room || text.starts_with('\x1b') {
        return vec![text.to_owned()];
    }
    let (mut lines, mut width) = (vec![String::new()], 0);
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > room {
            lines.push(String::new());
            width = c.width().unwrap_or(0);
        }
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
    }
    lines
}

impl Layout {
    /// Columns that hold nothing but NULL, and others for which there is no room.
    fn left_out<'n>(&self, names: &'n [String]) -> (Vec<&'n str>, Vec<&'n str>) {
        let is_constant = |column: &usize| self.constant.iter().any(|(constant, _)| constant == column);
        let hidden = (0..names.len()).filter(|column| self.widths[*column].is_none() && !is_constant(column));
        let (empty, others): (Vec<usize>, Vec<usize>) = hidden.partition(|column| self.empty.contains(column));
        let named = |columns: Vec<usize>| columns.into_iter().map(|column| names[column].as_str()).collect();
        (named(empty), named(others))
    }

    /// `is_whole`: the sample is the whole result.
    fn fit(result: &ResultTable, sample: &[Vec<Option<String>>], terminal: Option<usize>, is_whole: bool) -> Layout {
        let columns = result.names.len();
        let cell_width = |cell: &Option<String>| cell.as_ref().map_or(4, |cell| cell.width());
        let mut widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = sample.iter().map(|row| cell_width(&row[column])).max().unwrap_or(0);
                cells.max(result.names[column].width())
            })
            .collect();
        let Some(terminal) = terminal else {
            let widths = widths.into_iter().map(Some).collect();
            return Layout { widths, empty: Vec::new(), constant: Vec::new(), gap_before: None, cuts: None };
        };
        // How narrow each column may become: numbers keep their digits.
        let least: Vec<usize> = (0..columns)
            .map(|column| if result.kinds[column].is_right() { widths[column] } else { widths[column].min(TEXT_MIN) })
            .collect();
        let needed =
            |columns: &[usize]| columns.iter().map(|&column| least[column] + 3).sum::<usize>().saturating_sub(1);
        let all = needed(&(0..columns).collect::<Vec<_>>());
        let is_empty = |column: &usize| !sample.is_empty() && sample.iter().all(|row| row[*column].is_none());
        let empty: Vec<usize> = match is_whole && all > terminal {
            true => (0..columns).filter(is_empty).collect(),
            false => Vec::new(),
        };
        let mut others: Vec<usize> = (0..columns).filter(|column| !empty.contains(column)).collect();
        let mut constant = Vec::new();
        if is_whole && sample.len() > 1 {
            // Figures are worth more than words.
            let order =
                [false, true].map(|right| others.iter().copied().filter(move |&c| result.kinds[c].is_right() == right));
            for column in order.map(Iterator::collect::<Vec<usize>>).concat() {
                if needed(&others) <= terminal || others.len() == 1 {
                    break;
                }
                if let Some(cell) = &sample[0][column]
                    && sample.iter().all(|row| row[column].as_ref() == Some(cell))
                {
                    others.retain(|other| *other != column);
                    constant.push((column, cell.clone()));
                }
            }
        }
        for name in SIDE_COLUMNS {
            if needed(&others) > terminal {
                others.retain(|&column| result.names[column] != name);
            }
        }
        let least_of_others: Vec<usize> = others.iter().map(|column| least[*column]).collect();
        let kept: BTreeSet<usize> = keep(&least_of_others, terminal).into_iter().map(|at| others[at]).collect();
        let total = |widths: &[usize]| -> usize {
            let gap = usize::from(kept.len() < others.len());
            kept.iter().map(|&column| widths[column] + 3).sum::<usize>() + gap * 4 - 1
        };
        // The widest text gives first.
        while total(&widths) > terminal {
            let widest = kept.iter().copied().filter(|&c| widths[c] > least[c]).max_by_key(|&c| (widths[c], c));
            let Some(widest) = widest else { break };
            widths[widest] -= 1;
        }
        let gap_before = (others.iter().copied())
            .find(|column| !kept.contains(column))
            .map(|first| (first..columns).find(|column| kept.contains(column)).unwrap_or(columns));
        Layout {
            widths: (0..columns).map(|column| kept.contains(&column).then_some(widths[column])).collect(),
            empty,
            constant,
            gap_before,
            cuts: Some(RefCell::new((0..columns).map(|_| Cuts::default()).collect())),
        }
    }

    fn head(&self, result: &ResultTable, colours: bool) -> String {
        let mut names = String::new();
        let mut rule = String::new();
        self.each_column(|place| match place {
            Place::Separator => {
                names.push('│');
                rule.push('┼');
            }
            Place::Gap => {
                names.push_str(" … ");
                rule.push_str("───");
            }
            Place::Column(column, width) => {
                let name = self.cut(&result.names[column], column, width);
                let padding = " ".repeat(width.saturating_sub(name.width()));
                let bold = if colours { format!("\x1b[1m{name}\x1b[0m") } else { name };
                let cell = if result.kinds[column].is_right() {
                    format!(" {padding}{bold} ")
                } else {
                    format!(" {bold}{padding} ")
                };
                names.push_str(&cell);
                rule.push_str(&"─".repeat(width + 2));
            }
        });
        format!("{}\n{rule}\n", names.trim_end())
    }

    fn row(&self, cells: &[Option<String>], kinds: &[Kind], colours: bool, text: &mut String) {
        let mut line = String::new();
        self.each_column(|place| match place {
            Place::Separator => line.push('│'),
            Place::Gap => line.push_str(" … "),
            Place::Column(column, width) => {
                let (cell, is_null) = match &cells[column] {
                    Some(cell) if kinds[column].is_right() => (cell.clone(), false),
                    Some(cell) => (self.cut(cell, column, width), false),
                    None => ("NULL".to_owned(), true),
                };
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                let cell = if is_null && colours { format!("\x1b[2m{cell}\x1b[0m") } else { cell };
                if kinds[column].is_right() {
                    let _ = write!(line, " {padding}{cell} ");
                } else {
                    let _ = write!(line, " {cell}{padding} ");
                }
            }
        });
        text.push_str(line.trim_end());
        text.push('\n');
    }

    fn each_column(&self, mut visit: impl FnMut(Place)) {
        let mut first = true;
        for column in 0..=self.widths.len() {
            let mut place = |place| {
                if !std::mem::take(&mut first) {
                    visit(Place::Separator);
                }
                visit(place);
            };
            if self.gap_before == Some(column) {
                place(Place::Gap);
            }
            if let Some(Some(width)) = self.widths.get(column) {
                place(Place::Column(column, *width));
            }
        }
    }

    fn cut(&self, text: &str, column: usize, width: usize) -> String {
        match &self.cuts {
            Some(cuts) if text.width() > width => cuts.borrow_mut()[column].cut(text, width),
            _ => text.to_owned(),
        }
    }
}

enum Place {
    Separator,
    Gap,
    Column(usize, usize),
}

/// Columns that people miss least, the first one least of all, where there is no room for all.
const SIDE_COLUMNS: [&str; 6] = ["args", "stack_parent", "parent", "depth", "role", "kind"];

/// The columns that fit, taken from both ends in turn; the first one always stays.
fn keep(least: &[usize], terminal: usize) -> BTreeSet<usize> {
    let all: usize = least.iter().map(|width| width + 3).sum::<usize>().saturating_sub(1);
    if all <= terminal {
        return (0..least.len()).collect();
    }
    let mut kept = BTreeSet::new();
    // The gap's own four columns.
    let mut used = 4;
    let (mut left, mut right) = (0, least.len());
    while left < right {
        let from_left = kept.len() % 2 == 0;
        let column = if from_left { left } else { right - 1 };
        used += least[column] + 3;
        if used > terminal + 1 && !kept.is_empty() {
            break;
        }
        kept.insert(column);
        if from_left {
            left += 1;
        } else {
            right -= 1;
        }
    }
    kept
}

/// A text that reads like NULL is quoted.
fn distinct(text: String) -> String {
    if text == "NULL" { "'NULL'".to_owned() } else { text }
}

/// Breaks a long line at blanks.
fn wrap(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        if used > 0 && used + word.trim_end().width() > width {
            lines.truncate(lines.trim_end_matches(' ').len());
            lines.push('\n');
            used = 0;
        }
        lines.push_str(word);
        used += word.width();
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
    use expect_test::{Expect, expect};
    use tq_udfs::ticks::Tick;

    use super::*;
    use crate::output::buffer::{Buffer, write};

    fn batch() -> RecordBatch {
        RecordBatch::try_from_iter([
            (
                "name",
                Arc::new(StringArray::from(vec![Some("gemm"), None, Some("NULL"), Some("日本\u{1b}[31m")])) as ArrayRef,
            ),
            ("count", Arc::new(Int64Array::from(vec![Some(12), Some(123_456_789), None, Some(-1)]))),
            ("duration", Arc::new(Int64Array::from(vec![1_240_000, 17, 0, 2_000_000_000]))),
            ("ratio", Arc::new(Float64Array::from(vec![1.0 / 3.0, 1.0, 0.0, 1e-9]))),
            ("note", Arc::new(StringArray::from(vec!["", "a rather long text that will not fit", "b", "c"]))),
        ])
        .unwrap()
    }

    fn check(batch: &RecordBatch, width: Option<usize>, expected: &Expect) {
        let buffer = Buffer::default();
        let look = Look { tick: Tick::Nanosecond, width, colours: false, people: true, expanded: false };
        write(&mut TableOutput::new(buffer.writer(), look), std::slice::from_ref(batch));
        let text = buffer.text();
        if let Some(width) = width {
            for line in text.lines() {
                assert!(line.width() <= width, "{line}");
            }
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn columns_stand_below_their_names() {
        check(
            &batch(),
            None,
            &expect![[r#"
             name           │     count │ duration │    ratio │ note
            ────────────────┼───────────┼──────────┼──────────┼──────────────────────────────────────
             gemm           │        12 │  1.24 ms │ 0.333333 │
             NULL           │ 123456789 │    17 ns │      1.0 │ a rather long text that will not fit
             'NULL'         │      NULL │      0 s │      0.0 │ b
             日本\u{1b}[31m │        -1 │   2.00 s │     1e-9 │ c
            (4 rows)
        "#]],
        );
    }

    /// A figure is worth more than a column that holds one word: that stands below the table.
    #[test]
    fn what_is_the_same_in_all_rows_leaves_first() {
        let texts = |text: &str| Arc::new(StringArray::from(vec![text; 2])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([
            ("run", texts("wavefront_40")),
            ("kind", texts("static")),
            ("name", Arc::new(StringArray::from(vec!["B_1", "B_2"])) as ArrayRef),
            ("tasks", Arc::new(Int64Array::from(vec![3, 3]))),
            ("total_time", Arc::new(Int64Array::from(vec![1_240_000, 17]))),
        ])
        .unwrap();
        check(
            &batch,
            Some(40),
            &expect![[r#"
                 kind   │ name │ tasks │ total_time
                ────────┼──────┼───────┼────────────
                 static │ B_1  │     3 │    1.24 ms
                 static │ B_2  │     3 │      17 ns
                (2 rows; the same in all rows: run =
                wavefront_40)
            "#]],
        );
        check(
            &batch,
            Some(30),
            &expect![[r#"
             name │ tasks │ total_time
            ──────┼───────┼────────────
             B_1  │     3 │    1.24 ms
             B_2  │     3 │      17 ns
            (2 rows; the same in all rows:
            run = wavefront_40, kind =
            static)
        "#]],
        );
    }

    #[test]
    fn texts_are_cut_and_numbers_are_not() {
        check(
            &batch(),
            Some(60),
            &expect![[r#"
                 name        │     count │ duration │    ratio │ note
                ─────────────┼───────────┼──────────┼──────────┼────────────
                 gemm        │        12 │  1.24 ms │ 0.333333 │
                 NULL        │ 123456789 │    17 ns │      1.0 │ a rat… fit
                 'NULL'      │      NULL │      0 s │      0.0 │ b
                 日本\…}[31m │        -1 │   2.00 s │     1e-9 │ c
                (4 rows)
            "#]],
        );
    }

    #[test]
    fn cut_texts_keep_both_ends_and_stay_apart() {
        let names = [
            "/home/someone/project/src/solver/gemm.rs",
            "/home/someone/project/src/solver/axpy.rs",
            "/home/somebody/else/solver/gemm.rs",
            "kernel<float, 4, Long<A, B>>(int, float*)",
            "kernel<double, 4, Long<A, B>>(int, float*)",
        ];
        let batch = RecordBatch::try_from_iter([
            ("name", Arc::new(StringArray::from(names.to_vec())) as ArrayRef),
            ("duration", Arc::new(Int64Array::from(vec![1_240_000, 17, 3, 0, 2_000_000_000]))),
        ])
        .unwrap();
        check(
            &batch,
            Some(32),
            &expect![[r#"
             name                │ duration
            ─────────────────────┼──────────
             /home/som…r/gemm.rs │  1.24 ms
             /home/som…r/axpy.rs │    17 ns
             /home/s…gemm.rs (2) │     3 ns
             kernel<fl…, float*) │      0 s
             kernel<do…, float*) │   2.00 s
            (5 rows)
        "#]],
        );
    }

    #[test]
    fn columns_without_room_are_named() {
        check(
            &batch(),
            Some(32),
            &expect![[r#"
                 name         │ … │ note
                ──────────────┼───┼─────────────
                 gemm         │ … │
                 NULL         │ … │ a rat…t fit
                 'NULL'       │ … │ b
                 日本\u…}[31m │ … │ c
                (4 rows; no room for count,
                duration, ratio)
            "#]],
        );
    }

    #[test]
    fn no_rows_have_a_head() {
        check(
            &batch().slice(0, 0),
            Some(80),
            &expect![[r#"
             name │ count │ duration │ ratio │ note
            ──────┼───────┼──────────┼───────┼──────
            (0 rows)
        "#]],
        );
    }

    #[test]
    fn rows_after_the_sample_stream_with_its_widths() {
        let rows = SAMPLE as i64 + 5;
        let numbers = |n: i64| (0..n).map(|i| if i == rows - 1 { 123_456_789_012 } else { i }).collect::<Int64Array>();
        let batch = RecordBatch::try_from_iter([("n", Arc::new(numbers(rows)) as ArrayRef)]).unwrap();
        let buffer = Buffer::default();
        let look = Look { tick: Tick::Nanosecond, width: Some(20), colours: false, people: true, expanded: false };
        write(&mut TableOutput::new(buffer.writer(), look), &[batch.slice(0, 1_000), batch.slice(1_000, 5)]);
        let text = buffer.text();
        assert_eq!(text.lines().count() as i64, rows + 3);
        assert!(text.contains("\n 1003\n 123456789012\n(1005 rows)\n"), "{text}");
    }
}
