//! SPERF's files: one per region, as JSON, XML or CSV, with the whole program in `R.json` and region `id` in
//! `R_parallel_region_<id + 1>.json`.
//!
//! ```text
//! {"Region":"12, 14", "Filename":"./prog", "Execution 1": {"InputData 1": {"arguments":" ./prog nt 8 ",
//!     "Run 1": {"Num threads":"1", "Time":"0.36803", "Speedup":"…", "Efficiency":"…"}}}}
//! <regiao><l>12</l><l>14</l><p>./prog</p><execucoes><item><arg> … </arg><execucao><n>1</n><t>0.3</t>…</execucao></item></execucoes></regiao>
//! (empty line) / ,1,2, / , / 1,1.00000,0.49979, / …                                     efficiencies only
//! ```
//! SPERF's speedups and efficiencies ignore the number of cores of the base and are not read where there are times. The
//! whole program's file carries the line numbers of the *first region*: only its name tells that it is the whole program.
//! SPERF appends to its files, so a file is a sequence of documents; the numbering of repetitions continues in later ones.

use std::borrow::Cow;

use super::json::Json;
use super::study::{Configuration, Region, Repetitions, Setting, Span, Study, Value};
use super::tree;
use super::viewer::cores_and_time;
use crate::trace::findings;

/// What a file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The program.
    Whole,
    /// The region that was started with this id.
    Region(i64),
}

/// Stem and role of a file by its name: `R_parallel_region_3` is region 2 of `R`.
pub(super) fn role(stem: &str) -> (&str, Role) {
    if let Some((result, number)) = stem.rsplit_once("_parallel_region_")
        && let Ok(number) = number.parse::<i64>()
        && !result.is_empty()
    {
        return (result, Role::Region(number.saturating_sub(1)));
    }
    (stem, Role::Whole)
}

/// Adds a JSON document.
pub(super) fn read_json(document: &Json<'_>, role: Role, study: &mut Study, first_repetition: i64) {
    let text = |key: &str| document.get(key).and_then(Json::text);
    let region = region(text("Region"), text("Filename"), role, study);
    let executions = numbered(document, "Execution ");
    let mut sink = Sink::new(study, region, first_repetition, executions.len());
    for execution in executions {
        for input in numbered(execution, "InputData ") {
            let argument = input.get("arguments").and_then(Json::text).unwrap_or_default().trim();
            for run in numbered(input, "Run ") {
                sink.run(argument, run.get("Num threads"), run.get("Time"));
            }
        }
        sink.repetition += 1;
    }
}

