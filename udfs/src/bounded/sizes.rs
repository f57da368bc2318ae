//! Upper bounds on the bytes of each row of a function's result, computed from its arguments before it runs.
//!
//! The bound is exact where an argument is the count (`repeat`), and several times too large where only the function itself
//! can know (the matches of `regexp_replace`). The bytes themselves are not read: lengths come from offsets.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;

/// What an element of a list costs beside its bytes: its place.
const PLACE: u64 = 4;
/// Bytes of a character at most.
const CHARACTER: u64 = 4;
/// Bytes of a number as text, or of a time.
const NUMBER: u64 = 32;
/// What a directive of two characters of a format can become, by its bytes: `%c` is `Sun Jul  8 00:34:60 2001`.
const DIRECTIVE: u64 = 16;

/// How a function's answer grows with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// `repeat(text, n)`.
    Repeat,
    /// `lpad(text, n[, fill])`.
    Pad,
    /// `replace(text, from, to)`.
    Replace,
    /// `regexp_replace(text, pattern, replacement[, flags])`.
    RegexpReplace,
    /// All arguments, one behind the other.
    Sum,
    /// `concat_ws(separator, …)`.
    Separated,
    /// `to_char(time, format)`.
    Format,
    /// `array_repeat(value, n)`.
    ArrayRepeat,
    /// `array_resize(list, n[, value])`.
    ArrayResize,
    /// `array_to_string(list, separator[, null])`.
    ArrayToString,
    /// `array_replace(list, from, to)`.
    ArrayReplace,
    /// `range([from,] to[, step])`, without its end.
    Range,
    /// `generate_series(from, to[, step])`, with its end.
    Series,
    /// At most some times as long as the arguments: looked at afterwards.
    Afterwards,
}

/// Functions of DataFusion that can make a large value, by their names; their other names come with them.
pub(super) const GROWTH: &[(&str, Growth)] = &[
    ("||", Growth::Sum),
    ("array_append", Growth::Sum),
    ("array_concat", Growth::Sum),
    ("array_prepend", Growth::Sum),
    ("array_repeat", Growth::ArrayRepeat),
    ("array_replace", Growth::ArrayReplace),
    ("array_replace_all", Growth::ArrayReplace),
    ("array_replace_n", Growth::ArrayReplace),
    ("array_resize", Growth::ArrayResize),
    ("array_to_string", Growth::ArrayToString),
    ("array_union", Growth::Sum),
    ("arrays_zip", Growth::Sum),
    ("concat", Growth::Sum),
    ("concat_ws", Growth::Separated),
    ("flatten", Growth::Afterwards),
    ("generate_series", Growth::Series),
    ("initcap", Growth::Afterwards),
    ("lower", Growth::Afterwards),
    ("lpad", Growth::Pad),
    ("make_array", Growth::Sum),
    ("map", Growth::Sum),
    ("overlay", Growth::Sum),
    ("range", Growth::Range),
    ("regexp_match", Growth::Afterwards),
    ("regexp_replace", Growth::RegexpReplace),
    ("repeat", Growth::Repeat),
    ("replace", Growth::Replace),
    ("rpad", Growth::Pad),
    ("string_to_array", Growth::Afterwards),
    ("to_char", Growth::Format),
    ("translate", Growth::Afterwards),
    ("upper", Growth::Afterwards),
];

impl Growth {
    /// How the function of that name grows; `None` for one that makes nothing large.
    pub(super) fn of(name: &str) -> Option<Growth> {
        GROWTH.iter().find(|(known, _)| *known == name).map(|(_, growth)| *growth)
    }

