//! `expect same as:`: writes an answer as CSV and finds how it differs from the expected one.

use std::collections::HashMap;

use datafusion::arrow::array::RecordBatch;

use crate::errors::Failure;
use crate::format::Format;
use crate::output::buffer::Buffer;
use crate::output::{self, Look, Picture};
use crate::text::words::counted;

/// What makes two answers different.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) summary: String,
    /// `-` before a row that was expected and is not there, `+` before one that was not expected.
    pub(super) lines: Vec<String>,
}

/// An answer as `tq query --format csv` writes it.
pub(super) fn text(answer: &RecordBatch) -> Result<String, Failure> {
    let buffer = Buffer::default();
    let look = Look::plain(tq_udfs::ticks::Tick::Nanosecond);
    let mut output = output::create(Format::Csv, buffer.writer(), &look, None, Picture::default());
    output.begin(&answer.schema())?;
    output.rows(answer)?;
    output.end()?;
    output.close()?;
    Ok(buffer.text())
}

/// How an answer differs from the expected one; `None` when it does not. Line ends do not matter, the order does.
pub(super) fn difference(expected: &str, current: &str) -> Option<Difference> {
    let (expected, current): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), current.lines().collect());
    if expected == current {
        return None;
    }
    let (head, current_head) = (expected.first().copied().unwrap_or(""), current.first().copied().unwrap_or(""));
    if head != current_head {
        let lines = vec![format!("- {head}"), format!("+ {current_head}")];
        return Some(Difference { summary: "the columns differ".to_owned(), lines });
    }
    let missing = without(&expected, &current);
    let added = without(&current, &expected);
    if missing.is_empty() && added.is_empty() {
        let at = expected.iter().zip(&current).position(|(one, other)| one != other).unwrap_or(0);
        let lines = vec![format!("- {}", expected[at]), format!("+ {}", current[at])];
        return Some(Difference { summary: format!("the same rows in another order, from row {at} on"), lines });
    }
    let summary = format!("{} missing, {} unexpected", counted(missing.len(), "row"), counted(added.len(), "row"));
    let lines = missing.iter().map(|row| format!("- {row}")).chain(added.iter().map(|row| format!("+ {row}")));
    Some(Difference { summary, lines: lines.collect() })
}

/// The lines of `all` that `others` does not have, as often as it lacks them.
fn without<'a>(all: &[&'a str], others: &[&'a str]) -> Vec<&'a str> {
    let mut there: HashMap<&str, usize> = HashMap::new();
    for line in others {
        *there.entry(line).or_default() += 1;
    }
    let is_missing = |line: &&&str| match there.get_mut(**line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    all.iter().filter(is_missing).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared() {
        let summary = |one, other| difference(one, other).map(|difference| difference.summary);
        assert_eq!(summary("a\n1\n", "a\r\n1\r\n"), None);
        assert_eq!(summary("a\n1\n2\n", "a\n2\n1\n").unwrap(), "the same rows in another order, from row 1 on");
        assert_eq!(summary("a\n1\n1\n", "a\n1\n").unwrap(), "1 row missing, 0 rows unexpected");
        assert_eq!(summary("a\n1\n", "b\n1\n").unwrap(), "the columns differ");
        assert_eq!(summary("", "a\n").unwrap(), "the columns differ");
        assert_eq!(difference("a\n1\n2\n", "a\n2\n3\n").unwrap().lines, ["- 1", "+ 3"]);
    }
}
