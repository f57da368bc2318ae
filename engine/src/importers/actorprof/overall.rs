//! `overall.txt`: cycles of every PE, mixed with whatever else the program printed.
//!
//! ```text
//! tc [PE0] T_inside_finish (start - done): 1000 cycles                                   a component
//! tc [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 200, 850, 150, 1200        absolute
//! tc [PE0] TCOMM_PROFILING (T_MAIN/T_TOTAL, …), 0.166667, 0.708333, 0.125000             relative
//! Absolute [PE2] TCOMM_PROFILING (5, 90, 5)                                              as the paper prints it
//! … 1200tc [PE1] T_wait (done - finish): 3 cycles                                        two lines glued together
//! tc [PE0] T_inside_fitc [PE1] T_wait (done - finish): 3 cycles                          a torn line before the label
//! ```
//! Life of the data: the text is split into pieces, one for each `[PE<i>] `; when all are known, labels are told from text
//! that happens to stand before them; then each piece goes into the sub-run of its label and PE.
//!
//! A label and a PE may occur several times: the n-th line of a PE belongs to the n-th sub-run. Relative lines repeat the
//! absolute ones, and are read only where a sub-run has no absolute one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// Where they are, by label and number.
    places: HashMap<(String, usize), usize>,
    /// The program, by the line `Running <program> on <n> threads`.
    pub(super) program: Option<String>,
    /// Pieces of lines about a PE, and lines of other programs.
    pub(super) records: u64,
    pub(super) foreign: u64,
    pub(super) relative: u64,
    pub(super) warnings: u64,
    /// Pieces about a PE that cannot be read.
    pub(super) bad: u64,
    pub(super) bad_example: Option<String>,
    /// Unsigned numbers that stand for negative ones.
    pub(super) negative: u64,
    pub(super) negative_example: Option<String>,
    /// Pieces that the end of the text cuts.
    pub(super) torn: u64,
    pub(super) torn_example: Option<String>,
    pub(super) largest_pe: Option<i32>,
    /// The sub-run that a label and PE are in.
    open: BTreeMap<(String, i32), OpenSubRun>,
}

/// What a PE said so far in its last sub-run.
#[derive(Debug, Default)]
struct OpenSubRun {
    /// Its place among the sub-runs, and its number.
    place: usize,
    number: usize,
    components: Vec<&'static str>,
    has_absolute: bool,
    ratios: Option<[f64; 3]>,
}

impl Said {
    /// Whether it has the paper's form.
    fn is_paper(&self) -> bool {
        matches!(self, Said::Absolute { total: None, .. } | Said::Relative { is_paper: true, .. })
    }
}

impl OpenSubRun {
    /// Whether this begins the next sub-run: a PE says everything once, components first, ratios last.
    fn is_before(&self, said: &Said) -> bool {
        match said {
            Said::Component(name, _) => self.has_absolute || self.ratios.is_some() || self.components.contains(name),
            Said::Absolute { .. } => self.has_absolute || self.ratios.is_some(),
            Said::Relative { .. } => self.ratios.is_some(),
            Said::Warning => false,
        }
    }
}

/// What follows `[PE<i>] `.
#[derive(Debug, Clone, Copy)]
enum Said {
    Component(&'static str, u64),
    /// The paper's form has no total.
    Absolute {
        parts: [u64; 3],
        total: Option<u64>,
    },
    Relative {
        ratios: [f64; 3],
        is_paper: bool,
    },
    Warning,
}

impl Said {
    /// The name of what a PE reports only once.
    fn what(self) -> Option<&'static str> {
        match self {
            Said::Component(name, _) => Some(name),
            Said::Absolute { .. } => Some("absolute"),
            Said::Relative { .. } => Some("relative"),
            Said::Warning => None,
        }
    }
}

/// What a line says of a PE; a line may hold several pieces.
struct Piece<'t> {
    label: &'t str,
    /// Whether its label is the beginning of a line.
    begins_line: bool,
    pe: i32,
    /// `None` when it cannot be read.
    said: Option<Said>,
    /// From the bracket on.
    text: &'t str,
}

