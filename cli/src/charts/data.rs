//! The answer of a query in the form that charts read: columns of numbers, columns of words.
//!
//! A number is a double; NULL and infinite values are NaN. A word is a code. A row costs 8 bytes for each column of
//! numbers and 4 for each column of words.

use std::collections::HashMap;
use std::hash::Hash;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef};
use tq_udfs::ticks::{Tick, digits_to_tell_apart, is_shown_as_time, is_time, time_text_of_digits};

use super::Names;
use super::error::ChartError;
use super::label::shown;
use super::palette::{HUES, Need};
use super::scale::Quantity;

/// Words that are told apart; later ones share a code.
const WORDS_MAX: usize = 1 << 16;
/// What all words beyond [`WORDS_MAX`] are called.
const REST: &str = "(more)";

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) schema: &'a SchemaRef,
    pub(crate) batches: &'a [RecordBatch],
    pub(crate) tick: Tick,
    /// What names are called and coloured.
    pub(crate) names: &'a Names,
}

/// A column of numbers.
#[derive(Debug)]
pub(super) struct Numbers {
    /// By row; NaN = no number.
    pub(super) values: Vec<f64>,
    pub(super) quantity: Quantity,
    /// The column's name.
    pub(super) name: String,
}

/// A column of words.
#[derive(Debug)]
pub(super) struct Words {
    /// By row.
    pub(super) codes: Vec<u32>,
    /// By code, in the order in which they came.
    pub(super) words: Vec<String>,
    /// By code: what is written where there is little room.
    pub(super) labels: Vec<String>,
    /// Whether the column is one of numbers or of times: some of their labels tell what stands between them.
    are_on_a_scale: bool,
    /// Whether the column is one of times.
    pub(super) are_times: bool,
    /// By code, where they have an order of their own.
    places: Option<Vec<f64>>,
    /// The column's name.
    pub(super) name: String,
}

