//! Workflow commands of GitHub Actions: `::error file=checks/a.sql,line=3,title=a::what`.

use super::super::{Outcome, Verdict};
use super::one_line;

pub(super) fn annotations(outcomes: &[Outcome]) -> Vec<String> {
    let annotation = |outcome: &Outcome| {
        let level = match &outcome.verdict {
            Verdict::Held(_) => return None,
            Verdict::Skipped(_) => "notice",
            Verdict::Failed(_) | Verdict::NotRun(_) => "error",
        };
        let (file, title) = (property(&outcome.file), property(&format!("tq check: {}", outcome.query)));
        Some(format!("::{level} file={file},line={},title={title}::{}", outcome.line, message(&one_line(outcome))))
    };
    outcomes.iter().filter_map(annotation).collect()
}

fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
