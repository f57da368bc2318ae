//! JUnit XML: a suite per query, a case per check. No times and no host, so that the same traces give the same bytes.

use std::fmt::Write;

use tq_udfs::ticks::Tick;

use super::super::{Outcome, Verdict};
use super::{details, one_line};
use crate::errors::Failure;
use crate::text::visible::push_visible;

pub(super) fn document(outcomes: &[Outcome], tick: Tick) -> Result<String, Failure> {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"tq check\" {}>", counts(outcomes));
    for suite in outcomes.chunk_by(|one, other| (&one.query, &one.file) == (&other.query, &other.file)) {
        let Some(first) = suite.first() else { continue };
        let _ = writeln!(text, "  <testsuite name=\"{}\" {}>", escape(&first.query), counts(suite));
        for outcome in suite {
            case(&mut text, outcome, tick)?;
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    Ok(text)
}

fn case(text: &mut String, outcome: &Outcome, tick: Tick) -> Result<(), Failure> {
    // A case needs a name, also where no check came of it.
    let name = match (outcome.what.as_str(), &outcome.verdict) {
        ("", Verdict::Noted(_)) => "comparison",
        ("", _) => "reading",
        (what, _) => what,
    };
    let _ = write!(text, "    <testcase classname=\"{}\" name=\"{}\"", escape(&outcome.query), escape(name));
    if !outcome.file.is_empty() {
        let _ = write!(text, " file=\"{}\" line=\"{}\"", escape(&outcome.file), outcome.line);
    }
    let element = match &outcome.verdict {
        Verdict::Held(_) => {
            text.push_str("/>\n");
            return Ok(());
        }
        Verdict::Failed(_) => "failure",
        Verdict::NotRun(_) => "error",
        // JUnit has no word for a remark.
        Verdict::Skipped(_) | Verdict::Noted(_) => "skipped",
    };
    let details = details(outcome, tick)?.join("\n");
    let _ = writeln!(
        text,
        ">\n      <{element} message=\"{}\">{}</{element}>",
        escape(&one_line(outcome)),
        escape(&details).replace("&#10;", "\n")
    );
    text.push_str("    </testcase>\n");
    Ok(())
}

fn counts(outcomes: &[Outcome]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| outcomes.iter().filter(|outcome| wanted(&outcome.verdict)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        outcomes.len(),
        count(|verdict| matches!(verdict, Verdict::Failed(_))),
        count(|verdict| matches!(verdict, Verdict::NotRun(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_) | Verdict::Noted(_)))
    )
}

/// Text of XML 1.0, and nothing of it hidden; what XML does not allow becomes a replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => push_visible(c, &mut escaped),
        }
    }
    escaped
}
