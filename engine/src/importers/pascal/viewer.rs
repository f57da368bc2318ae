//! The Viewer's JSON: `[{"region": "0, 0", "filename": "a.c", "executions": [[{"argument", "runs": [{"threads", "time"}]}]]}]`.
//!
//! `executions` is an array of repetitions, each an array of problem sizes, each with its runs. Sizes are in the order of
//! their first appearance. What is measured twice within a repetition is a further repetition, as in the Viewer.

use super::decimal;
use super::json::Json;
use super::study::{Configuration, Region, Repetitions, Span, Study};
use super::tree;
use crate::trace::findings;

/// Adds a document to the study.
pub(super) fn read(document: &Json<'_>, study: &mut Study) {
    let first_repetition = study.next_repetition();
    let setting = study.setting(super::study::Setting::default());
    let known = study.regions.len();
    for element in document.elements().unwrap_or_default() {
        let region = region(element, known, study);
        let repetitions = element.get("executions").and_then(Json::elements).unwrap_or_default();
        // Fig. 3 of the paper has one list, which is one repetition.
        let is_flat = !repetitions.is_empty() && repetitions.iter().all(|size| size.get("runs").is_some());
        let lists: Vec<&[Json<'_>]> = match is_flat {
            true => vec![repetitions],
            false => repetitions.iter().map(|list| list.elements().unwrap_or_default()).collect(),
        };
        let mut numbers = Repetitions::new(first_repetition + lists.len() as i64, study.configurations.len());
        for (repetition, sizes) in (first_repetition..).zip(lists) {
            for size in sizes {
                let argument = match size.get("argument") {
                    Some(Json::Text(text)) => Some(text.clone().into_owned()),
                    other => other.and_then(Json::number).map(str::to_owned),
                };
                let Some(runs) = size.get("runs").and_then(Json::elements) else {
                    study.stats.records(1);
                    study
                        .stats
                        .left_out(findings::BAD_RUN, 1, || format!("a size without `runs`: {}", size.describe()));
                    continue;
                };
                let size = argument.as_deref().map(|argument| study.size(argument));
                for run in runs {
                    let place = || format!("argument {}", argument.as_deref().unwrap_or("none"));
                    let Some((cores, time)) = cores_and_time(run.get("threads"), run.get("time"), study, place) else {
                        continue;
                    };
                    let wanted = Configuration { setting, size, cores, repetition };
                    let configuration = numbers.place(wanted, &mut study.stats);
                    let execution = study.execution(configuration);
                    execution.stats.records(1);
                    execution.spans.push(Span { region, start: 0, finish: time });
                }
            }
        }
    }
}

/// Cores and time of a measurement; counted as left out when there is no such thing.
pub(super) fn cores_and_time(
    cores: Option<&Json<'_>>,
    time: Option<&Json<'_>>,
    study: &mut Study,
    place: impl Fn() -> String,
) -> Option<(i64, i128)> {
    let as_written = |value: Option<&Json<'_>>| value.map_or_else(|| "missing".to_owned(), Json::describe);
    let whole = |text: &str| text.parse::<i64>().ok().or_else(|| text.strip_suffix(".0")?.parse().ok());
    let read_cores = cores.and_then(Json::number).and_then(whole).filter(|cores| *cores > 0);
    let read_time = time.and_then(Json::number).and_then(decimal::seconds).filter(|time| *time > 0);
    match (read_cores, read_time) {
        (Some(cores), Some(time)) => Some((cores, time)),
        (None, _) => {
            study.stats.records(1);
            study.stats.left_out(findings::BAD_CORES, 1, || format!("{}: threads {}", place(), as_written(cores)));
            None
        }
        (Some(cores), None) => {
            study.stats.records(1);
            study
                .stats
                .left_out(findings::BAD_TIME, 1, || format!("{}, {cores} threads: time {}", place(), as_written(time)));
            None
        }
    }
}

/// The place of an element's region: of the `known` ones of earlier documents the same, else a new one.
fn region(element: &Json<'_>, known: usize, study: &mut Study) -> usize {
    let text = element.get("region").map(|region| region.text().map_or_else(|| region.describe(), str::to_owned));
    let text = text.unwrap_or_default();
    let file = element.get("filename").and_then(Json::text).map(str::to_owned);
    let lines = tree::lines(&text);
    match lines {
        Some((_, true)) => {}
        Some((_, false)) => {
            study.stats.note(findings::REGION_LINES, 1, || format!("`{text}`: taken as two line numbers"));
        }
        None => study.stats.note(findings::REGION_LINES, 1, || format!("`{text}`: taken as a name, without lines")),
    }
    let lines = lines.map(|(lines, _)| lines);
    let same = |region: &Region| region.lines == lines && region.file == file && lines.is_some();
    if let Some(place) = study.regions[..known].iter().position(same) {
        return place;
    }
    let has_whole = study.regions.iter().any(|region| region.name.is_empty());
    let name = match (lines, &file) {
        (Some(lines), _) if tree::is_whole(lines) && !has_whole => String::new(),
        (Some((first, last)), Some(file)) => format!("{file}: {first}-{last}"),
        (Some((first, last)), None) => format!("{first}-{last}"),
        (None, _) if text.is_empty() => "region".to_owned(),
        (None, _) => text,
    };
    if name.is_empty() {
        study.program = study.program.take().or_else(|| file.clone());
    }
    study.regions.push(Region { name, id: None, parent: None, lines, file });
    study.regions.len() - 1
}