/// The labels that lines begin with.
type Labels<'t> = BTreeMap<&'t str, Label>;

/// What is known of a label.
#[derive(Debug, Default)]
struct Label {
    /// How often lines begin with it.
    lines: u64,
    /// What these lines say of which PE.
    says: BTreeSet<(i32, &'static str)>,
}

impl Label {
    /// Whether the lines of `other` are a part of this label's, which have somebody's text before them: they say of the same
    /// PEs what no other line does.
    fn lacks(&self, other: &Label) -> bool {
        let knows = |pe: i32| self.says.range((pe, "")..).next().is_some_and(|(known, _)| *known == pe);
        other.says.is_disjoint(&self.says) && other.says.iter().all(|(pe, _)| knows(*pe))
    }
}

/// Reads the text. A last line without its end is torn: its last number may be cut.
pub(super) fn read(text: &str) -> Overall {
    let mut overall = Overall::default();
    let mut pieces = Vec::new();
    for line in text.split_inclusive('\n') {
        overall.line(line.trim_end_matches(['\n', '\r']), line.ends_with('\n'), &mut pieces);
    }
    let mut labels = Labels::new();
    for piece in pieces.iter().filter(|piece| piece.begins_line) {
        let label: &mut Label = labels.entry(piece.label).or_default();
        label.lines += 1;
        label.says.extend(piece.said.and_then(|said| said.what()).map(|what| (piece.pe, what)));
    }
    let mut meant: BTreeMap<&str, &str> = BTreeMap::new();
    for piece in &pieces {
        let label = *meant.entry(piece.label).or_insert_with(|| label(piece.label, &labels));
        overall.take(label, piece);
    }
    overall.finish();
    overall
}

/// Whether a text looks like one.
pub(super) fn looks_like(text: &str) -> bool {
    text.lines().any(|line| {
        next_pe(line, 0).is_some_and(|(bracket, _, behind)| said(line[..bracket].trim(), &line[behind..]).is_some())
    })
}

/// The label of a piece. Where lines are written into each other, somebody's text stands before it: such a label is seen once
/// or never begins a line, or its lines are those that another one lacks; and it ends in that other one.
fn label<'t>(found: &'t str, labels: &Labels<'t>) -> &'t str {
    let own = labels.get(found);
    let may_be_it = |known: &&str| {
        labels.get(known).is_some_and(|known_label| match own {
            None => true,
            Some(own) => {
                let is_label = known_label.lines > 1 && !known.is_empty();
                is_label && (own.lines == 1 || known_label.lacks(own))
            }
        })
    };
    // The longest first; looking for each in the labels keeps a text of many labels linear.
    let endings = found.char_indices().skip(1).map(|(at, _)| &found[at..]).chain([""]);
    endings.filter(may_be_it).find(|known| *known != found).unwrap_or(found)
}

impl Overall {
    /// Cuts a line into pieces; one without any is foreign.
    fn line<'t>(&mut self, line: &'t str, is_whole: bool, pieces: &mut Vec<Piece<'t>>) {
        if line.trim().is_empty() {
            return;
        }
        let mut at = 0;
        let mut any = false;
        while let Some((bracket, pe, behind)) = next_pe(line, at) {
            any = true;
            self.records += 1;
            self.largest_pe = self.largest_pe.max(Some(pe));
            if !is_whole && next_pe(line, behind).is_none() {
                self.note_torn(line);
                break;
            }
            let label = line[at..bracket].trim();
            let begins_line = at == 0;
            let read = said(label, &line[behind..]);
            at = behind + read.map_or(0, |(_, length)| length);
            let said = read.map(|(said, _)| said);
            if said.is_none() {
                self.bad += 1;
                self.bad_example.get_or_insert_with(|| line.chars().take(80).collect());
            }
            // The paper's form has the words where the label would be.
            let label = if said.is_some_and(|said| said.is_paper()) && word(label).is_some() { "" } else { label };
            pieces.push(Piece { label, begins_line, pe, said, text: &line[bracket..] });
        }
        if any {
            return;
        }
        self.records += 1;
        if !is_whole && line.contains("[PE") {
            self.note_torn(line);
            return;
        }
        self.foreign += 1;
        if self.program.is_none()
            && let Some(rest) = line.trim().strip_prefix("Running ")
            && let Some((program, _)) = rest.split_once(" on ")
        {
            self.program = Some(program.trim().to_owned());
        }
    }