/// The members `Execution 0`, `Execution 1` and so on, by their numbers: a program that rewrote the JSON may have sorted its
/// keys. Where one has no number, as they stand.
fn numbered<'j, 't>(object: &'j Json<'t>, prefix: &str) -> Vec<&'j Json<'t>> {
    let members = object.members().iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
    let mut members: Vec<(Option<u64>, &Json<'_>)> =
        members.map(|(number, value)| (number.trim().parse().ok(), value)).collect();
    if members.iter().all(|(number, _)| number.is_some()) {
        members.sort_by_key(|(number, _)| *number);
    }
    members.into_iter().map(|(_, value)| value).collect()
}

/// Adds an XML text: a sequence of `<regiao>`. The answer is the place behind the last whole one.
pub(super) fn read_xml(text: &str, role: Role, study: &mut Study, first_repetition: i64) -> usize {
    let mut first = first_repetition;
    let mut at = 0;
    while let Some((document, end)) = element(text, at, "regiao") {
        let mut lines = Vec::new();
        let head = document.find("<execucoes").map_or(document, |end| &document[..end]);
        let mut place = 0;
        while let Some((line, end)) = element(head, place, "l") {
            lines.push(line.trim());
            place = end;
        }
        let file = element(head, 0, "p").map(|(file, _)| decoded(file.trim()));
        let region = region(Some(&lines.join(", ")), file.as_deref(), role, study);
        let tags = begun(document, "execucao").max(begun(document, "/execucao"));
        let mut met = 0;
        let repetitions = elements(document, "execucoes");
        let mut sink = Sink::new(study, region, first, repetitions.len());
        for repetition in &repetitions {
            for item in elements(repetition, "item") {
                let argument = element(item, 0, "arg").map_or(Cow::Borrowed(""), |(text, _)| decoded(text.trim()));
                for run in elements(item, "execucao") {
                    met += 1;
                    let number = |name| element(run, 0, name).map(|(text, _)| Json::Text(text.trim().into()));
                    sink.run(&argument, number("n").as_ref(), number("t").as_ref());
                }
            }
            sink.repetition += 1;
        }
        first = first.max(sink.repetition);
        // A tag that is missing hides the runs around it.
        let hidden = tags.saturating_sub(met);
        study.stats.records(hidden);
        study.stats.left_out(findings::BAD_RUN, hidden, || {
            "tags that do not balance: a `<execucoes>`, `<item>` or `<execucao>` is missing".to_owned()
        });
        at = end;
    }
    at
}

/// Adds a CSV text: efficiencies only.
pub(super) fn read_csv(text: &str, role: Role, study: &mut Study) {
    let mut threads: Vec<&str> = Vec::new();
    let region = region(None, None, role, study);
    let setting = study.setting(Setting::default());
    let mut repetition = -1;
    for (number, line) in (1..).zip(text.lines()) {
        let cells: Vec<&str> = line.trim().trim_end_matches(',').split(',').map(str::trim).collect();
        match cells.as_slice() {
            [""] if line.trim().is_empty() => {}
            [""] => repetition += 1,
            ["", counts @ ..] => {
                // A further document in the same file: its repetitions are numbered on.
                threads = counts.to_vec();
            }
            [argument, efficiencies @ ..] => {
                // SPERF ends each line with a comma; a last one without it and without its end is cut in its last number.
                let is_torn = !efficiencies.is_empty() && !line.trim_end().ends_with(',') && text.ends_with(line);
                let (efficiencies, torn) = efficiencies.split_at(efficiencies.len() - usize::from(is_torn));
                if let [cut] = torn {
                    study.stats.records(1);
                    study
                        .stats
                        .left_out(findings::TRUNCATED, 1, || format!("line {number}: `{cut}` has no comma behind it"));
                } else if efficiencies.len() != threads.len() {
                    study.stats.note(findings::BAD_RUN, 1, || {
                        format!(
                            "line {number}: {} efficiencies for {} thread counts",
                            efficiencies.len(),
                            threads.len()
                        )
                    });
                }
                let size = study.size(argument);
                for (threads, efficiency) in threads.iter().zip(efficiencies) {
                    let cores = threads.parse::<i64>().ok().filter(|cores| *cores > 0);
                    let efficiency = efficiency.parse::<f64>().ok().filter(|value| value.is_finite());
                    let (Some(cores), Some(value)) = (cores, efficiency) else {
                        study.stats.records(1);
                        study.stats.left_out(findings::BAD_CORES, 1, || format!("line {number}: `{line}`"));
                        continue;
                    };
                    let repetition = repetition.max(0);
                    let configuration = Configuration { setting, size: Some(size), cores, repetition };
                    let execution = study.execution(configuration);
                    execution.stats.records(1);
                    if execution.values.iter().any(|known| known.region == Some(region)) {
                        execution.stats.left_out(findings::BAD_RUN, 1, || {
                            format!("line {number}: `{argument}` on {cores} cores is there already")
                        });
                        continue;
                    }
                    execution.without_time.push(region);
                    execution.values.push(Value {
                        name: "efficiency".to_owned(),
                        time: None,
                        value,
                        unit: None,
                        region: Some(region),
                    });
                }
            }
            [] => {}
        }
    }
}

/// Whether a text is the CSV: thread counts between commas, then a line of one comma.
pub(super) fn is_csv(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let is_counts = |line: &[u8]| {
        line.len() > 2
            && line[0] == b','
            && line.ends_with(b",")
            && line[1..line.len() - 1]
                .split(|byte| *byte == b',')
                .all(|count| !count.is_empty() && count.iter().all(u8::is_ascii_digit))
    };
    lines.next().is_some_and(is_counts) && lines.next() == Some(b",")
}

/// Where the measurements of a document go.
struct Sink<'s> {
    study: &'s mut Study,
    region: usize,
    setting: usize,
    repetition: i64,
    numbers: Repetitions,
}