impl Data<'_> {
    pub(super) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn find(&self, key: &'static str, column: &str) -> Result<usize, ChartError> {
        let fields = self.schema.fields();
        fields.iter().position(|field| field.name() == column).ok_or_else(|| ChartError::MissingColumn {
            key,
            column: column.to_owned(),
            columns: fields.iter().map(|field| field.name().clone()).collect(),
        })
    }

    /// A column that a kind of chart reads by its own name.
    pub(super) fn fixed(&self, kind: &'static str, column: &'static str) -> Result<&'static str, ChartError> {
        self.find("", column).map(|_| column).map_err(|_| ChartError::MissingFixedColumn {
            kind,
            column,
            columns: self.schema.fields().iter().map(|field| field.name().clone()).collect(),
        })
    }

    pub(super) fn numbers(&self, (key, column): (&'static str, &str)) -> Result<Numbers, ChartError> {
        let at = self.find(key, column)?;
        let field = self.schema.field(at);
        let wrong =
            || ChartError::NotNumbers { key, column: column.to_owned(), found: type_in_words(field.data_type()) };
        if !is_number(field.data_type()) {
            return Err(wrong());
        }
        let mut values = Vec::with_capacity(self.rows());
        for batch in self.batches {
            let doubles = cast(batch.column(at), &DataType::Float64).map_err(|_| wrong())?;
            let doubles = doubles.as_primitive::<Float64Type>();
            values.extend(doubles.iter().map(|value| value.filter(|value| value.is_finite()).unwrap_or(f64::NAN)));
        }
        Ok(Numbers { values, quantity: Quantity::of(field, self.tick), name: column.to_owned() })
    }

    pub(super) fn words(&self, (key, column): (&'static str, &str)) -> Result<Words, ChartError> {
        self.words_of_first(usize::MAX, (key, column))
    }

    /// The words of the first `limit` rows.
    pub(super) fn words_of_first(
        &self,
        limit: usize,
        (key, column): (&'static str, &str),
    ) -> Result<Words, ChartError> {
        let at = self.find(key, column)?;
        let field = self.schema.field(at);
        let mut interner = Interner::default();
        let mut codes = Vec::with_capacity(self.rows().min(limit));
        // Times that differ must not become one word.
        let digits = is_time(field).then(|| {
            let times = self.batches.iter().flat_map(|batch| batch.column(at).as_primitive::<Int64Type>().iter());
            digits_to_tell_apart(times.take(limit).flatten(), self.tick)
        });
        for batch in self.batches {
            let rows = batch.num_rows().min(limit - codes.len());
            let array = batch.column(at).slice(0, rows);
            let wrong = |_| ChartError::NotText { column: column.to_owned(), found: type_in_words(field.data_type()) };
            if let Some(digits) = digits {
                let times = array.as_primitive::<Int64Type>();
                codes.extend(times.iter().map(|time| match time {
                    Some(time) => interner.code(&time_text_of_digits(time, self.tick, digits), time as f64),
                    None => interner.code("NULL", f64::NAN),
                }));
                continue;
            }
            let texts = cast(&array, &DataType::Utf8).map_err(wrong)?;
            let texts = texts.as_string::<i32>();
            let doubles = is_number(field.data_type()).then(|| cast(&array, &DataType::Float64)).transpose();
            let doubles = doubles.map_err(wrong)?;
            for row in 0..rows {
                let double = doubles.as_ref().map(|doubles| doubles.as_primitive::<Float64Type>());
                let double = double.filter(|doubles| doubles.is_valid(row)).map_or(f64::NAN, |d| d.value(row));
                let text = if texts.is_valid(row) { texts.value(row) } else { "NULL" };
                codes.push(interner.code(text, double));
            }
        }
        let are_times = is_time(field);
        let are_on_a_scale = are_times || is_number(field.data_type());
        let labels = match are_on_a_scale {
            true => interner.words.clone(),
            false => self.names.labels(interner.words.iter().map(|word| shown(word))),
        };
        // Runs have their order on every page, whatever the query sorts by.
        let place = |run: &String| self.names.place_of_run(run) as f64;
        let places = match column {
            "run" => Some(interner.words.iter().map(place).collect()),
            _ => are_on_a_scale.then_some(interner.numbers),
        };
        Ok(Words { codes, words: interner.words, labels, are_on_a_scale, are_times, places, name: column.to_owned() })
    }

    /// A column where the chart names one.
    pub(super) fn words_if(&self, key: &'static str, column: Option<&str>) -> Result<Option<Words>, ChartError> {
        column.map(|column| self.words((key, column))).transpose()
    }

    /// The column of the panels of a picture, `None` where it has one that needs no name: the only run.
    pub(super) fn panels(&self, column: Option<&str>) -> Result<Option<Words>, ChartError> {
        let is_only_run = |panels: &Words| panels.name == "run" && !panels.are_several() && self.names.runs.len() <= 1;
        Ok(self.words_if("panel", column)?.filter(|panels| !is_only_run(panels)))
    }

    pub(super) fn numbers_if(&self, key: &'static str, column: Option<&str>) -> Result<Option<Numbers>, ChartError> {
        column.map(|column| self.numbers((key, column))).transpose()
    }
}

impl Words {
    /// Whether there are two words at least.
    pub(super) fn are_several(&self) -> bool {
        self.words.len() > 1
    }

    /// The same, where a word of one panel is another one than that of the next: times of different runs have nothing in common.
    pub(super) fn apart_by(self, panels: &Words) -> Words {
        let rank = |order: Vec<u32>| {
            let mut ranks = vec![0usize; order.len()];
            order.iter().enumerate().for_each(|(rank, &code)| ranks[code as usize] = rank);
            ranks
        };
        let (of_panels, of_words) = (rank(panels.in_order()), rank(self.in_order()));
        let of_row = |(&code, &panel): (&u32, &u32)| (of_panels[panel as usize], of_words[code as usize], code);
        let of_rows: Vec<(usize, usize, u32)> = self.codes.iter().zip(&panels.codes).map(of_row).collect();
        let mut words = of_rows.clone();
        words.sort_unstable();
        words.dedup();
        let new_codes: HashMap<(usize, usize, u32), u32> = words.iter().copied().zip(0..).collect();
        Words {
            codes: of_rows.iter().map(|of_row| new_codes[of_row]).collect(),
            words: words.iter().map(|(.., code)| self.words[*code as usize].clone()).collect(),
            labels: words.iter().map(|(.., code)| self.labels[*code as usize].clone()).collect(),
            places: Some((0..words.len()).map(|place| place as f64).collect()),
            ..self
        }
    }

    /// Whether they are names of tasks, which have colours of their own.
    pub(super) fn are_names(&self) -> bool {
        self.name == "name" || self.name.starts_with("name_") || self.name.ends_with("_name")
    }

    /// The colour of each word, by the sums of its values; of what idles and waits, grey.
    pub(super) fn classes(&self, names: &Names, values: &[f64], need: Need) -> (Vec<usize>, Vec<f64>) {
        let mut totals = vec![0.0; self.words.len()];
        for (&code, value) in self.codes.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
            totals[code as usize] += value.abs();
        }
        let largest = totals.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        // Totals of any size as whole numbers: only their proportions count.
        let whole = |total: &f64| (total / largest * 1e15) as i128;
        let coloured: Vec<usize> = (0..self.words.len()).filter(|&word| !self.is_idle(word)).collect();
        let ranked: Vec<(&str, i128)> =
            coloured.iter().map(|&word| (self.words[word].as_str(), whole(&totals[word]))).collect();
        let mut classes = vec![HUES; self.words.len()];
        for (&word, class) in coloured.iter().zip(names.classes(&ranked, need)) {
            classes[word] = class;
        }
        (classes, totals)
    }

    /// Whether a word is no name and says that nothing ran: the grey of waits tells that best.
    fn is_idle(&self, word: usize) -> bool {
        let word = self.words[word].as_str();
        !self.are_names() && (word == "idle" || word.starts_with("wait"))
    }

    /// Whether the words are numbers or times.
    pub(super) fn are_on_a_scale(&self) -> bool {
        self.are_on_a_scale
    }

    /// The codes in the order in which they are drawn: numbers and times by value, runs as they were opened, texts as they came.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.words.len() as u32).collect();
        if let Some(places) = &self.places {
            order.sort_by(|&a, &b| places[a as usize].total_cmp(&places[b as usize]));
        }
        order
    }

    /// As [`Words::in_order`] for words that come in groups and not each in every group: where each group is sorted, all
    /// are sorted, numbers in names by value; else they stay as they came.
    pub(super) fn in_order_within<G: Copy + Eq + Hash>(&self, groups: &[G]) -> Vec<u32> {
        let mut order = self.in_order();
        if self.places.is_some() {
            return order;
        }
        let keys: Vec<_> = self.words.iter().map(|word| natural(word)).collect();
        let (mut by_nature, mut by_bytes) = (true, true);
        let mut last: HashMap<G, u32> = HashMap::new();
        for (&group, &code) in groups.iter().zip(&self.codes) {
            if let Some(before) = last.insert(group, code)
                && before != code
            {
                by_nature &= keys[before as usize] <= keys[code as usize];
                by_bytes &= self.words[before as usize] <= self.words[code as usize];
            }
        }
        if by_nature || by_bytes {
            order.sort_by(|&a, &b| keys[a as usize].cmp(&keys[b as usize]));
        }
        order
    }
}