    /// The most bytes of each row of the answer; `None` when that is seen afterwards.
    pub(super) fn sizes(self, args: &[ColumnarValue], rows: usize) -> Result<Option<Vec<u64>>> {
        let by_row: Box<dyn Fn(usize) -> u64> = match (self, args) {
            (Growth::Repeat, [text, count]) => {
                let (text, count) = (Lengths::of(text)?, Counts::of(count)?);
                Box::new(move |row| text.at(row).saturating_mul(count.at(row)))
            }
            (Growth::Pad, [text, length, fill @ ..]) => {
                let (text, length) = (Lengths::of(text)?, Counts::of(length)?);
                let fill = fill.first().map(widest).transpose()?.unwrap_or(1);
                Box::new(move |row| text.at(row).saturating_add(length.at(row).saturating_mul(fill)))
            }
            (Growth::Replace, [text, from, to]) => {
                let (text, from, to) = (Lengths::of(text)?, Lengths::of(from)?, Lengths::of(to)?);
                Box::new(move |row| replaced(text.at(row), from.at(row), to.at(row)))
            }
            (Growth::RegexpReplace, [text, _, replacement, flags @ ..]) => {
                let (text, to, references) = (Lengths::of(text)?, Lengths::of(replacement)?, references(replacement)?);
                let all = flags.first().is_some_and(|flags| match flags {
                    ColumnarValue::Scalar(flags) => {
                        flags.try_as_str().flatten().is_some_and(|flags| flags.contains('g'))
                    }
                    ColumnarValue::Array(_) => true,
                });
                Box::new(move |row| {
                    // Matches do not overlap, so what all of them captured is no longer than the text.
                    let matches = if all { text.at(row).saturating_add(1) } else { 1 };
                    let captured = text.at(row).saturating_mul(references.saturating_add(1));
                    captured.saturating_add(matches.saturating_mul(to.at(row)))
                })
            }
            (Growth::Sum, args) => sum(args, 0)?,
            (Growth::Separated, [separator, rest @ ..]) => {
                let (separator, joined, gaps) = (Lengths::of(separator)?, sum(rest, 0)?, rest.len().saturating_sub(1));
                Box::new(move |row| joined(row).saturating_add(separator.at(row).saturating_mul(gaps as u64)))
            }
            (Growth::Format, [_, format]) => {
                let format = Lengths::of(format)?;
                Box::new(move |row| format.at(row).saturating_mul(DIRECTIVE))
            }
            (Growth::ArrayRepeat, [value, count]) => {
                let (value, count) = (Lengths::of(value)?, Counts::of(count)?);
                Box::new(move |row| (value.at(row) + PLACE).saturating_mul(count.at(row)))
            }
            (Growth::ArrayResize, [list, length, value @ ..]) => {
                let (bytes, length) = (Lengths::of(list)?, Counts::of(length)?);
                let width = child_width(list);
                let value = value.first().map(Lengths::of).transpose()?;
                Box::new(move |row| {
                    let each = value.as_ref().map_or(0, |value| value.at(row)).max(width) + PLACE;
                    bytes.at(row).saturating_add(length.at(row).saturating_mul(each))
                })
            }
            (Growth::ArrayToString, [list, separator, null @ ..]) => {
                let (bytes, elements, separator) = (Lengths::of(list)?, elements(list)?, Lengths::of(separator)?);
                let null = null.first().map(Lengths::of).transpose()?;
                let number = if child_width(list) > 0 { NUMBER } else { 0 };
                Box::new(move |row| {
                    let each = separator.at(row) + null.as_ref().map_or(0, |null| null.at(row)) + number;
                    bytes.at(row).saturating_add(elements.at(row).saturating_mul(each))
                })
            }
            (Growth::ArrayReplace, [list, _, to, ..]) => {
                let (bytes, elements, to) = (Lengths::of(list)?, elements(list)?, Lengths::of(to)?);
                Box::new(move |row| bytes.at(row).saturating_add(elements.at(row).saturating_mul(to.at(row))))
            }
            (Growth::Range, args) => range(args, 0)?,
            (Growth::Series, args) => range(args, 1)?,
            _ => return Ok(None),
        };
        Ok(Some((0..rows).map(by_row).collect()))
    }
}

/// The bytes of the arguments of a row, with those of their places.
fn sum(args: &[ColumnarValue], more: u64) -> Result<Box<dyn Fn(usize) -> u64>> {
    let lengths = args.iter().map(Lengths::of).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(move |row| lengths.iter().fold(more, |all, length| all.saturating_add(length.at(row)))))
}

/// Where nothing is replaced by more, nothing grows. An empty `from` stands between any two characters.
fn replaced(text: u64, from: u64, to: u64) -> u64 {
    let times = text.checked_div(from).unwrap_or(text + 1);
    text.saturating_add(times.saturating_mul(to.saturating_sub(from)))
}

/// Bytes of the widest character of a text that fills, at most.
fn widest(fill: &ColumnarValue) -> Result<u64> {
    Ok(match fill {
        ColumnarValue::Scalar(fill) => {
            let widest = fill.try_as_str().flatten().and_then(|fill| fill.chars().map(char::len_utf8).max());
            widest.unwrap_or(1) as u64
        }
        ColumnarValue::Array(_) => CHARACTER,
    })
}

