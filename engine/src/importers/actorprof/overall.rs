//! `overall.txt`: cycles of every PE, between the output of everything else.
//!
//! ```text
//! tc [PE0] T_inside_finish (start - done): 1000 cycles                                   a component
//! tc [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 200, 850, 150, 1200        absolute
//! tc [PE0] TCOMM_PROFILING (T_MAIN/T_TOTAL, …), 0.166667, 0.708333, 0.125000             relative
//! Absolute [PE2] TCOMM_PROFILING (5, 90, 5)                                              as the paper prints it
//! … 1200tc [PE1] T_wait (done - finish): 3 cycles                                        two lines glued together
//! ```
//! A label and a PE may come several times: the n-th absolute line of them is the n-th sub-run. Relative lines say what the
//! absolute ones do, and are read only where there is no absolute one.

use std::collections::BTreeMap;

/// The components, and how their lines begin.
const COMPONENTS: [(&str, &str); 6] = [
    ("T_inside_finish", "T_inside_finish (start - done)"),
    ("T_wait", "T_wait (done - finish)"),
    ("T_outside_finish", "T_outside_finish (start - finish)"),
    ("T_sends", "T_sends (count="),
    ("T_send_in_process", "T_send_in_process (count="),
    ("T_process", "T_process (count="),
];

const PROFILING: &str = "TCOMM_PROFILING (";
const ABSOLUTE: &str = "T_MAIN, T_COMM, T_PROC, T_TOTAL)";
const RELATIVE: &str = "T_MAIN/T_TOTAL, T_COMM/T_TOTAL, T_PROC/T_TOTAL)";

/// A value of a PE.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) pe: i32,
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) unit: &'static str,
}

/// One value per PE: a label, and how often it came before.
#[derive(Debug, Default)]
pub(super) struct SubRun {
    pub(super) label: String,
    /// From 0.
    pub(super) number: usize,
    pub(super) values: Vec<Value>,
    /// Lines that its values come from.
    pub(super) records: u64,
}

/// What an `overall.txt` holds.
#[derive(Debug, Default)]
pub(super) struct Overall {
    /// In the order of their first values.
    pub(super) sub_runs: Vec<SubRun>,
    /// The program, by the line `Running <program> on <n> threads`.
    pub(super) program: Option<String>,
    /// Pieces of lines that speak of a PE, and lines of others.
    pub(super) records: u64,
    pub(super) foreign: u64,
    pub(super) relative: u64,
    pub(super) warnings: u64,
    /// Pieces that speak of a PE and cannot be read.
    pub(super) bad: u64,
    pub(super) bad_example: Option<String>,
    /// Unsigned numbers that stand for negative ones.
    pub(super) negative: u64,
    pub(super) negative_example: Option<String>,
    pub(super) largest_pe: Option<i32>,
    /// Components that wait for their absolute line.
    waiting: BTreeMap<(String, i32), Vec<Value>>,
    /// How many absolute lines a label and PE had.
    counts: BTreeMap<(String, i32), usize>,
    /// Relative lines without an absolute one so far.
    ratios: BTreeMap<(String, i32), [f64; 3]>,
}

/// What follows `[PE<i>] `.
#[derive(Debug, Clone, Copy)]
enum Said {
    Component(&'static str, u64),
    Absolute([u64; 3], Option<u64>),
    Relative([f64; 3]),
    Warning,
}

/// Reads the text.
pub(super) fn read(text: &str) -> Overall {
    let mut overall = Overall::default();
    for line in text.lines() {
        overall.line(line);
    }
    overall.finish();
    overall
}

/// Whether a text looks like one.
pub(super) fn looks_like(text: &str) -> bool {
    text.lines().any(|line| next_pe(line, 0).is_some_and(|(_, _, behind)| said(&line[behind..]).is_some()))
}

impl Overall {
    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let mut at = 0;
        let mut any = false;
        while let Some((bracket, pe, behind)) = next_pe(line, at) {
            any = true;
            self.records += 1;
            let label = line[at..bracket].trim();
            at = match said(&line[behind..]) {
                Some((said, length)) => {
                    self.take(label, pe, said, &line[bracket..]);
                    behind + length
                }
                None => {
                    self.bad += 1;
                    self.bad_example.get_or_insert_with(|| line.chars().take(80).collect());
                    behind
                }
            };
        }
        if any {
            return;
        }
        self.records += 1;
        self.foreign += 1;
        if self.program.is_none()
            && let Some(rest) = line.trim().strip_prefix("Running ")
            && let Some((program, _)) = rest.split_once(" on ")
        {
            self.program = Some(program.trim().to_owned());
        }
    }

