//! Prints outcomes as lines, and in the forms that CI systems read: one file each.

mod github;
mod junit;
mod lines;
mod markdown;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use tq_udfs::ticks::Tick;

use super::{Outcome, Verdict};
use crate::args::CheckArgs;
use crate::errors::{Failure, Problem};
use crate::output::buffer::Buffer;
use crate::output::{self, Look, Output, TableOutput, print as print_text, print_as_it_is};
use crate::text::runner::{Spelling, harmless};
use crate::text::visible::visible;
use crate::text::words::counted;
use crate::{files, terminal};

/// Rows that are shown of those that offend.
const ROWS_SHOWN: usize = 10;

/// Writes everything that was asked for. A file that cannot be written takes nothing else along.
pub(super) fn print(outcomes: &[Outcome], args: &CheckArgs, tick: Tick) -> Result<(), Failure> {
    say(outcomes, args, tick)?;
    let junit = || match &args.junit {
        Some(file) => files::write(file, &harmless(&junit::document(outcomes, tick)?, Spelling::Reference)),
        None => Ok(()),
    };
    let summary = || match &args.markdown {
        // A reference of HTML is text within a fence.
        Some(Some(file)) => append(file, &harmless(&markdown::summary(outcomes, tick)?, Spelling::Escape)),
        _ => Ok(()),
    };
    let (junit, summary) = (junit(), summary());
    junit.and(summary)
}

/// Says the outcomes on standard output: as lines, or as the summary of a job where that is wanted instead.
fn say(outcomes: &[Outcome], args: &CheckArgs, tick: Tick) -> Result<(), Failure> {
    let instead = matches!(args.markdown, Some(None));
    if args.github {
        let annotations = github::annotations(outcomes);
        // Beside a summary in stdout they go where messages go; the runner reads both.
        if instead {
            annotations.iter().for_each(|annotation| terminal::command(annotation));
        } else {
            print_as_it_is(&annotations.iter().map(|annotation| format!("{annotation}\n")).collect::<String>())?;
        }
    }
    if instead {
        let mut stdout = output::stdout(Spelling::Reference);
        stdout.write_all(markdown::summary(outcomes, tick)?.as_bytes())?;
        return Ok(stdout.flush()?);
    }
    print_text(&lines::lines(outcomes, tick)?)
}

/// A job summary is written by several steps: each adds to it.
fn append(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Problem::file("write", file, &error);
    let mut open = match files::is_other(file) {
        true => files::open_other(file)?,
        false => File::options().append(true).create(true).open(file).map_err(failed)?,
    };
    Ok(open.write_all(text.as_bytes()).map_err(failed)?)
}

/// The outcomes as lines.
pub(crate) fn lines(outcomes: &[Outcome], tick: Tick) -> Result<String, Failure> {
    lines::lines(outcomes, tick)
}

/// Rows as a table of plain text.
pub(crate) fn table(rows: &RecordBatch, tick: Tick) -> Result<String, Failure> {
    let buffer = Buffer::default();
    let mut output = TableOutput::new(buffer.writer(), Look::plain(tick));
    output.begin(&rows.schema())?;
    output.rows(rows)?;
    output.end()?;
    output.close()?;
    let text = buffer.text();
    // The count of rows stands in the summary.
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.last().is_some_and(|line| line.starts_with('(') && line.ends_with(')')) {
        lines.pop();
    }
    Ok(lines.join("\n"))
}

/// The offending rows, cut to a handful, and what else there is to say: line by line.
fn details(outcome: &Outcome, tick: Tick) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    match &outcome.verdict {
        Verdict::Failed(evidence) => {
            if let Some(rows) = &evidence.rows
                && rows.num_rows() > 0
            {
                let shown = rows.slice(0, rows.num_rows().min(ROWS_SHOWN));
                lines.extend(table(&shown, tick)?.lines().map(str::to_owned));
                if evidence.count > shown.num_rows() {
                    lines.push(format!("… and {}", counted(evidence.count - shown.num_rows(), "more row")));
                }
            }
            let limit = if evidence.is_change { usize::MAX } else { 2 * ROWS_SHOWN };
            lines.extend(evidence.more.iter().take(limit).cloned());
            if evidence.more.len() > limit {
                lines.push(format!("… and {}", counted(evidence.more.len() - limit, "more row")));
            }
        }
        Verdict::NotRun(problem) => {
            lines.extend(problem.message.lines().skip(1).map(str::to_owned));
            if let Some(excerpt) = &problem.excerpt {
                lines.extend(excerpt.lines());
            }
            lines.extend(problem.hints.iter().map(|hint| format!("hint: {hint}")));
        }
        Verdict::Held(_) | Verdict::Skipped(_) | Verdict::Noted(_) => {}
    }
    lines.iter_mut().for_each(|line| *line = visible(line).into_owned());
    Ok(lines)
}

/// What happened, in one line.
fn one_line(outcome: &Outcome) -> String {
    let text = match &outcome.verdict {
        Verdict::Held(on) if on.is_empty() => outcome.what.clone(),
        Verdict::Held(on) => format!("{} ({on})", outcome.what),
        Verdict::Failed(evidence) => format!("{}: {}", outcome.what, evidence.summary),
        Verdict::NotRun(problem) => {
            let place = problem.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
            let first = problem.message.lines().next().unwrap_or_default();
            if outcome.what.is_empty() {
                format!("{place}{first}")
            } else {
                format!("{}: {place}{first}", outcome.what)
            }
        }
        Verdict::Skipped(why) => format!("{}: {why}", outcome.what),
        Verdict::Noted(what) => what.clone(),
    };
    visible(&text).into_owned()
}

/// `5 checks: 3 held, 1 failed, 1 could not run`.
fn totals(outcomes: &[Outcome]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| outcomes.iter().filter(|outcome| wanted(&outcome.verdict)).count();
    let parts = [
        (count(|verdict| matches!(verdict, Verdict::Held(_))), "held"),
        (count(|verdict| matches!(verdict, Verdict::Failed(_))), "failed"),
        (count(|verdict| matches!(verdict, Verdict::NotRun(_))), "could not run"),
        (count(|verdict| matches!(verdict, Verdict::Skipped(_))), "skipped"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let checks = outcomes.len() - count(|verdict| matches!(verdict, Verdict::Noted(_)));
    format!("{}: {}", counted(checks, "check"), parts.join(", "))
}
