//! PaScal Analyzer's JSON: a description of the keys, and one entry per execution.
//!
//! ```text
//! {"config": {"command": "… -i 7,13", "arguments": ["13", "7"], "data_descriptor": {"keys": ["cores", "input", "repetitions"],
//!             "values": ["start_time", "stop_time"], "extras": {"regions": {"values": ["start_time", "stop_time", …]}}}},
//!  "data": {"2;0;1": {"start_time": 1.5, "stop_time": 2.5, "regions": {"1": [[1.6, 2.4, 11, 14, 0, "a.c"]]}}}}
//! ```
//! The layout of a key is given by `keys`, never assumed. `input` is an index into `arguments`, from 0 since 2023 and from 1
//! before: the smallest and largest that occur decide. `arguments` may be in any order, and may be the text of a Python list.
//!
//! **Time of a region.** A region has an entry per execution and thread. When each thread is there once, the region ran once:
//! from the first start to the last stop. When a thread is there several times, it ran several times: entries are merged
//! where they overlap, and each piece is a task.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::decimal;
use super::json::Json;
use super::study::{Configuration, Region, Repetitions, Setting, Span, Study, Value};
use crate::trace::findings;

/// What the file says about itself.
struct Layout {
    keys: Vec<String>,
    /// Columns of a region's entries.
    region_values: Vec<String>,
    /// Groups beside regions: name and their values.
    groups: Vec<(String, Vec<String>)>,
    arguments: Vec<String>,
    input_base: i64,
}

/// Adds a document to the study.
pub(super) fn read(document: &Json<'_>, study: &mut Study) {
    let first_repetition = study.next_repetition();
    let Some(config) = document.get("config") else { return };
    let entries = document.get("data").map(Json::members).unwrap_or_default();
    let layout = layout(config, entries, study);
    about_the_program(config, study);
    let sizes: Vec<usize> = layout.arguments.iter().map(|argument| study.size(argument)).collect();
    let mut regions: BTreeMap<String, usize> = BTreeMap::new();
    if study.regions.is_empty() {
        study.regions.push(Region::default());
    }
    regions.extend(study.regions.iter().enumerate().filter_map(|(at, region)| Some((region.id.clone()?, at))));
    let mut numbers = Repetitions::new(first_repetition + entries.len() as i64, study.configurations.len());
    for (key, entry) in entries {
        let Some(mut configuration) = configuration(key, &layout, &sizes, first_repetition, study) else {
            continue;
        };
        configuration = numbers.place(configuration, &mut study.stats);
        read_entry(key, entry, configuration, &layout, &mut regions, study);
    }
    nest(study);
}

/// Keys, columns and arguments; what is missing has the form of the newest files.
fn layout(config: &Json<'_>, entries: &[(std::borrow::Cow<'_, str>, Json<'_>)], study: &mut Study) -> Layout {
    let descriptor = config.get("data_descriptor");
    let texts = |list: Option<&Json<'_>>| -> Vec<String> {
        let elements = list.and_then(Json::elements).unwrap_or_default();
        elements.iter().filter_map(Json::text).map(str::to_owned).collect()
    };
    let keys = texts(descriptor.and_then(|descriptor| descriptor.get("keys")));
    let extras = descriptor.and_then(|descriptor| descriptor.get("extras")).map(Json::members).unwrap_or_default();
    let values_of = |group: &Json<'_>| texts(group.get("values"));
    let mut region_values = Vec::new();
    let mut groups = Vec::new();
    for (name, group) in extras {
        match name.as_ref() {
            "regions" => region_values = values_of(group),
            name => groups.push((name.to_owned(), values_of(group))),
        }
    }
    if region_values.is_empty() {
        region_values =
            ["start_time", "stop_time", "start_line", "stop_line", "thread_id", "filename"].map(str::to_owned).to_vec();
    }
    let arguments = match config.get("arguments") {
        Some(Json::Text(text)) => python_list(text).unwrap_or_else(|| vec![text.clone().into_owned()]),
        Some(Json::Array(elements)) => {
            let text = |element: &Json<'_>| match element {
                Json::Text(text) => text.clone().into_owned(),
                Json::Number(text) => (*text).to_owned(),
                // A list of words, as a command line that was split.
                Json::Array(words) => words.iter().filter_map(Json::number).collect::<Vec<_>>().join(" "),
                other => other.describe(),
            };
            elements.iter().map(text).collect()
        }
        _ => Vec::new(),
    };
    let place = keys.iter().position(|key| key == "input");
    let inputs: BTreeSet<i64> =
        entries.iter().filter_map(|(key, _)| key.split(';').nth(place?)?.parse::<i64>().ok()).collect();
    let input_base = input_base(&inputs, arguments.len(), study);
    Layout { keys, region_values, groups, arguments, input_base }
}

