//! `regexp_match` and `regexp_replace` as PostgreSQL has them.
//!
//! ```text
//! regexp_match('k=z', '(\w+)=(\d+)?(.*)')    [k, NULL, z]: DataFusion (55.2) leaves groups out that took no part, and others move up
//! regexp_replace('abc', 'b', '\\')           a\c: `\1` to `\9` are groups, `\&` is all that matched, `\\` a backslash; `$1` stands for itself
//! ```
//! Everything but the computation is delegated. Cost: linear in the text for each pattern; a pattern that is a column is compiled again
//! where it changes, some dozens of compiled ones are kept.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use regex::{Captures, NoExpand, Regex};

use crate::wrapped::of_wrapped;

/// The functions of this module.
pub const REGULAR: [&str; 2] = ["regexp_match", "regexp_replace"];

/// So many compiled patterns are kept.
const KNOWN: usize = 64;

/// The same function, with PostgreSQL's answers.
pub fn as_in_postgresql(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(AsInPostgresql { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsInPostgresql {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for AsInPostgresql {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let texts = args.args.iter().map(|arg| Texts::of(arg, rows)).collect::<Result<Vec<_>>>()?;
        let answer: ArrayRef = match (self.name(), texts.as_slice()) {
            ("regexp_match", [text, pattern, flags @ ..]) => matches(text, pattern, flags.first(), rows)?,
            (_, [text, pattern, replacement, flags @ ..]) => replaced(text, pattern, replacement, flags.first(), rows)?,
            (name, given) => return exec_err!("{name} does not take {} arguments", given.len()),
        };
        let answer = cast(&answer, args.return_field.data_type())?;
        Ok(ColumnarValue::Array(answer))
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<arrow::datatypes::FieldRef>;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

/// A text in each row.
enum Texts {
    Same(Option<String>),
    Each(StringArray),
}

impl Texts {
    fn of(value: &ColumnarValue, rows: usize) -> Result<Texts> {
        Ok(match value {
            ColumnarValue::Scalar(text) => Texts::Same(text.try_as_str().flatten().map(str::to_owned)),
            ColumnarValue::Array(_) => {
                Texts::Each(cast(&value.to_array(rows)?, &DataType::Utf8)?.as_string::<i32>().clone())
            }
        })
    }

    fn at(&self, row: usize) -> Option<&str> {
        match self {
            Texts::Same(text) => text.as_deref(),
            Texts::Each(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}

/// Patterns by their text and flags.
#[derive(Default)]
struct Patterns(HashMap<(String, String), Arc<Regex>>);

impl Patterns {
    fn get(&mut self, pattern: &str, flags: &str) -> Result<Arc<Regex>> {
        let key = (pattern.to_owned(), flags.to_owned());
        if let Some(known) = self.0.get(&key) {
            return Ok(Arc::clone(known));
        }
        let text = if flags.is_empty() { Cow::Borrowed(pattern) } else { format!("(?{flags}){pattern}").into() };
        let compiled = Regex::new(&text)
            .map_err(|error| ArrowError::ComputeError(format!("Regular expression did not compile: {error:?}")))?;
        if self.0.len() >= KNOWN {
            self.0.clear();
        }
        Ok(Arc::clone(self.0.entry(key).or_insert(Arc::new(compiled))))
    }
}

fn matches(text: &Texts, pattern: &Texts, flags: Option<&Texts>, rows: usize) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut found = ListBuilder::new(StringBuilder::new());
    let none = Texts::Same(Some(String::new()));
    let flags = flags.unwrap_or(&none);
    for row in 0..rows {
        let (Some(text), Some(pattern), Some(flags)) = (text.at(row), pattern.at(row), flags.at(row)) else {
            found.append_null();
            continue;
        };
        if flags.contains('g') {
            return exec_err!("regexp_match finds the first match: `g` is a flag of regexp_replace");
        }
        let pattern = patterns.get(pattern, flags)?;
        let Some(groups) = pattern.captures(text) else {
            found.append_null();
            continue;
        };
        // Without groups the match itself.
        let first = usize::from(groups.len() > 1);
        for group in groups.iter().skip(first) {
            found.values().append_option(group.map(|group| group.as_str()));
        }
        found.append(true);
    }
    Ok(Arc::new(found.finish()))
}

fn replaced(
    text: &Texts,
    pattern: &Texts,
    replacement: &Texts,
    flags: Option<&Texts>,
    rows: usize,
) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let none = Texts::Same(Some(String::new()));
    let flags = flags.unwrap_or(&none);
    let mut answer = StringBuilder::new();
    for row in 0..rows {
        let (Some(text), Some(pattern), Some(replacement), Some(flags)) =
            (text.at(row), pattern.at(row), replacement.at(row), flags.at(row))
        else {
            answer.append_null();
            continue;
        };
        let limit = usize::from(!flags.contains('g'));
        let flags = flags.replace('g', "");
        let pattern = patterns.get(pattern, &flags)?;
        let parts = parts(replacement);
        answer.append_value(match parts.as_slice() {
            [] => pattern.replacen(text, limit, NoExpand("")),
            [Part::Text(plain)] => pattern.replacen(text, limit, NoExpand(plain)),
            parts => pattern.replacen(text, limit, |groups: &Captures<'_>| {
                let of = |part: &Part<'_>| match part {
                    Part::Text(text) => (*text).to_owned(),
                    Part::Group(group) => groups.get(*group).map_or(String::new(), |group| group.as_str().to_owned()),
                };
                parts.iter().map(of).collect::<String>()
            }),
        });
    }
    Ok(Arc::new(answer.finish()))
}

/// What stands in the place of a match.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    /// A group of the pattern; 0 is all that matched.
    Group(usize),
}

fn parts(replacement: &str) -> Vec<Part<'_>> {
    let mut parts = vec![];
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        let (text, escape) = rest.split_at(at);
        let group = match escape.as_bytes().get(1) {
            Some(b'&') => Some(Part::Group(0)),
            Some(digit @ b'1'..=b'9') => Some(Part::Group(usize::from(digit - b'0'))),
            Some(b'\\') => Some(Part::Text("\\")),
            _ => None,
        };
        let end = if group.is_some() { 2 } else { 1 };
        parts.push(Part::Text(text));
        parts.push(group.unwrap_or(Part::Text("\\")));
        rest = &escape[end..];
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_postgresql() {
        use Part::{Group, Text};
        let cases: [(&str, &[Part<'_>]); 7] = [
            (r"a\1b\&", &[Text("a"), Group(1), Text("b"), Group(0)]),
            (r"\\1", &[Text("\\"), Text("1")]),
            (r"\12", &[Group(1), Text("2")]),
            ("$1", &[Text("$1")]),
            (r"\0\", &[Text("\\"), Text("0"), Text("\\")]),
            (r"\é", &[Text("\\"), Text("é")]),
            ("", &[]),
        ];
        for (replacement, expected) in cases {
            assert_eq!(parts(replacement), expected, "{replacement}");
        }
    }
}