    fn take(&mut self, label: &str, pe: i32, said: Said, text: &str) {
        self.largest_pe = self.largest_pe.max(Some(pe));
        // The paper's form has the words where the label would be.
        let label = match (label, &said) {
            ("Absolute", Said::Absolute(_, None)) => "",
            ("Relative", Said::Relative(_)) if !text.contains("/T_TOTAL") => "",
            (label, _) => label,
        };
        let key = (label.to_owned(), pe);
        match said {
            Said::Warning => self.warnings += 1,
            Said::Relative(ratios) => {
                self.relative += 1;
                if !self.counts.contains_key(&key) {
                    self.ratios.insert(key, ratios);
                }
            }
            Said::Component(name, cycles) => {
                let value = self.cycles(cycles, text);
                let waiting = self.waiting.entry(key.clone()).or_default();
                if waiting.iter().any(|known| known.name == name) {
                    // The absolute line of the one before never came.
                    self.close(&key);
                }
                let value = Value { pe, name, value, unit: "cycles" };
                self.waiting.entry(key).or_default().push(value);
            }
            Said::Absolute(parts, total) => {
                let parts = parts.map(|cycles| self.cycles(cycles, text));
                // The paper's form has no total: it is the sum by definition.
                let total = total.map_or(parts.iter().sum(), |total| self.cycles(total, text));
                let waiting = self.waiting.entry(key.clone()).or_default();
                for (name, value) in
                    [("T_MAIN", parts[0]), ("T_COMM", parts[1]), ("T_PROC", parts[2]), ("T_TOTAL", total)]
                {
                    waiting.push(Value { pe, name, value, unit: "cycles" });
                }
                self.close(&key);
            }
        }
    }

    /// Cycles as a number; the tool prints a negative one as 2^64 minus it.
    fn cycles(&mut self, cycles: u64, text: &str) -> f64 {
        if cycles >= 1 << 63 {
            self.negative += 1;
            self.negative_example.get_or_insert_with(|| text.chars().take(80).collect());
        }
        cycles.cast_signed() as f64
    }

    /// Moves what waits into the sub-run of its number.
    fn close(&mut self, key: &(String, i32)) {
        let Some(values) = self.waiting.remove(key).filter(|values| !values.is_empty()) else { return };
        let count = self.counts.entry(key.clone()).or_insert(0);
        let number = *count;
        *count += 1;
        let known = self.sub_runs.iter().position(|run| run.label == key.0 && run.number == number);
        let place = known.unwrap_or_else(|| {
            self.sub_runs.push(SubRun { label: key.0.clone(), number, ..SubRun::default() });
            self.sub_runs.len() - 1
        });
        let run = &mut self.sub_runs[place];
        // The four values of an absolute line are one record; relative lines are counted as such.
        let is_record =
            |value: &&Value| value.unit == "cycles" && !matches!(value.name, "T_COMM" | "T_PROC" | "T_TOTAL");
        run.records += values.iter().filter(is_record).count() as u64;
        run.values.extend(values);
    }

    fn finish(&mut self) {
        for key in self.waiting.keys().cloned().collect::<Vec<_>>() {
            self.close(&key);
        }
        for (key, ratios) in std::mem::take(&mut self.ratios) {
            if self.counts.contains_key(&key) {
                continue;
            }
            let values = ["T_MAIN/T_TOTAL", "T_COMM/T_TOTAL", "T_PROC/T_TOTAL"].into_iter().zip(ratios);
            let values = values.map(|(name, value)| Value { pe: key.1, name, value, unit: "ratio" });
            self.waiting.insert(key.clone(), values.filter(|value| value.value.is_finite()).collect());
            self.close(&key);
        }
    }
}

/// The next `[PE<digits>] ` at or after `at`: where it begins, the number, where it ends.
fn next_pe(line: &str, mut at: usize) -> Option<(usize, i32, usize)> {
    loop {
        let bracket = at + line.get(at..)?.find("[PE")?;
        let digits = line[bracket + 3..].bytes().take_while(u8::is_ascii_digit).count();
        let end = bracket + 3 + digits;
        if line[end..].starts_with("] ")
            && let Ok(pe) = line[bracket + 3..end].parse::<i32>()
            && i64::from(pe) <= super::line::PE_MAX
        {
            return Some((bracket, pe, end + 2));
        }
        at = bracket + 3;
    }
}