/// 0 or 1: the index of the first argument.
fn input_base(inputs: &BTreeSet<i64>, arguments: usize, study: &mut Study) -> i64 {
    let (Some(&least), Some(&most)) = (inputs.first(), inputs.last()) else { return 0 };
    if least == 0 {
        return 0;
    }
    if most == arguments as i64 {
        return 1;
    }
    study.stats.note(findings::INPUT_BASE_GUESSED, 1, || {
        format!("inputs {least} to {most} of {arguments} arguments: counted from 0, which may be wrong")
    });
    0
}

fn about_the_program(config: &Json<'_>, study: &mut Study) {
    study.program = config.get("pkg").and_then(Json::text).map(str::to_owned);
    for key in ["command", "hostname", "kernel", "execdate"] {
        if let Some(text) = config.get(key).and_then(Json::text) {
            study.args.insert(key.to_owned(), text.into());
        }
    }
    let command = config.get("command").and_then(Json::text);
    study.order_given = command.map(inputs_of_command).unwrap_or_default();
}

/// The list behind `-i` or `--ipts`.
fn inputs_of_command(command: &str) -> Vec<String> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let list = match word {
            "-i" | "--ipts" => words.next(),
            _ => word.strip_prefix("--ipts="),
        };
        if let Some(list) = list {
            return list.trim_matches(['"', '\'']).split(',').map(|item| item.trim().to_owned()).collect();
        }
    }
    Vec::new()
}

/// What a key of `data` says; counted as left out when it does not fit the layout.
fn configuration(
    key: &str,
    layout: &Layout,
    sizes: &[usize],
    first_repetition: i64,
    study: &mut Study,
) -> Option<Configuration> {
    let values: Vec<&str> = key.split(';').map(str::trim).collect();
    let mut lose = |finding, what: &str| {
        study.stats.records(1);
        study.stats.left_out(finding, 1, || format!("key `{key}`: {what}"));
    };
    if values.len() != layout.keys.len() {
        lose(findings::BAD_KEY, &format!("{} values for {} keys", values.len(), layout.keys.len()));
        return None;
    }
    let (mut cores, mut size, mut repetition) = (None, None, 0);
    let mut setting = Setting::default();
    for (name, value) in layout.keys.iter().zip(values) {
        match name.as_str() {
            "cores" | "threads" => match value.parse::<i64>().ok().filter(|cores| *cores > 0) {
                Some(value) => cores = Some(value),
                None => {
                    lose(findings::BAD_CORES, &format!("{name} is `{value}`"));
                    return None;
                }
            },
            "repetitions" | "repetition" => match value.parse::<i64>().ok().filter(|number| *number >= 0) {
                // They count from 1.
                Some(number) => repetition = (number - 1).max(0),
                None => {
                    lose(findings::BAD_KEY, &format!("{name} is `{value}`"));
                    return None;
                }
            },
            "input" => size = Some(value.to_owned()),
            _ => setting.members.push((name.clone(), value.to_owned())),
        }
    }
    let Some(cores) = cores else {
        lose(findings::BAD_CORES, "no cores among the keys");
        return None;
    };
    let size = size.map(|input| {
        let index = input.parse::<i64>().ok().and_then(|index| usize::try_from(index - layout.input_base).ok());
        match index.and_then(|index| sizes.get(index)) {
            Some(&size) => size,
            None => {
                study.stats.note(findings::UNKNOWN_INPUT, 1, || format!("key `{key}`: no argument {input}"));
                study.size(&format!("input {input}"))
            }
        }
    });
    let setting = study.setting(setting);
    Some(Configuration { setting, size, cores, repetition: first_repetition + repetition })
}

