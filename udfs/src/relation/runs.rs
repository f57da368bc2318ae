//! Runs as numbers: splits the rows of a batch into ranges of one run each.
//!
//! `run` keeps the type that it has in the input: a dictionary in memory, a view from Parquet, a number in a home-made
//! table. Rows of one run are mostly adjacent, so a batch is a few ranges. A dictionary is read once and not once per
//! batch: batches of one table share it.

use std::collections::HashMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, UInt32Array};
use arrow::compute::{partition, take};
use arrow::datatypes::{DataType, Int32Type};
use datafusion_common::{Result, ScalarValue};

/// Numbers runs in the order in which they appear.
#[derive(Debug)]
pub struct Runs {
    numbers: HashMap<ScalarValue, usize>,
    values: Vec<ScalarValue>,
}

/// A stretch of rows of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The number of the run; `None` for a run that is not known.
    pub run: Option<usize>,
    /// The rows of the batch.
    pub rows: Range<usize>,
}

/// What is remembered between the batches of one input: the run of each entry of its dictionary.
#[derive(Debug, std::default::Default)]
pub struct Reading {
    dictionary: Option<(ArrayRef, Vec<Option<usize>>)>,
}

impl Runs {
    /// No runs yet.
    pub fn new() -> Self {
        Runs { numbers: HashMap::new(), values: vec![] }
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether the only run is the one of a relation without runs.
    pub fn is_single_null(&self) -> bool {
        self.values == [ScalarValue::Null]
    }

    /// The stretches of a batch of the first input: unknown runs get the next number. Without a column, all rows are of
    /// the run NULL.
    pub fn learn(&mut self, reading: &mut Reading, column: Option<&ArrayRef>, rows: usize) -> Result<Vec<Stretch>> {
        self.stretches(reading, column, rows, |runs, value| Some(runs.number(value)))
    }

    /// The stretches of a batch of another input.
    pub fn find(&mut self, reading: &mut Reading, column: Option<&ArrayRef>, rows: usize) -> Result<Vec<Stretch>> {
        self.stretches(reading, column, rows, |runs, value| runs.numbers.get(&value).copied())
    }

    /// The value of a run.
    pub fn value(&self, run: usize) -> &ScalarValue {
        &self.values[run]
    }

    /// Adds a run, unless it is there.
    pub fn add(&mut self, value: &ScalarValue) {
        self.number(value.clone());
    }

    /// For people: `` run `base` ``, or nothing for the only run of a relation that has no runs.
    pub fn describe(&self, run: usize) -> String {
        match &self.values[run] {
            value if value.is_null() => String::new(),
            value => format!("run `{value}`"),
        }
    }

    /// The run's name; empty for the only run of a relation that has no runs.
    pub fn name(&self, run: usize) -> String {
        match &self.values[run] {
            value if value.is_null() => String::new(),
            value => value.to_string(),
        }
    }

    /// The runs that a pattern names: equal to it, in it as in a folder (`base` names `base/1`), or with `*` for any text.
    pub fn matching(&self, pattern: &str) -> Vec<usize> {
        let matches = |run: &usize| is_named_by(&self.name(*run), pattern);
        self.in_order().into_iter().filter(matches).collect()
    }

    /// The numbers in the order of the runs' names, NULL last: the order in which answers are given.
    pub fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        let value = |run: &usize| &self.values[*run];
        order.sort_by(|one, other| {
            let nulls = value(one).is_null().cmp(&value(other).is_null());
            nulls.then_with(|| value(one).partial_cmp(value(other)).unwrap_or(one.cmp(other)))
        });
        order
    }

    /// The column `run` of an answer: each run so many times.
    pub fn column(&self, rows: &[(usize, usize)], data_type: &DataType) -> Result<ArrayRef> {
        if rows.is_empty() {
            return Ok(arrow::array::new_empty_array(data_type));
        }
        let values = rows.iter().map(|(run, _)| match &self.values[*run] {
            // The one run of a relation without runs has no type of its own.
            ScalarValue::Null => ScalarValue::try_new_null(data_type),
            value => Ok(value.clone()),
        });
        let values = ScalarValue::iter_to_array(values.collect::<Result<Vec<_>>>()?)?;
        let places = (0u32..).zip(rows).flat_map(|(place, (_, count))| std::iter::repeat_n(place, *count));
        Ok(take(&values, &UInt32Array::from_iter_values(places), None)?)
    }

    fn number(&mut self, value: ScalarValue) -> usize {
        let next = self.values.len();
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }

    fn stretches(
        &mut self,
        reading: &mut Reading,
        column: Option<&ArrayRef>,
        rows: usize,
        mut number: impl FnMut(&mut Runs, ScalarValue) -> Option<usize>,
    ) -> Result<Vec<Stretch>> {
        if rows == 0 {
            return Ok(vec![]);
        }
        let Some(column) = column else {
            return Ok(vec![Stretch { run: number(self, ScalarValue::Null), rows: 0..rows }]);
        };
        let Some(dictionary) = column.as_dictionary_opt::<Int32Type>() else {
            let ranges = partition(std::slice::from_ref(column))?.ranges();
            let run_of = |rows: Range<usize>| {
                let value = ScalarValue::try_from_array(column, rows.start)?;
                Ok(Stretch { run: number(self, value), rows })
            };
            return ranges.into_iter().map(run_of).collect();
        };
        let known = reading.dictionary.as_ref();
        if known.is_none_or(|(values, _)| !values.to_data().ptr_eq(&dictionary.values().to_data())) {
            reading.dictionary = Some((dictionary.values().clone(), vec![None; dictionary.values().len()]));
        }
        let keys = dictionary.keys();
        let mut stretches = vec![];
        for rows in equal_keys(dictionary) {
            let key = keys.is_valid(rows.start).then(|| keys.value(rows.start) as usize);
            let cached = reading.dictionary.as_ref().zip(key).and_then(|((_, numbers), key)| numbers[key]);
            let run = match cached {
                Some(run) => Some(run),
                None => {
                    let run = number(self, ScalarValue::try_from_array(column, rows.start)?);
                    if let (Some((_, numbers)), Some(key)) = (&mut reading.dictionary, key) {
                        numbers[key] = run;
                    }
                    run
                }
            };
            stretches.push(Stretch { run, rows });
        }
        Ok(stretches)
    }
}