/// What stands behind a PE, and its length.
fn said(text: &str) -> Option<(Said, usize)> {
    if text.starts_with("T_TOTAL would be much bigger/smaller than T_finish") {
        return Some((Said::Warning, "T_TOTAL would be much bigger/smaller than T_finish".len()));
    }
    for (name, opening) in COMPONENTS {
        let Some(rest) = text.strip_prefix(opening) else { continue };
        // `count=` is printed with a wrong width and not used.
        let rest = if opening.ends_with('=') { &rest[rest.find(')')? + 1..] } else { rest };
        let rest = rest.strip_prefix(':')?.trim_start();
        let (cycles, rest) = unsigned(rest)?;
        let rest = rest.trim_start().strip_prefix("cycles")?;
        return Some((Said::Component(name, cycles), text.len() - rest.len()));
    }
    let rest = text.strip_prefix(PROFILING)?;
    if let Some(mut rest) = rest.strip_prefix(ABSOLUTE) {
        let mut values = [0u64; 4];
        for value in &mut values {
            let number;
            (number, rest) = unsigned(rest.trim_start().strip_prefix(',')?.trim_start())?;
            *value = number;
        }
        let said = Said::Absolute([values[0], values[1], values[2]], Some(values[3]));
        return Some((said, text.len() - rest.len()));
    }
    if let Some(mut rest) = rest.strip_prefix(RELATIVE) {
        let mut values = [0f64; 3];
        for value in &mut values {
            let number;
            (number, rest) = ratio(rest.trim_start().strip_prefix(',')?.trim_start())?;
            *value = number;
        }
        return Some((Said::Relative(values), text.len() - rest.len()));
    }
    // The paper: numbers within the parentheses.
    let (inner, behind) = rest.split_once(')')?;
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let [main, comm, process] = parts.as_slice() else { return None };
    let length = text.len() - behind.len();
    let whole = |text: &str| text.parse::<u64>().ok();
    if let (Some(main), Some(comm), Some(process)) = (whole(main), whole(comm), whole(process)) {
        return Some((Said::Absolute([main, comm, process], None), length));
    }
    let real = |text: &str| text.parse::<f64>().ok();
    Some((Said::Relative([real(main)?, real(comm)?, real(process)?]), length))
}

/// Digits at the beginning, and the rest.
fn unsigned(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// A ratio at the beginning, also `inf` and `-nan`, and the rest.
fn ratio(text: &str) -> Option<(f64, &str)> {
    for (word, value) in [("-nan", f64::NAN), ("nan", f64::NAN), ("-inf", f64::NEG_INFINITY), ("inf", f64::INFINITY)] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some((value, rest));
        }
    }
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-')).count();
    Some((text[..length].parse().ok()?, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(run: &SubRun) -> Vec<(i32, &'static str, f64)> {
        run.values.iter().map(|value| (value.pe, value.name, value.value)).collect()
    }

    #[test]
    fn sub_runs_glued_lines_and_the_papers_form() {
        let text = "Running tc on 2 threads\n\
            tc [PE0] T_wait (done - finish): 7 cyclestc [PE1] T_sends (count=-3): 8 cycles\n\
            tc [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 1, 18446744073709551614, 3, 2\n\
            tc [PE0] TCOMM_PROFILING (T_MAIN/T_TOTAL, T_COMM/T_TOTAL, T_PROC/T_TOTAL), -nan, inf, 0.5\n\
            tc [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 4, 5, 6, 15\n\
            Absolute [PE2] TCOMM_PROFILING (5, 90, 5)\nsomething [PE3] else\n";
        let overall = read(text);
        assert_eq!(overall.program.as_deref(), Some("tc"));
        let runs: Vec<_> = overall.sub_runs.iter().map(|run| (run.label.as_str(), run.number, run.records)).collect();
        assert_eq!(runs, [("tc", 0, 3), ("tc", 1, 1), ("", 0, 1)]);
        assert_eq!(
            values(&overall.sub_runs[0]),
            [
                (0, "T_wait", 7.0),
                (0, "T_MAIN", 1.0),
                (0, "T_COMM", -2.0),
                (0, "T_PROC", 3.0),
                (0, "T_TOTAL", 2.0),
                (1, "T_sends", 8.0)
            ]
        );
        assert_eq!(values(&overall.sub_runs[2])[3], (2, "T_TOTAL", 100.0));
        assert_eq!((overall.relative, overall.negative, overall.bad, overall.foreign), (1, 1, 1, 1));
        // Everything is a value, a relative line, foreign or bad.
        assert_eq!(overall.records, 5 + 1 + 1 + 1);
    }

    #[test]
    fn ratios_count_where_there_is_nothing_else() {
        let overall =
            read("a [PE1] TCOMM_PROFILING (T_MAIN/T_TOTAL, T_COMM/T_TOTAL, T_PROC/T_TOTAL), 0.25, 0.5, 0.25\n");
        assert_eq!(values(&overall.sub_runs[0])[1], (1, "T_COMM/T_TOTAL", 0.5));
        assert_eq!((overall.relative, overall.records, overall.sub_runs[0].records), (1, 1, 0));
    }
}
