//! The summary of a CI job: a table of the checks, then those that failed, with their rows.

use std::fmt::Write;

use tq_udfs::ticks::Tick;

use super::super::{Outcome, Verdict};
use super::{ROWS_SHOWN, details, one_line, totals};
use crate::errors::Failure;
use crate::output::markdown::{escape, fenced, table};
use crate::text::visible::visible;
use crate::text::words::counted;

pub(super) fn summary(outcomes: &[Outcome], tick: Tick) -> Result<String, Failure> {
    let mut text = format!("## tq check\n\n{}\n\n| | query | check |\n| --- | --- | --- |\n", totals(outcomes));
    for outcome in outcomes {
        let word = match &outcome.verdict {
            Verdict::Held(_) => "ok",
            Verdict::Failed(_) => "**failed**",
            Verdict::NotRun(_) => "**could not run**",
            Verdict::Skipped(_) => "skipped",
            Verdict::Noted(_) => "note",
        };
        let _ = writeln!(text, "| {word} | {} | {} |", escape(&outcome.query), escape(&one_line(outcome)));
    }
    for outcome in outcomes {
        evidence(&mut text, outcome, tick)?;
    }
    Ok(text)
}

/// What a failed check says, as tables where it has rows.
fn evidence(text: &mut String, outcome: &Outcome, tick: Tick) -> Result<(), Failure> {
    let lines = details(outcome, tick)?;
    if lines.is_empty() {
        return Ok(());
    }
    let _ = writeln!(text, "\n### {}: {}\n", escape(&outcome.query), escape(&one_line(outcome)));
    let more = match &outcome.verdict {
        Verdict::Failed(evidence) => {
            if let Some(rows) = &evidence.rows
                && rows.num_rows() > 0
            {
                let shown = rows.slice(0, rows.num_rows().min(ROWS_SHOWN));
                text.push_str(&table(&shown, tick)?);
                if evidence.count > shown.num_rows() {
                    let _ = writeln!(text, "\n… and {}", counted(evidence.count - shown.num_rows(), "more row"));
                }
            }
            &evidence.more
        }
        _ => &lines,
    };
    if !more.is_empty() {
        let more: Vec<_> = more.iter().map(|line| visible(line)).collect();
        let _ = write!(text, "\n{}", fenced(&more.join("\n")));
    }
    Ok(())
}