/// How often a replacement refers to the matched text, at most.
fn references(replacement: &ColumnarValue) -> Result<u64> {
    let marks = |text: &str| text.bytes().filter(|byte| matches!(byte, b'\\' | b'$')).count() as u64;
    Ok(match replacement {
        ColumnarValue::Scalar(text) => text.try_as_str().flatten().map_or(0, marks),
        ColumnarValue::Array(array) => {
            let texts = cast(array, &DataType::LargeUtf8)?;
            texts.as_string::<i64>().iter().flatten().map(marks).max().unwrap_or(0)
        }
    })
}

/// Elements of `range`, and so many more, times their bytes.
fn range(args: &[ColumnarValue], more: u128) -> Result<Box<dyn Fn(usize) -> u64>> {
    let ends = args.iter().map(Ticks::of).collect::<Result<Vec<_>>>()?;
    let width = match args.first().map(ColumnarValue::data_type) {
        Some(DataType::Date32) => 4,
        _ => 8,
    };
    Ok(Box::new(move |row| {
        let at = |index: usize| ends.get(index).map(|end| end.at(row));
        let (from, to, step) = match ends.len() {
            1 => (Some(0), at(0).flatten(), Some(1)),
            2 => (at(0).flatten(), at(1).flatten(), Some(1)),
            _ => (at(0).flatten(), at(1).flatten(), at(2).flatten()),
        };
        let (Some(from), Some(to), Some(step)) = (from, to, step) else { return 0 };
        // No step, or one away from the end: an error of the function, or an empty list.
        if step == 0 || (to < from) != (step < 0) {
            return 0;
        }
        let count = (to - from).unsigned_abs().div_ceil(step.unsigned_abs()) + more;
        u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(width)
    }))
}

/// A number for each row, or one for all.
struct Rows<T>(Vec<T>);

impl<T: Copy> Rows<T> {
    fn at(&self, row: usize) -> T {
        // One for all, or one for each; never none for a row that is asked for.
        self.0[if self.0.len() == 1 { 0 } else { row }]
    }
}

struct Lengths;

impl Lengths {
    /// Bytes of the values; 0 of NULL.
    fn of(value: &ColumnarValue) -> Result<Rows<u64>> {
        Ok(Rows(match value {
            ColumnarValue::Array(array) => value_bytes(array),
            ColumnarValue::Scalar(scalar) => value_bytes(&scalar.to_array()?),
        }))
    }
}

struct Counts;

impl Counts {
    /// How often; 0 of NULL and of what is negative.
    fn of(value: &ColumnarValue) -> Result<Rows<u64>> {
        let counts = integers(&array_of(value)?)?;
        Ok(Rows(counts.iter().map(|count| count.map_or(0, |count| count.max(0) as u64)).collect()))
    }
}

struct Ticks;

impl Ticks {
    /// Whole numbers as they are; times, dates and steps of time in nanoseconds, a month for 28 days.
    fn of(value: &ColumnarValue) -> Result<Rows<Option<i128>>> {
        const DAY: i128 = 86_400_000_000_000;
        let array = array_of(value)?;
        Ok(Rows(match array.data_type() {
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let step = |step: arrow::datatypes::IntervalMonthDayNano| {
                    (i128::from(step.months) * 28 + i128::from(step.days)) * DAY + i128::from(step.nanoseconds)
                };
                array.as_primitive::<IntervalMonthDayNanoType>().iter().map(|value| value.map(step)).collect()
            }
            DataType::Date32 => integers(&array)?.iter().map(|day| day.map(|day| i128::from(day) * DAY)).collect(),
            DataType::Timestamp(unit, _) => {
                let per_tick = match unit {
                    TimeUnit::Second => 1_000_000_000,
                    TimeUnit::Millisecond => 1_000_000,
                    TimeUnit::Microsecond => 1_000,
                    TimeUnit::Nanosecond => 1,
                };
                integers(&array)?.iter().map(|time| time.map(|time| i128::from(time) * per_tick)).collect()
            }
            data_type if data_type.is_integer() => {
                integers(&array)?.iter().map(|number| number.map(i128::from)).collect()
            }
            _ => vec![None; array.len()],
        }))
    }
}