fn read_entry(
    key: &str,
    entry: &Json<'_>,
    configuration: Configuration,
    layout: &Layout,
    regions: &mut BTreeMap<String, usize>,
    study: &mut Study,
) {
    let number = |name: &str| entry.get(name).and_then(Json::number);
    let clock = |name: &str| number(name).and_then(decimal::clock);
    let (start, stop, total) =
        (clock("start_time"), clock("stop_time"), number("total_time").and_then(decimal::seconds));
    let whole = match (start, stop, total) {
        (Some(start), Some(stop), _) => Some(stop - start),
        (_, _, total) => total,
    };
    let Some(whole) = whole.filter(|time| *time > 0) else {
        study.stats.records(1);
        study.stats.left_out(findings::BAD_TIME, 1, || format!("run `{key}`: no time above 0"));
        return;
    };
    let mut found = Found { spans: vec![Span { region: 0, start: 0, finish: whole }], ..Found::default() };
    found.stats.records(1);
    for (name, value) in entry.members() {
        let group = layout.groups.iter().find(|(group, _)| group == name.as_ref());
        match (name.as_ref(), value) {
            ("start_time" | "stop_time" | "total_time", _) => {}
            ("regions", value) => {
                let origin = start.filter(|_| stop.is_some()).map(|start| (start, start + whole));
                found.read_regions(key, value, origin, layout, regions, study);
            }
            (name, Json::Number(text)) => found.total(name, text, None),
            (name, Json::Object(_)) => found.read_group(name, value, group.map(|(_, values)| values), regions),
            (name, value) => {
                found.stats.note(findings::NOT_READ, 1, || format!("run `{key}`: `{name}` is {}", value.describe()));
            }
        }
    }
    let execution = study.execution(configuration);
    execution.spans.extend(found.spans);
    execution.values.extend(found.values);
    execution.stats.absorb(found.stats);
    execution.started = start.filter(|_| stop.is_some());
}

/// What an entry of `data` holds.
#[derive(Default)]
struct Found {
    spans: Vec<Span>,
    values: Vec<Value>,
    stats: crate::trace::Stats,
}

/// An entry of a region: from, to, thread.
type Entry = (i128, i128, Option<String>);

