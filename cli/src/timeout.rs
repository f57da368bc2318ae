//! `--timeout`: how long a question may take.
//!
//! A question is one statement or saved query: planning, running and writing its answer. Each has the whole limit to itself, so
//! that in a suite or on a page a late one does not take the others along. Reading the traces does not count.

use std::sync::OnceLock;
use std::time::Duration;

use crate::errors::Problem;

static LIMIT: OnceLock<Duration> = OnceLock::new();

/// How long a question may take.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeoutArgs {
    /// How long each query may take, e.g. `30s`, `500ms` or `2m`; reading the traces does not count [default: any time]
    #[arg(long, value_name = "DURATION", value_parser = parse)]
    timeout: Option<Duration>,
}

impl TimeoutArgs {
    /// From now on, questions of this process end after so long.
    pub(crate) fn start(self) {
        if let Some(limit) = self.timeout {
            // One command is run, once.
            let _ = LIMIT.set(limit);
        }
    }
}

/// The limit of a question.
pub(crate) fn limit() -> Option<Duration> {
    LIMIT.get().copied()
}

/// What is said of a question that took longer.
pub(crate) fn late(limit: Duration) -> Problem {
    let limit = in_words(limit);
    let problem = Problem::new(format!("the query took longer than {limit}, the limit of `--timeout`"));
    let problem = problem.hint("give it more time, or ask for less: fewer runs, a time slice with `--from` and `--to`, a join with a condition");
    Problem { is_late: true, ..problem }
}

/// Units from long to short, and how many milliseconds they have.
const UNITS: [(&str, u64); 5] = [("h", 3_600_000), ("min", 60_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

fn in_words(limit: Duration) -> String {
    let milliseconds = limit.as_millis() as u64;
    let whole = UNITS.iter().filter(|(name, _)| *name != "m").find(|(_, unit)| milliseconds.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(&UNITS[UNITS.len() - 1]);
    format!("{} {name}", milliseconds / unit)
}

fn parse(text: &str) -> Result<Duration, String> {
    let help = || "write it like `30s`, `500ms`, `2m` or `1h`".to_owned();
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(help)?;
    let (number, unit) = (&text[..unit_at], text[unit_at..].trim());
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(help)?;
    let number: f64 = number.parse().map_err(|_| help())?;
    let milliseconds = (number * *unit as f64).round();
    // A thousand years are any time.
    if !(1.0..=3.2e13).contains(&milliseconds) {
        return Err(format!("at least 1ms is needed; {}", help()));
    }
    Ok(Duration::from_millis(milliseconds as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, milliseconds) in
            [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("2 min", 120_000), ("1.5h", 5_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "30", "s", "-1s", "0s", "0.1ms", "1e3s", "5 parsecs", "1.2.3s", "1s2", "99999999999999999h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_told_in_the_longest_whole_unit() {
        for (milliseconds, words) in [(30_000, "30 s"), (1_500, "1500 ms"), (120_000, "2 min"), (3_600_000, "1 h")] {
            assert_eq!(in_words(Duration::from_millis(milliseconds)), words);
        }
    }
}