impl<'s> Sink<'s> {
    fn new(study: &'s mut Study, region: usize, first_repetition: i64, repetitions: usize) -> Sink<'s> {
        let setting = study.setting(Setting::default());
        let numbers = Repetitions::new(first_repetition + repetitions as i64, study.configurations.len());
        Sink { study, region, setting, repetition: first_repetition, numbers }
    }

    fn run(&mut self, argument: &str, threads: Option<&Json<'_>>, time: Option<&Json<'_>>) {
        let place = || format!("argument {argument}");
        let Some((cores, time)) = cores_and_time(threads, time, self.study, place) else { return };
        let size = Some(self.study.size(argument));
        let wanted = Configuration { setting: self.setting, size, cores, repetition: self.repetition };
        let configuration = self.numbers.place(wanted, &mut self.study.stats);
        let execution = self.study.execution(configuration);
        execution.stats.records(1);
        execution.spans.push(Span { region: self.region, start: 0, finish: time });
    }
}

/// The place of a region; a further document of the same file is about the same one.
fn region(lines: Option<&str>, file: Option<&str>, role: Role, study: &mut Study) -> usize {
    let id = match role {
        Role::Whole => None,
        Role::Region(id) => Some(id.to_string()),
    };
    let known = match role {
        Role::Whole => study.regions.iter().position(|region| region.name.is_empty()),
        Role::Region(_) => study.regions.iter().position(|region| region.id == id),
    };
    if let Some(known) = known {
        return known;
    }
    let lines = lines.and_then(tree::lines).map(|(lines, _)| lines);
    let region = match (role, lines) {
        (Role::Whole, _) => {
            study.program = file.map(str::to_owned);
            Region::default()
        }
        (Role::Region(_), Some((first, last))) => {
            let name = format!("{}: {first}-{last}", file.unwrap_or("?"));
            Region { name, id, parent: None, lines: Some((first, last)), file: file.map(str::to_owned) }
        }
        (Role::Region(number), None) => Region { name: format!("region {number}"), id, ..Region::default() },
    };
    study.regions.push(region);
    study.regions.len() - 1
}

/// The text inside the next element of that name at or after `at`, and the place behind it.
fn element<'t>(text: &'t str, at: usize, name: &str) -> Option<(&'t str, usize)> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let from = at + text.get(at..)?.find(&open)? + open.len();
    let to = from + text[from..].find(&close)?;
    Some((&text[from..to], to + close.len()))
}

fn elements<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((inner, end)) = element(text, at, name) {
        found.push(inner);
        at = end;
    }
    found
}

/// How many elements of a name begin in a text.
pub(super) fn begun(text: &str, name: &str) -> u64 {
    text.match_indices(&format!("<{name}"))
        .filter(|(at, tag)| text[at + tag.len()..].starts_with(|next: char| next == '>' || next.is_ascii_whitespace()))
        .count() as u64
}

/// A text with its entities, which SPERF itself never writes.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    plain.replace("&amp;", "&").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_told_by_names() {
        assert_eq!(role("out"), ("out", Role::Whole));
        assert_eq!(role("out_parallel_region_3"), ("out", Role::Region(2)));
        assert_eq!(role("out_parallel_region_x"), ("out_parallel_region_x", Role::Whole));
        assert_eq!(role("_parallel_region_1"), ("_parallel_region_1", Role::Whole));
    }

    #[test]
    fn csv_is_told_by_its_first_lines() {
        assert!(is_csv(b"\n,1,2,\n,\n1,1.0,0.5,\n"));
        assert!(is_csv(b",16,\r\n,\r\n"));
        for other in [&b",1,2,\n1,1.0,0.5,\n"[..], b",,\n,\n", b"a,b\n,\n", b",1,x,\n,\n", b""] {
            assert!(!is_csv(other));
        }
    }
}