impl Found {
    fn read_regions(
        &mut self,
        key: &str,
        value: &Json<'_>,
        run: Option<(i128, i128)>,
        layout: &Layout,
        regions: &mut BTreeMap<String, usize>,
        study: &mut Study,
    ) {
        let column = |name: &str| layout.region_values.iter().position(|value| value == name);
        let (from, to, tid) = (column("start_time"), column("stop_time"), column("thread_id"));
        let (first, last, file) = (column("start_line"), column("stop_line"), column("filename"));
        let mut of_regions: Vec<(usize, Vec<Entry>)> = Vec::new();
        for (id, list) in value.members() {
            let region = *regions.entry(id.clone().into_owned()).or_insert_with(|| {
                study.regions.push(Region {
                    name: id.clone().into_owned(),
                    id: Some(id.clone().into_owned()),
                    ..Region::default()
                });
                study.regions.len() - 1
            });
            let mut entries = Vec::new();
            for element in list.elements().unwrap_or_default() {
                self.stats.records(1);
                let cells = element.elements().unwrap_or_default();
                let cell = |column: Option<usize>| column.and_then(|column| cells.get(column));
                let clock = |column| cell(column).and_then(Json::number).and_then(decimal::clock);
                let (Some(start), Some(finish)) = (clock(from), clock(to)) else {
                    self.stats
                        .left_out(findings::BAD_RUN, 1, || format!("run `{key}`, region {id}: {}", element.describe()));
                    continue;
                };
                if finish <= start {
                    self.stats.left_out(findings::BAD_TIME, 1, || {
                        format!("run `{key}`, region {id}: stops at its start or before")
                    });
                    continue;
                }
                let known = &mut study.regions[region];
                if known.lines.is_none() {
                    let line = |column| cell(column).and_then(Json::number).and_then(|text| text.parse::<i64>().ok());
                    known.lines = line(first).zip(line(last));
                    known.file = cell(file).and_then(Json::text).map(str::to_owned);
                }
                entries.push((start, finish, cell(tid).and_then(Json::number).map(str::to_owned)));
            }
            of_regions.push((region, entries));
        }
        let all = || of_regions.iter().flat_map(|(_, entries)| entries);
        let Some(earliest) = all().map(|entry| entry.0).min() else { return };
        let latest = all().map(|entry| entry.1).max().unwrap_or(earliest);
        // The clock of regions may be another one than that of the run: then only differences say something.
        let origin = match run {
            Some((start, stop)) if start <= earliest && latest <= stop => start,
            _ => {
                self.stats.note(findings::REGION_CLOCK, 1, || {
                    format!("run `{key}`: regions lie outside of it; the first starts at 0")
                });
                earliest
            }
        };
        for (region, entries) in of_regions {
            let count = entries.len() as u64;
            let (pieces, again) = pieces(entries);
            if again {
                self.stats.note(findings::REGION_OCCURRENCES, 1, || {
                    let name = &study.regions[region].name;
                    format!("run `{key}`: region {name} ran several times; its time is the sum of the pieces")
                });
            }
            self.stats.left_out(findings::ENTRIES_MERGED, count - pieces.len() as u64, || {
                format!(
                    "run `{key}`: {count} entries of region {} are {} pieces",
                    study.regions[region].name,
                    pieces.len()
                )
            });
            let spans = pieces.into_iter();
            self.spans.extend(spans.map(|(start, finish)| Span {
                region,
                start: start - origin,
                finish: finish - origin,
            }));
        }
    }

    /// Samples over time, or totals by region.
    fn read_group(
        &mut self,
        group: &str,
        value: &Json<'_>,
        columns: Option<&Vec<String>>,
        regions: &BTreeMap<String, usize>,
    ) {
        let column = |name: &str, otherwise: usize| {
            columns.and_then(|columns| columns.iter().position(|column| column == name)).unwrap_or(otherwise)
        };
        let (info, time) = (column("info", 0), column("time", 1));
        for (name, list) in value.members() {
            match list {
                Json::Array(samples) => {
                    for sample in samples {
                        self.stats.records(1);
                        let cells = sample.elements().unwrap_or_default();
                        let number = |column: usize| cells.get(column).and_then(Json::number);
                        let value =
                            number(info).and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
                        let at = number(time).and_then(decimal::seconds);
                        match (value, at) {
                            (Some(value), Some(_)) => self.values.push(Value {
                                name: name.clone().into_owned(),
                                time: at,
                                value,
                                unit: is_power(group).then_some("W"),
                                region: None,
                            }),
                            _ => self
                                .stats
                                .left_out(findings::BAD_RUN, 1, || format!("{group} {name}: {}", sample.describe())),
                        }
                    }
                }
                Json::Number(text) => {
                    let region = regions.get(name.as_ref()).copied();
                    let name = if region.is_some() { group.to_owned() } else { format!("{group} {name}") };
                    self.total(&name, text, region);
                }
                other => self.stats.note(findings::NOT_READ, 1, || format!("{group} {name}: {}", other.describe())),
            }
        }
    }

