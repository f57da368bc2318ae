//! Annotations of GitHub Actions: `::error file=checks/a.sql,line=3,title=a::what`.

use super::super::{Outcome, Verdict};
use super::one_line;
use crate::text::runner::annotation;
use crate::text::visible::visible;

pub(super) fn annotations(outcomes: &[Outcome]) -> Vec<String> {
    let of = |outcome: &Outcome| {
        let level = match &outcome.verdict {
            Verdict::Held(_) => return None,
            Verdict::Skipped(_) | Verdict::Noted(_) => "notice",
            Verdict::Failed(_) | Verdict::NotRun(_) => "error",
        };
        let title = format!("tq check: {}", visible(&outcome.query));
        let mut message = one_line(outcome);
        // Nothing else is seen beside the pull request.
        if let Verdict::Failed(evidence) = &outcome.verdict
            && !evidence.causes.is_empty()
        {
            let causes = evidence.causes.join("; ");
            message.push_str(&format!("; first of what changed: {}", visible(&causes)));
        }
        Some(annotation(level, &outcome.file, outcome.line, &title, &message))
    };
    outcomes.iter().filter_map(of).collect()
}