#[derive(Default)]
struct Interner {
    words: Vec<String>,
    numbers: Vec<f64>,
    codes: HashMap<String, u32>,
    last: u32,
}

impl Interner {
    fn code(&mut self, word: &str, number: f64) -> u32 {
        // Neighbours often share their word.
        if self.words.get(self.last as usize).is_some_and(|last| last == word) {
            return self.last;
        }
        let word = if self.words.len() < WORDS_MAX || self.codes.contains_key(word) { word } else { REST };
        self.last = match self.codes.get(word) {
            Some(&code) => code,
            None => {
                let code = self.words.len() as u32;
                self.words.push(word.to_owned());
                self.numbers.push(number);
                self.codes.insert(word.to_owned(), code);
                code
            }
        };
        self.last
    }
}

/// `w10` after `w9`: text and numbers in turn.
pub(crate) fn natural(text: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut in_number = false;
    for c in text.chars() {
        match (c.to_digit(10), parts.last_mut()) {
            (Some(digit), Some((_, number))) => {
                *number = number.saturating_mul(10).saturating_add(u64::from(digit));
                in_number = true;
            }
            (None, Some((word, _))) if !in_number => word.push(c),
            (None, _) => {
                parts.push((c.to_string(), 0));
                in_number = false;
            }
            (Some(_), None) => {}
        }
    }
    parts
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        data_type => data_type.is_numeric(),
    }
}

/// A type as users know it.
pub(super) fn type_in_words(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Dictionary(_, values) => type_in_words(values),
        DataType::Boolean => "true or false".to_owned(),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => "a date".to_owned(),
        DataType::Null => "always NULL".to_owned(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "a list".to_owned(),
        DataType::Struct(_) | DataType::Map(..) => "a structure".to_owned(),
        data_type if data_type.is_numeric() => "a number".to_owned(),
        _ => "of another type".to_owned(),
    }
}

/// The name of a column as a title: `bin_start` → `bin start`.
pub(super) fn in_words(column: &str) -> String {
    match column {
        // Of intervals in which something is counted, the start stands on the axis of time.
        "bin_start" => "time".to_owned(),
        _ => column.replace('_', " "),
    }
}