    fn total(&mut self, name: &str, text: &str, region: Option<usize>) {
        self.stats.records(1);
        let Some(value) = text.parse::<f64>().ok().filter(|value| value.is_finite()) else {
            self.stats.left_out(findings::BAD_RUN, 1, || format!("{name}: {text}"));
            return;
        };
        let is_energy = name.contains("rapl") || name.contains("energy");
        if is_energy && value < 0.0 {
            self.stats.note(findings::SUSPICIOUS_VALUE, 1, || format!("{name}: {text} J, an energy below 0"));
        }
        let unit = is_energy.then_some("J");
        self.values.push(Value { name: name.to_owned(), time: None, value, unit, region });
    }
}

fn is_power(group: &str) -> bool {
    group == "sensors"
}

/// The stretches in which a region ran, and whether it ran more than once.
fn pieces(mut entries: Vec<Entry>) -> (Vec<(i128, i128)>, bool) {
    let mut threads = HashSet::new();
    let again = entries.iter().any(|(.., thread)| !threads.insert(thread));
    entries.sort_unstable();
    let mut pieces: Vec<(i128, i128)> = Vec::new();
    for (start, finish, _) in entries {
        match pieces.last_mut() {
            Some(last) if !again || start <= last.1 => last.1 = last.1.max(finish),
            _ => pieces.push((start, finish)),
        }
    }
    (pieces, again)
}

/// Regions with dotted ids are inside of the longest prefix that is a region; all others in the whole program.
fn nest(study: &mut Study) {
    let place_of: BTreeMap<String, usize> =
        study.regions.iter().enumerate().filter_map(|(place, region)| Some((region.id.clone()?, place))).collect();
    for region in study.regions.iter_mut().skip(1) {
        let mut id = region.id.as_deref().unwrap_or_default();
        let mut parent = Some(0);
        while let Some((prefix, _)) = id.rsplit_once('.') {
            id = prefix;
            if let Some(&place) = place_of.get(prefix) {
                parent = Some(place);
                break;
            }
        }
        region.parent = parent;
    }
}

/// The elements of the text of a Python list of texts: `['a', "b"]`.
fn python_list(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut elements = Vec::new();
    let mut characters = inner.chars();
    while let Some(quote) = characters.next() {
        if quote == ',' || quote.is_whitespace() {
            continue;
        }
        let mut element = String::new();
        if quote != '\'' && quote != '"' {
            element.push(quote);
            element.extend(characters.by_ref().take_while(|character| *character != ','));
            elements.push(element.trim().to_owned());
            continue;
        }
        loop {
            match characters.next()? {
                '\\' => element.push(characters.next()?),
                end if end == quote => break,
                other => element.push(other),
            }
        }
        elements.push(element);
    }
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_lists_are_lists() {
        let check = |text: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|list| list.iter().map(|element| (*element).to_owned()).collect());
            assert_eq!(python_list(text), expected, "{text}");
        };
        check("['a b', \"c,d\", 'it\\'s']", Some(&["a b", "c,d", "it's"]));
        check("[1, 20]", Some(&["1", "20"]));
        check("[]", Some(&[]));
        check("['a", None);
        check("a, b", None);
    }

    #[test]
    fn pieces_of_a_region() {
        let entry = |start, finish, thread: &str| (start, finish, Some(thread.to_owned()));
        // Each thread once: one stretch, whatever lies between.
        assert_eq!(pieces(vec![entry(5, 9, "1"), entry(0, 3, "0")]), (vec![(0, 9)], false));
        // A thread twice: merged where they overlap.
        let entries = vec![entry(0, 3, "0"), entry(2, 4, "1"), entry(7, 9, "0")];
        assert_eq!(pieces(entries), (vec![(0, 4), (7, 9)], true));
        assert_eq!(pieces(vec![]), (vec![], false));
    }

    #[test]
    fn the_command_gives_the_order_of_inputs() {
        assert_eq!(inputs_of_command("pascalanalyzer -c 1,2 -i 7,13 -o x"), ["7", "13"]);
        assert_eq!(inputs_of_command("pascalanalyzer --ipts=\"a,b\" x"), ["a", "b"]);
        assert!(inputs_of_command("pascalanalyzer -c 1,2").is_empty());
    }
}