/// How many elements the lists have.
fn elements(list: &ColumnarValue) -> Result<Rows<u64>> {
    let array = array_of(list)?;
    let of = |row: usize| match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value_length(row) as u64,
        DataType::LargeList(_) => array.as_list::<i64>().value_length(row) as u64,
        DataType::FixedSizeList(_, length) => *length as u64,
        _ => 0,
    };
    let inner = match array.data_type() {
        // Lists of lists are gone through to the last.
        DataType::List(field) | DataType::LargeList(field) if field.data_type().is_nested() => {
            return Ok(Rows(value_bytes(&array)));
        }
        _ => (0..array.len()).map(of).collect(),
    };
    Ok(Rows(inner))
}

/// Bytes of an element of the lists, where all have the same; else 0.
fn child_width(list: &ColumnarValue) -> u64 {
    match list.data_type() {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            field.data_type().primitive_width().unwrap_or(0) as u64
        }
        _ => 0,
    }
}

fn array_of(value: &ColumnarValue) -> Result<ArrayRef> {
    Ok(match value {
        ColumnarValue::Array(array) => Arc::clone(array),
        ColumnarValue::Scalar(scalar) => scalar.to_array()?,
    })
}

/// What is no whole number is NULL: the function will say so.
fn integers(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Bytes of each value of a column; 0 of NULL.
pub(super) fn value_bytes(array: &ArrayRef) -> Vec<u64> {
    let rows = array.len();
    let all = |bytes: &dyn Fn(usize) -> u64| -> Vec<u64> {
        (0..rows).map(|row| if array.is_null(row) { 0 } else { bytes(row) }).collect()
    };
    // `place(row)`: where the elements of a row begin; those of a row end where those of the next begin.
    let lists = |place: &dyn Fn(usize) -> usize, child: &ArrayRef| -> Vec<u64> {
        if let Some(width) = child.data_type().primitive_width() {
            return all(&|row| ((place(row + 1) - place(row)) * width) as u64);
        }
        let (first, last) = (place(0), place(rows));
        let mut before = Vec::with_capacity(last - first + 1);
        before.push(0_u64);
        for bytes in value_bytes(&child.slice(first, last - first)) {
            before.push(before.last().copied().unwrap_or(0).saturating_add(bytes + PLACE));
        }
        all(&|row| before[place(row + 1) - first] - before[place(row) - first])
    };
    if rows == 0 {
        return Vec::new();
    }
    match array.data_type() {
        DataType::Null => vec![0; rows],
        DataType::Utf8 => all(&|row| array.as_string::<i32>().value_length(row) as u64),
        DataType::LargeUtf8 => all(&|row| array.as_string::<i64>().value_length(row) as u64),
        DataType::Binary => all(&|row| array.as_binary::<i32>().value_length(row) as u64),
        DataType::LargeBinary => all(&|row| array.as_binary::<i64>().value_length(row) as u64),
        // The length of a view is in its low 32 bits.
        DataType::Utf8View => all(&|row| u64::from(array.as_string_view().views()[row] as u32)),
        DataType::BinaryView => all(&|row| u64::from(array.as_binary_view().views()[row] as u32)),
        DataType::FixedSizeBinary(bytes) => all(&|_| *bytes as u64),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            lists(&|row| list.value_offsets()[row] as usize, list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            lists(&|row| list.value_offsets()[row] as usize, list.values())
        }
        DataType::FixedSizeList(_, length) => {
            let (list, length) = (array.as_fixed_size_list(), *length as usize);
            lists(&|row| row * length, &list.values().slice(list.value_offset(0) as usize, rows * length))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            lists(&|row| map.value_offsets()[row] as usize, &entries)
        }
        DataType::Struct(_) => {
            let columns: Vec<Vec<u64>> = array.as_struct().columns().iter().map(value_bytes).collect();
            all(&|row| columns.iter().map(|column| column[row]).sum())
        }
        DataType::Dictionary(..) => {
            let words = array.as_any_dictionary();
            if words.values().is_empty() {
                return vec![0; rows];
            }
            let (lengths, keys) = (value_bytes(words.values()), words.normalized_keys());
            all(&|row| lengths[keys[row]])
        }
        data_type => {
            let bytes = data_type.primitive_width().unwrap_or(16) as u64;
            all(&|_| bytes)
        }
    }
}
