//! One line per check, the offending rows under it, the totals at the end.

use std::fmt::Write;

use tq_udfs::ticks::Tick;

use super::super::{Outcome, Verdict};
use super::{details, one_line, totals};
use crate::errors::Failure;
use crate::text::visible::visible;

pub(super) fn lines(outcomes: &[Outcome], tick: Tick) -> Result<String, Failure> {
    let mut text = String::new();
    for outcome in outcomes {
        let word = match &outcome.verdict {
            Verdict::Held(_) => "ok    ",
            Verdict::Failed(_) => "FAILED",
            Verdict::NotRun(_) => "ERROR ",
            Verdict::Skipped(_) => "skip  ",
            Verdict::Noted(_) => "note  ",
        };
        let _ = writeln!(text, "{word} {}: {}", visible(&outcome.query), one_line(outcome));
        for line in details(outcome, tick)? {
            let _ = writeln!(text, "{}", format!("         {line}").trim_end());
        }
    }
    let _ = writeln!(text, "{}", totals(outcomes));
    Ok(text)
}
