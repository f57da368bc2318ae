//! `glob(pattern, text)` and the operator `text GLOB pattern`: file name patterns, as SQLite and Perfetto have them.
//!
//! Life of the data: the pattern becomes steps once per batch (or per row, where it is a column) → each distinct word of a
//! dictionary is matched once, other text once per row. Matching backtracks to the last `*` only, so it takes at most
//! (length of the pattern) × (length of the text) steps.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::{ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion_macros::user_doc;

use crate::spans::named;

/// `glob(pattern, text)`. Shape: one `BOOLEAN` per row.
#[user_doc(
    doc_section(label = "Text"),
    description = "Whether a text matches a file name pattern; the operator `text GLOB pattern` (and `NOT GLOB`) is the same. \
        `*` stands for any characters, `?` for one, `[a-z_]` for one of a set, `[^a-z]` for one that is not in it; the \
        whole text must match, and matching is case-sensitive.\n\n\
        Rows: one per row. Units: none. NULL in either gives NULL. A set that is not closed matches nothing.\n\n\
        Errors: arguments that are no text. Cost: the length of the text, times that of the pattern at worst; once per \
        distinct word for names and other columns of words.\n\n\
        Source: SQLite's GLOB, which PerfettoSQL has; unlike LIKE, which is there too.",
    syntax_example = "glob(pattern, text)",
    sql_example = "SELECT name, name GLOB 'aten::*mm' AS matches FROM (VALUES ('aten::addmm'), ('aten::relu')) AS tasks(name)",
    argument(name = "pattern", description = "The pattern (text)."),
    argument(name = "text", description = "The text that must match.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    signature: Signature,
}

impl Glob {
    /// The function.
    pub fn new() -> Self {
        Glob { signature: named(Signature::user_defined(Volatility::Immutable), &["pattern", "text"]) }
    }
}