    fn note_torn(&mut self, line: &str) {
        self.torn += 1;
        self.torn_example.get_or_insert_with(|| line.chars().take(80).collect());
    }

    /// Puts what a piece says into the sub-run of its label and PE.
    fn take(&mut self, label: &str, piece: &Piece<'_>) {
        let (pe, text) = (piece.pe, piece.text);
        let Some(said) = piece.said else { return };
        match said {
            Said::Warning => self.warnings += 1,
            Said::Relative { ratios, .. } => {
                self.relative += 1;
                self.sub_run(label, pe, &said).0.ratios = Some(ratios);
            }
            Said::Component(name, cycles) => {
                let value = self.cycles(cycles, text);
                let (open, run) = self.sub_run(label, pe, &said);
                open.components.push(name);
                run.values.push(Value { pe, name, value, unit: "cycles" });
                run.records += 1;
            }
            Said::Absolute { parts, total } => {
                let parts = parts.map(|cycles| self.cycles(cycles, text));
                // The paper's form has no total: it is the sum by definition.
                let total = total.map_or(parts.iter().sum(), |total| self.cycles(total, text));
                let (open, run) = self.sub_run(label, pe, &said);
                open.has_absolute = true;
                for (name, value) in
                    [("T_MAIN", parts[0]), ("T_COMM", parts[1]), ("T_PROC", parts[2]), ("T_TOTAL", total)]
                {
                    run.values.push(Value { pe, name, value, unit: "cycles" });
                }
                // The four values of an absolute line are one record; relative lines are counted as such.
                run.records += 1;
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

    /// The sub-run of a label and PE that this belongs to: the one that is open, or the next.
    fn sub_run(&mut self, label: &str, pe: i32, said: &Said) -> (&mut OpenSubRun, &mut SubRun) {
        let key = (label.to_owned(), pe);
        let open = match self.open.remove(&key) {
            Some(open) if !open.is_before(said) => open,
            last => {
                let number = last.as_ref().map_or(0, |last| last.number + 1);
                if let Some(last) = last {
                    self.close(pe, &last);
                }
                OpenSubRun { place: self.place(label, number), number, ..OpenSubRun::default() }
            }
        };
        let open = self.open.entry(key).or_insert(open);
        let run = &mut self.sub_runs[open.place];
        (open, run)
    }

    /// The place of a sub-run, which is made where it is not known.
    fn place(&mut self, label: &str, number: usize) -> usize {
        let next = self.sub_runs.len();
        let place = *self.places.entry((label.to_owned(), number)).or_insert(next);
        if place == next {
            self.sub_runs.push(SubRun { label: label.to_owned(), number, ..SubRun::default() });
        }
        place
    }

    /// Ratios count where the absolute line of a sub-run never came.
    fn close(&mut self, pe: i32, open: &OpenSubRun) {
        let Some(ratios) = open.ratios.filter(|_| !open.has_absolute) else { return };
        let values = ["T_MAIN/T_TOTAL", "T_COMM/T_TOTAL", "T_PROC/T_TOTAL"].into_iter().zip(ratios);
        let values = values.map(|(name, value)| Value { pe, name, value, unit: "ratio" });
        self.sub_runs[open.place].values.extend(values.filter(|value| value.value.is_finite()));
    }

    fn finish(&mut self) {
        for ((_, pe), open) in std::mem::take(&mut self.open) {
            self.close(pe, &open);
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

/// What stands behind a PE, and its length. `label` is what stands before it.
fn said(label: &str, text: &str) -> Option<(Said, usize)> {
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
        let said = Said::Absolute { parts: [values[0], values[1], values[2]], total: Some(values[3]) };
        return Some((said, text.len() - rest.len()));
    }
    if let Some(mut rest) = rest.strip_prefix(RELATIVE) {
        let mut values = [0f64; 3];
        for value in &mut values {
            let number;
            (number, rest) = ratio(rest.trim_start().strip_prefix(',')?.trim_start())?;
            *value = number;
        }
        return Some((Said::Relative { ratios: values, is_paper: false }, text.len() - rest.len()));
    }
    // The paper: numbers within the parentheses.
    let (inner, behind) = rest.split_once(')')?;
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let &[main, comm, process] = parts.as_slice() else { return None };
    Some((paper(label, [main, comm, process])?, text.len() - behind.len()))
}

/// The paper's form: the word before the PE says what the numbers are, where there is one; else they do.
fn paper(label: &str, numbers: [&str; 3]) -> Option<Said> {
    // Only a program could print a negative number as 2^64 minus it.
    let whole = |text: &str| text.parse().ok().or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned));
    let absolute = || Some(Said::Absolute { parts: all(numbers.map(whole))?, total: None });
    let relative = || Some(Said::Relative { ratios: all(numbers.map(|text| text.parse().ok()))?, is_paper: true });
    match word(label) {
        Some(Word::Absolute) => absolute(),
        Some(Word::Relative) => relative(),
        None => absolute().or_else(relative),
    }
}

/// What the paper's form has where the label would be.
#[derive(Debug, Clone, Copy)]
enum Word {
    Absolute,
    Relative,
}

/// The paper's word, which other text may precede.
fn word(label: &str) -> Option<Word> {
    let words = [("Absolute", Word::Absolute), ("Relative", Word::Relative)];
    words.into_iter().find(|(word, _)| label.ends_with(word)).map(|(_, word)| word)
}

/// The three values, if all are there.
fn all<T>(values: [Option<T>; 3]) -> Option<[T; 3]> {
    let [first, second, third] = values;
    Some([first?, second?, third?])
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
                (1, "T_sends", 8.0),
                (0, "T_MAIN", 1.0),
                (0, "T_COMM", -2.0),
                (0, "T_PROC", 3.0),
                (0, "T_TOTAL", 2.0)
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

    /// A line that says everything of a PE in a few cycles.
    fn absolute(label: &str, pe: i32) -> String {
        format!("{label} [PE{pe}] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 1, 2, 3, 6\n")
    }

    fn ratios(label: &str, main: f64) -> String {
        format!("{label} [PE0] TCOMM_PROFILING (T_MAIN/T_TOTAL, T_COMM/T_TOTAL, T_PROC/T_TOTAL), {main}, 0.5, 0.25\n")
    }

    fn labels(overall: &Overall) -> Vec<&str> {
        overall.sub_runs.iter().map(|run| run.label.as_str()).collect()
    }

    #[test]
    fn a_last_line_without_its_end_is_torn() {
        let text = format!("{}{}", absolute("tc", 0), absolute("tc", 1));
        let cut = |bytes: usize| read(&text[..text.len() - bytes]);
        assert_eq!((cut(0).torn, cut(0).sub_runs[0].records), (0, 2));
        // Without the line's end, and with less of it than tells what it is.
        for bytes in [1, 2, 60, text.len() / 2 - "tc [PE".len()] {
            let overall = cut(bytes);
            assert_eq!((overall.torn, overall.bad, overall.records), (1, 0, 2), "{bytes}");
            assert_eq!(overall.sub_runs[0].records, 1, "{bytes}");
        }
        assert_eq!(cut(1).largest_pe, Some(1));
        // What comes before the last piece of a torn line is whole; a line of another program does not count as lost.
        let glued = read("tc [PE0] T_wait (done - finish): 7 cyclestc [PE1] T_wait (done - finish): 8");
        assert_eq!((values(&glued.sub_runs[0]), glued.torn), (vec![(0, "T_wait", 7.0)], 1));
        assert_eq!((read("Killed").foreign, read("Killed").torn), (1, 0));
    }

    #[test]
    fn ratios_count_where_the_absolute_line_of_a_sub_run_is_missing() {
        let wait = "a [PE0] T_wait (done - finish): 7 cycles\n";
        let overall = read(&format!("{wait}{}{wait}{}{}", ratios("a", 0.25), absolute("a", 0), ratios("a", 0.5)));
        let kinds = |run: &SubRun| run.values.iter().map(|value| value.name).collect::<Vec<_>>();
        assert_eq!(kinds(&overall.sub_runs[0]), ["T_wait", "T_MAIN/T_TOTAL", "T_COMM/T_TOTAL", "T_PROC/T_TOTAL"]);
        assert_eq!(kinds(&overall.sub_runs[1]), ["T_wait", "T_MAIN", "T_COMM", "T_PROC", "T_TOTAL"]);
        let twice = read(&format!("{}{}", ratios("a", 0.25), ratios("a", 0.5)));
        let mains = twice.sub_runs.iter().map(|run| run.values[0].value).collect::<Vec<_>>();
        assert_eq!(mains, [0.25, 0.5]);
    }

    #[test]
    fn text_before_a_label_makes_no_label() {
        let wait = "T_wait (done - finish): 3 cycles\n";
        let torn = read(&format!("tc [PE0] T_inside_fitc [PE1] {wait}{}", absolute("tc", 0)));
        assert_eq!(labels(&torn), ["tc"]);
        assert_eq!(torn.bad, 1);
        let glued = read(&format!("Reading file...{}{}{}", absolute("tc", 0), absolute("tc", 1), absolute("tc", 2)));
        assert_eq!(labels(&glued), ["tc"]);
        assert_eq!(glued.sub_runs[0].values.len(), 12);
        // Each PE prints the same text first.
        let texts: String = (0..3)
            .map(|pe| format!("Reading file...tc [PE{pe}] T_wait (done - finish): 3 cycles\n{}", absolute("tc", pe)))
            .collect();
        let glued = read(&texts);
        assert_eq!((labels(&glued), glued.sub_runs[0].values.len()), (vec!["tc"], 15));
        // Labels that lines begin with again and again are labels, whatever they end in.
        let honest: String = ["1", "11"].map(|label| absolute(label, 0) + &absolute(label, 1)).concat();
        assert_eq!(labels(&read(&honest)), ["1", "11"]);
        // A program without a label.
        let nameless = read(&format!("{} [PE0] T_inside_fi [PE1] {wait}", absolute("", 0)));
        assert_eq!(labels(&nameless), [""]);
    }

    #[test]
    fn the_papers_words_say_what_the_numbers_are() {
        let overall = read(
            "Absolute [PE0] TCOMM_PROFILING (5, -90, 5)\nRelative [PE0] TCOMM_PROFILING (-0.06, 1.12, -0.06)\n\
             Relative [PE1] TCOMM_PROFILING (0, 1, 0)\nAbsolute [PE2] TCOMM_PROFILING (0.5, 1, 0)\n",
        );
        assert_eq!((overall.sub_runs.len(), overall.bad, overall.negative), (1, 1, 1));
        assert_eq!(
            values(&overall.sub_runs[0]),
            [
                (0, "T_MAIN", 5.0),
                (0, "T_COMM", -90.0),
                (0, "T_PROC", 5.0),
                (0, "T_TOTAL", -80.0),
                (1, "T_MAIN/T_TOTAL", 0.0),
                (1, "T_COMM/T_TOTAL", 1.0),
                (1, "T_PROC/T_TOTAL", 0.0)
            ]
        );
    }
}