/// What part of something the values of a column are, for tooltips.
#[derive(Debug)]
pub(super) struct Shares {
    is_share: bool,
    whole: f64,
    most: f64,
}

impl Shares {
    /// The shares of some values of a column.
    pub(super) fn of(numbers: &Numbers, values: impl Iterator<Item = f64>) -> Shares {
        let name = &numbers.name;
        // A sum of means is nothing.
        const NO_SUMMANDS: [&str; 16] = [
            "mean", "median", "avg", "average", "min", "max", "least", "most", "longest", "times", "per", "length",
            "latency", "pressure", "running", "p95",
        ];
        let is_share =
            ["share", "occupancy", "efficiency"].iter().any(|word| name.split('_').any(|part| part == *word));
        let adds_up = matches!(numbers.quantity, Quantity::Time(_) | Quantity::Bytes | Quantity::Count)
            && !name.split('_').any(|part| NO_SUMMANDS.contains(&part));
        let (mut whole, mut most, mut least) = (0.0, 0.0, 0.0);
        for value in values.filter(|value| !value.is_nan()) {
            (whole, most, least) = (whole + value, f64::max(most, value), f64::min(least, value));
        }
        Shares { is_share, whole: if adds_up && least >= 0.0 { whole } else { 0.0 }, most }
    }

    /// Parts of the largest one, where sums mean nothing.
    pub(super) fn of_largest(self) -> Shares {
        Shares { whole: 0.0, ..self }
    }

    /// `, 12.5 % of all`.
    pub(super) fn text(&self, value: f64) -> String {
        let percent = |of: f64| format!("{:.1} %", 100.0 * value / of);
        if value.is_nan() {
            String::new()
        } else if self.is_share {
            format!(", {}", percent(1.0))
        } else if self.whole > 0.0 {
            format!(", {} of all", percent(self.whole))
        } else if self.most > 0.0 && value >= 0.0 {
            format!(", {} of the largest", percent(self.most))
        } else {
            String::new()
        }
    }
}

impl Quantity {
    /// What a column counts: its type and its name tell.
    fn of(field: &Field, tick: Tick) -> Quantity {
        let name = field.name().to_lowercase();
        if is_shown_as_time(field) {
            if tick == Tick::Weight { Quantity::Count } else { Quantity::Time(tick) }
        } else if name == "bytes" || name.ends_with("_bytes") {
            Quantity::Bytes
        } else if name == "percent" || name.ends_with("_percent") {
            Quantity::Percent
        } else if field.data_type().is_integer() {
            Quantity::Count
        } else {
            Quantity::Number
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn texts(texts: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    #[test]
    fn words_of_a_matrix_are_sorted_where_its_rows_are() {
        let order = |sources: &[&str], targets: &[&str]| {
            let batch = batch(vec![("s", texts(sources)), ("t", texts(targets))]);
            let schema = batch.schema();
            let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &Names::default() };
            let (sources, targets) = (data.words(("y", "s")).unwrap(), data.words(("x", "t")).unwrap());
            let order = targets.in_order_within(&sources.codes);
            order.iter().map(|&code| targets.words[code as usize].clone()).collect::<Vec<_>>().join(" ")
        };
        // w1 sends nothing to itself, and SQL sorts w10 before w2.
        assert_eq!(order(&["w1", "w1", "w2", "w2"], &["w10", "w2", "w1", "w10"]), "w1 w2 w10");
        // An order that the query chose stays.
        assert_eq!(order(&["a", "a", "b", "b"], &["small", "big", "small", "big"]), "small big");
    }

    #[test]
    fn numbers_are_ordered_by_value_and_times_are_for_people() {
        let batch = batch(vec![
            ("cores", Arc::new(Int64Array::from(vec![16, 2, 4])) as ArrayRef),
            ("bin_time", Arc::new(Int64Array::from(vec![Some(1_500), None, Some(10)]))),
        ]);
        let schema = batch.schema();
        let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &Names::default() };
        assert_eq!(data.words(("x", "cores")).unwrap().in_order(), [1, 2, 0]);
        assert_eq!(data.words(("x", "bin_time")).unwrap().words, ["1.50 µs", "NULL", "10 ns"]);
        assert_eq!(data.words_of_first(2, ("x", "cores")).unwrap().words, ["16", "2"]);
        let error = data.numbers(("y", "coers")).unwrap_err();
        assert_eq!(error.to_string(), "the chart's y=coers: the answer has no column `coers`");
    }
}