/// Whether a pattern names a run: see [`Runs::matching`].
pub fn is_named_by(name: &str, pattern: &str) -> bool {
    let in_folder = name.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    in_folder || is_like(name, pattern)
}

/// Whether a text is a pattern in which each `*` stands for any text. Each part is looked for once, from the left: names and patterns come
/// from strangers, and trying all places of all parts would not end.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return text == pattern };
    let (parts, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_prefix(head) else { return false };
    for part in parts.split('*') {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(tail)
}

/// The stretches of equal keys.
pub(crate) fn equal_keys(dictionary: &DictionaryArray<Int32Type>) -> Vec<Range<usize>> {
    let keys = dictionary.keys();
    let key = |row: usize| keys.is_valid(row).then(|| keys.value(row));
    // Most batches are of one run: its word is the only one, or that is found out eight keys at a time.
    let values = keys.values();
    let are_equal =
        || dictionary.values().len() == 1 || values.iter().fold(true, |all, value| all & (*value == values[0]));
    if keys.null_count() == 0 && are_equal() {
        return std::iter::once(0..values.len()).collect();
    }
    let mut starts: Vec<usize> =
        std::iter::once(0).chain((1..keys.len()).filter(|row| key(*row) != key(row - 1))).collect();
    starts.push(keys.len());
    starts.windows(2).map(|bounds| bounds[0]..bounds[1]).collect()
}

impl std::default::Default for Runs {
    fn default() -> Self {
        Runs::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, StringViewArray};
    use std::sync::Arc;

    fn stretch(run: Option<usize>, rows: Range<usize>) -> Stretch {
        Stretch { run, rows }
    }

    #[test]
    fn patterns_match_without_trying_all_places() {
        let cases = [
            ("night/3", "night/*", true),
            ("night/3", "*/3", true),
            ("night/3", "n*h*3", true),
            ("night/3", "*", true),
            ("", "*", true),
            ("aa", "a*a", true),
            ("a", "a*a", false),
            ("abab", "*ab", true),
            ("abab", "a*ba*", true),
            ("é/é", "*é", true),
            ("night/3", "night", true),
            ("nights", "night", false),
        ];
        for (name, pattern, expected) in cases {
            assert_eq!(is_named_by(name, pattern), expected, "{name} {pattern}");
        }
        let (name, pattern) = ("a".repeat(4000), format!("{}b", "*a".repeat(500)));
        assert!(!is_named_by(&name, &pattern));
    }

    #[test]
    fn views_and_dictionaries_split_alike() {
        let names = [Some("b"), Some("b"), None, Some("a"), Some("b"), Some("b")];
        let view: ArrayRef = Arc::new(StringViewArray::from_iter(names));
        let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter(names));
        for column in [view, dictionary] {
            let mut runs = Runs::new();
            let split = runs.learn(&mut Reading::default(), Some(&column), column.len()).unwrap();
            let expected =
                [stretch(Some(0), 0..2), stretch(Some(1), 2..3), stretch(Some(2), 3..4), stretch(Some(0), 4..6)];
            assert_eq!(split, expected);
            assert_eq!(runs.in_order(), [2, 0, 1]);
            let again = runs.column(&[(2, 1), (0, 2), (1, 1)], column.data_type()).unwrap();
            assert_eq!(again.data_type(), column.data_type());
            assert_eq!((again.len(), again.is_null(3)), (4, true));
            let slice = column.slice(3, 2);
            let found = runs.find(&mut Reading::default(), Some(&slice), 2).unwrap();
            assert_eq!(found, [stretch(Some(2), 0..1), stretch(Some(0), 1..2)]);
        }
    }

    #[test]
    fn another_dictionary_has_other_keys() {
        let (mut runs, mut reading) = (Runs::new(), Reading::default());
        for (name, number) in [("a", 0), ("b", 1), ("a", 0)] {
            let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter([Some(name)]));
            assert_eq!(runs.learn(&mut reading, Some(&column), 1).unwrap(), [stretch(Some(number), 0..1)]);
        }
        let unknown: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("c")]));
        assert_eq!(runs.find(&mut reading, Some(&unknown), 1).unwrap(), [stretch(None, 0..1)]);
    }

    #[test]
    fn patterns_name_runs() {
        let mut runs = Runs::new();
        let names: ArrayRef = Arc::new(StringViewArray::from(vec!["base", "base/2", "base2", "new"]));
        runs.learn(&mut Reading::default(), Some(&names), 4).unwrap();
        for (pattern, expected) in [
            ("base", &[0, 1][..]),
            ("base*", &[0, 1, 2]),
            ("*e*2", &[1, 2]),
            ("*", &[0, 1, 2, 3]),
            ("bas", &[]),
            ("", &[]),
        ] {
            assert_eq!(runs.matching(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn no_column_is_one_run() {
        let mut runs = Runs::new();
        assert_eq!(runs.learn(&mut Reading::default(), None, 3).unwrap(), [stretch(Some(0), 0..3)]);
        assert_eq!(runs.describe(0), "");
        assert_eq!(runs.column(&[(0, 3)], &DataType::Utf8View).unwrap().null_count(), 3);
    }
}