impl Default for Glob {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for Glob {
    fn name(&self) -> &str {
        "glob"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [pattern, text] = types else { return plan_err!("glob takes a pattern and a text") };
        let is_text = |data_type: &DataType| data_type.is_string() || data_type.is_null();
        let words = matches!(text, DataType::Dictionary(_, values) if is_text(values));
        let pattern_words = matches!(pattern, DataType::Dictionary(_, values) if is_text(values));
        if !(is_text(pattern) || pattern_words) || !(is_text(text) || words) {
            return plan_err!("glob takes a pattern and a text, not {pattern} and {text}");
        }
        Ok(vec![DataType::Utf8, if words { text.clone() } else { DataType::Utf8 }])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [pattern, text] = args.args.as_slice() else { return internal_err!("glob takes two arguments") };
        let constant = matches!((pattern, text), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let texts = text.to_array(rows)?;
        let matched: ArrayRef = match pattern {
            ColumnarValue::Scalar(pattern) => match pattern.try_as_str().flatten() {
                None => Arc::new(BooleanArray::new_null(rows)),
                Some(pattern) => match_words(&Pattern::new(pattern), &texts)?,
            },
            ColumnarValue::Array(patterns) => {
                let texts = cast(&texts, &DataType::Utf8)?;
                let pairs = patterns.as_string::<i32>().iter().zip(texts.as_string::<i32>());
                Arc::new(
                    pairs.map(|(pattern, text)| Some(Pattern::new(pattern?).matches(text?))).collect::<BooleanArray>(),
                )
            }
        };
        if constant {
            return Ok(ColumnarValue::Scalar(datafusion_common::ScalarValue::try_from_array(&matched, 0)?));
        }
        Ok(ColumnarValue::Array(matched))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

/// Of a dictionary, its words are matched and the answers spread over the rows.
fn match_words(pattern: &Pattern, texts: &ArrayRef) -> Result<ArrayRef> {
    let Some(words) = texts.as_any_dictionary_opt() else {
        return Ok(Arc::new(match_all(pattern, texts.as_string::<i32>())));
    };
    let values = cast(words.values(), &DataType::Utf8)?;
    Ok(take(&match_all(pattern, values.as_string::<i32>()), words.keys(), None)?)
}

fn match_all(pattern: &Pattern, texts: &StringArray) -> BooleanArray {
    texts.iter().map(|text| text.map(|text| pattern.matches(text))).collect()
}

/// A pattern, step by step.
struct Pattern(Vec<Step>);

enum Step {
    /// `*`
    Any,
    /// `?`
    One,
    Character(char),
    /// Ranges of characters, and whether it is any but those.
    Set(Vec<(char, char)>, bool),
}

impl Pattern {
    fn new(pattern: &str) -> Pattern {
        let mut steps = Vec::new();
        let mut rest = pattern.chars();
        while let Some(character) = rest.next() {
            steps.push(match character {
                '*' => Step::Any,
                '?' => Step::One,
                '[' => {
                    let set = rest.as_str();
                    let negated = set.starts_with('^');
                    let set = set.strip_prefix('^').unwrap_or(set);
                    // A bracket that comes first is one of the characters.
                    match set.char_indices().skip(1).find(|(_, character)| *character == ']') {
                        Some((end, _)) => {
                            rest = set[end + 1..].chars();
                            Step::Set(ranges(&set[..end]), negated)
                        }
                        None => {
                            rest = "".chars();
                            Step::Set(Vec::new(), false)
                        }
                    }
                }
                other => Step::Character(other),
            });
        }
        Pattern(steps)
    }

    fn matches(&self, text: &str) -> bool {
        let (mut step, mut rest) = (0, text.chars());
        // Behind the last `*`: the step, and the text that it has not taken.
        let mut retry = None;
        loop {
            let advanced = match self.0.get(step) {
                Some(Step::Any) => {
                    step += 1;
                    retry = Some((step, rest.clone()));
                    continue;
                }
                Some(one) => rest.next().map(|character| one.takes(character)),
                None if rest.as_str().is_empty() => return true,
                None => Some(false),
            };
            match (advanced, &mut retry) {
                (Some(true), _) => step += 1,
                (Some(false), Some((from, left))) => {
                    left.next();
                    (step, rest) = (*from, left.clone());
                }
                // The text is too short, or no `*` can give way.
                _ => return false,
            }
        }
    }
}

impl Step {
    fn takes(&self, character: char) -> bool {
        match self {
            Step::Any | Step::One => true,
            Step::Character(wanted) => *wanted == character,
            Step::Set(ranges, negated) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&character)) != *negated
            }
        }
    }
}

/// `a-z_` as ranges; a dash at either end is a character.
fn ranges(set: &str) -> Vec<(char, char)> {
    let characters: Vec<char> = set.chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        match characters[at + 1..] {
            ['-', last, ..] => {
                ranges.push((first, last));
                at += 3;
            }
            _ => {
                ranges.push((first, first));
                at += 1;
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_in_sqlite() {
        for (pattern, yes, no) in [
            ("a*c", &["ac", "abc", "a*c", "aXcYc"][..], &["ab", "acd", "Ac", ""][..]),
            ("*", &["", "x"], &[]),
            ("", &[""], &["x"]),
            ("??", &["ab", "üé"], &["a", "abc", ""]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x", "-x"]),
            ("[^a-c]x", &["dx", "-x"], &["ax", "x"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[abc", &[], &["a", "[abc", ""]),
            ("*aab*", &["aaab", "xaabx"], &["aaxb"]),
            ("aten::*mm", &["aten::mm", "aten::addmm"], &["aten::mmx"]),
        ] {
            for (texts, expected) in [(yes, true), (no, false)] {
                for text in texts {
                    assert_eq!(Pattern::new(pattern).matches(text), expected, "{text} GLOB {pattern}");
                }
            }
        }
    }

    /// By recursion, straight from the definition.
    fn naive(steps: &[Step], text: &[char]) -> bool {
        match (steps, text) {
            ([], []) => true,
            ([Step::Any, steps @ ..], _) => (0..=text.len()).any(|from| naive(steps, &text[from..])),
            ([step, steps @ ..], [first, text @ ..]) => step.takes(*first) && naive(steps, text),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn equals_the_definition(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let pattern = Pattern::new(&pattern);
            let characters: Vec<char> = text.chars().collect();
            prop_assert_eq!(pattern.matches(&text), naive(&pattern.0, &characters));
        }
    }
}
