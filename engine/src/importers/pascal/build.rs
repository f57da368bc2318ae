//! From the study to the tables: one run per execution, its regions as tasks.
//!
//! All runs share one builder ([`RunBuilder::finish_in_parts`]): ten thousand executions are a handful of arrays.

use datafusion::arrow::array::StringArray;
use serde_json::Value as JsonValue;
use tq_udfs::ticks::Tick;

use super::decimal::{PER_NANOSECOND, PER_PICOSECOND};
use super::study::{Configuration, Execution, Region, Span, Study, numeric};
use crate::error::ImportError;
use crate::importers::importer::ImportContext;
use crate::tables::{self, Table};
use crate::time::divide_half_even;
use crate::trace::{Part, RunBuilder, RunInfo, Source, findings};

/// Where everything of an execution runs.
const LOCATION: &str = "program";

/// Builds the runs of a study. `sorted`: sizes are ranked by number where they are numbers.
pub(super) fn build(
    source: &Source,
    mut study: Study,
    sorted: bool,
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    study.tell_regions_apart();
    study.count_missing();
    let mut builder = context.begin(source);
    if study.executions.is_empty() {
        builder.stats.absorb(study.stats);
        builder.stats.records(0);
        builder.stats.note(findings::NO_EXECUTIONS, 1, || "no region has an execution with a time".to_owned());
        builder.info.program = study.program;
        builder.info.time_unit = "s";
        return context.finish(builder);
    }
    let tick = tick(&study);
    let mut tasks = Tasks::new(&study, tick, &mut builder);
    let mut counters = Counters::default();
    let ranks = study.size_ranks(sorted);
    let mut parts = Vec::with_capacity(study.executions.len());
    let executions = std::mem::take(&mut study.executions);
    for (configuration, mut execution) in study.configurations.iter().zip(executions) {
        let mut part = Part { info: info(&study, configuration, &execution, &ranks, tick), ..Part::default() };
        part.stats.absorb(std::mem::take(&mut execution.stats));
        if parts.is_empty() {
            part.stats.absorb(std::mem::take(&mut study.stats));
        }
        let first_of = tasks.add(&study.regions, &execution, &mut part);
        let task_rows = tasks.rows - tasks.rows_before;
        counters.add(&execution, &first_of, tick, &mut builder, &mut part);
        let given = execution.without_time.len();
        let counter_rows = execution.values.len();
        part.rows = vec![
            (Table::Tasks, task_rows, task_rows as u64),
            // A given efficiency is one record: its task's.
            (Table::Counters, counter_rows, (counter_rows - given) as u64),
            (Table::Locations, 1, 0),
        ];
        tasks.rows_before = tasks.rows;
        parts.push(part);
    }
    locations(&study, parts.len(), &mut builder)?;
    tasks.append(&mut builder)?;
    counters.append(&mut builder)?;
    context.finish_in_parts(builder, parts)
}

fn info(study: &Study, configuration: &Configuration, execution: &Execution, ranks: &[usize], tick: Tick) -> RunInfo {
    let setting = study.settings.get(configuration.setting).cloned().unwrap_or_default();
    let argument = configuration.size.map(|size| study.sizes[size].clone());
    let mut own_name = argument.clone().unwrap_or_default();
    own_name.push_str(&format!(" p={}", configuration.cores));
    if !setting.members.is_empty() {
        own_name.push_str(&format!(" {}", setting.text()));
    }
    own_name.push_str(&format!(" r={}", configuration.repetition));
    let started = execution.started.and_then(|units| i64::try_from(divide_half_even(units, PER_NANOSECOND)).ok());
    let mut args = study.args.clone();
    for (name, value) in &setting.members {
        let number = value.parse::<i64>().map(JsonValue::from);
        args.insert(name.clone(), number.unwrap_or_else(|_| value.as_str().into()));
    }
    RunInfo {
        own_name: Some(own_name.trim_start().to_owned()),
        program: study.program.clone(),
        started_at: started,
        time_unit: "s",
        tick: Some(tick),
        origin: started,
        cores: Some(configuration.cores),
        problem_size: argument.as_deref().and_then(numeric),
        argument,
        size_order: configuration.size.map(|size| ranks[size] as i64),
        repetition: Some(configuration.repetition),
        study: Some(if study.settings.len() > 1 { setting.text() } else { String::new() }),
        args,
    }
}

/// A nanosecond, or a picosecond when some region is so short that a nanosecond would show in its efficiency.
fn tick(study: &Study) -> Tick {
    let spans = || study.executions.iter().flat_map(|execution| &execution.spans);
    let is_coarse = |span: &Span| {
        let (time, rest) = (span.finish - span.start, (span.finish - span.start) % PER_NANOSECOND);
        rest != 0 && rest.min(PER_NANOSECOND - rest) > time / 10_000_000
    };
    // A quarter of what a BIGINT counts: sums of a study must fit, too.
    let fits = |span: &Span| span.finish < i128::from(i64::MAX / 4) * PER_PICOSECOND;
    if spans().any(is_coarse) && spans().all(fits) { Tick::Picosecond } else { Tick::Nanosecond }
}

fn units_per_tick(tick: Tick) -> i128 {
    match tick {
        Tick::Picosecond => PER_PICOSECOND,
        Tick::Weight | Tick::Nanosecond => PER_NANOSECOND,
    }
}

/// The columns of tasks.
struct Tasks {
    per_tick: i128,
    /// By region: the keys of its name, its id, its lines.
    names: Vec<i32>,
    ids: Vec<Option<String>>,
    args: Vec<Option<String>>,
    rows: usize,
    rows_before: usize,
    region: Vec<i32>,
    parent: Vec<Option<i64>>,
    start: Vec<Option<i64>>,
    finish: Vec<Option<i64>>,
    /// By row: the place of its region.
    regions: Vec<u32>,
}

impl Tasks {
    fn new(study: &Study, tick: Tick, builder: &mut RunBuilder) -> Tasks {
        let names = study.regions.iter().map(|region| builder.word(tables::Tasks::name, &region.name)).collect();
        Tasks {
            per_tick: units_per_tick(tick),
            names,
            ids: study.regions.iter().map(|region| region.id.clone()).collect(),
            args: study.regions.iter().map(args).collect(),
            rows: 0,
            rows_before: 0,
            region: Vec::new(),
            parent: Vec::new(),
            start: Vec::new(),
            finish: Vec::new(),
            regions: Vec::new(),
        }
    }

    /// Adds the rows of an execution. The answer has, by region, the position of its first task.
    fn add(&mut self, regions: &[Region], execution: &Execution, part: &mut Part) -> Vec<Option<i64>> {
        let mut spans: Vec<&Span> = execution.spans.iter().collect();
        spans.sort_by_key(|span| (span.region, span.start));
        let mut first_of: Vec<Option<i64>> = vec![None; regions.len()];
        for (position, span) in spans.iter().enumerate() {
            first_of[span.region].get_or_insert(position as i64);
        }
        for (position, region) in (spans.len()..).zip(&execution.without_time) {
            first_of[*region].get_or_insert(position as i64);
        }
        let mut rounded = 0;
        for span in &spans {
            let parent = parent_of(span, regions, &spans, &first_of);
            let mut tick = |units: i128| {
                rounded += u64::from(units % self.per_tick != 0);
                i64::try_from(divide_half_even(units, self.per_tick)).ok()
            };
            let (start, finish) = (tick(span.start), tick(span.finish));
            if start.is_none() || finish.is_none() {
                part.stats.note(findings::TIME_TOO_LARGE, 1, || format!("region `{}`", regions[span.region].name));
            }
            self.push(span.region, parent, start, finish);
        }
        for &region in &execution.without_time {
            part.stats.note(findings::EFFICIENCIES_ONLY, 1, || {
                "the file has no times; see the counter `efficiency`".to_owned()
            });
            let parent = regions[region].parent.and_then(|parent| first_of[parent]);
            self.push(region, parent, None, None);
        }
        part.stats.note(findings::ROUNDED, rounded, || "times to whole ticks".to_owned());
        first_of
    }

    fn push(&mut self, region: usize, parent: Option<i64>, start: Option<i64>, finish: Option<i64>) {
        self.region.push(self.names[region]);
        self.regions.push(region as u32);
        self.parent.push(parent);
        self.start.push(start);
        self.finish.push(finish);
        self.rows += 1;
    }

    fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        let of_region =
            |texts: &[Option<String>]| self.regions.iter().map(|region| texts[*region as usize].as_deref()).collect();
        builder.append(tables::Tasks {
            id: of_region(&self.ids),
            parent: self.parent.into(),
            name: self.region.into(),
            kind: "region".into(),
            role: "work".into(),
            location: LOCATION.into(),
            start: self.start.into(),
            finish: self.finish.into(),
            args: of_region(&self.args),
            ..Default::default()
        })
    }
}

/// The position of the task around a span: of the region around it the occurrence in which it starts, else the first one; a
/// region that was not measured in this execution is passed over.
fn parent_of(span: &Span, regions: &[Region], spans: &[&Span], first_of: &[Option<i64>]) -> Option<i64> {
    let mut around = regions[span.region].parent;
    // A chain of parents is no longer than there are regions.
    for _ in 0..regions.len() {
        let region = around?;
        if let Some(first) = first_of[region] {
            let from = first as usize;
            let of_region = spans.get(from..).unwrap_or_default().iter().take_while(|other| other.region == region);
            let inside =
                of_region.enumerate().find(|(_, other)| other.start <= span.start && span.start < other.finish);
            return Some(inside.map_or(first, |(further, _)| first + further as i64));
        }
        around = regions[region].parent;
    }
    None
}

/// File and lines of a region as JSON.
fn args(region: &Region) -> Option<String> {
    if region.name.is_empty() {
        return None;
    }
    let mut args = serde_json::Map::new();
    if let Some(file) = &region.file {
        args.insert("file".to_owned(), file.as_str().into());
    }
    if let Some((first, last)) = region.lines {
        args.insert("first_line".to_owned(), first.into());
        args.insert("last_line".to_owned(), last.into());
    }
    (!args.is_empty()).then(|| JsonValue::Object(args).to_string())
}

/// The columns of counters.
#[derive(Default)]
struct Counters {
    task: Vec<Option<i64>>,
    name: Vec<i32>,
    time: Vec<Option<i64>>,
    value: Vec<f64>,
    kind: Vec<i32>,
    unit: Vec<Option<i32>>,
}

impl Counters {
    fn add(
        &mut self,
        execution: &Execution,
        first_of: &[Option<i64>],
        tick: Tick,
        builder: &mut RunBuilder,
        part: &mut Part,
    ) {
        for value in &execution.values {
            self.task.push(value.region.and_then(|region| first_of[region]));
            self.name.push(builder.word(tables::Counters::name, &value.name));
            let time = value.time.map(|units| i64::try_from(divide_half_even(units, units_per_tick(tick))));
            if matches!(time, Some(Err(_))) {
                part.stats.note(findings::TIME_TOO_LARGE, 1, || format!("a sample of {}", value.name));
            }
            self.time.push(time.and_then(Result::ok));
            self.value.push(value.value);
            let kind = if value.time.is_some() { "level" } else { "total" };
            self.kind.push(builder.word(tables::Counters::kind, kind));
            self.unit.push(value.unit.map(|unit| builder.word(tables::Counters::unit, unit)));
        }
    }

    fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        builder.append(tables::Counters {
            location: LOCATION.into(),
            task: self.task.into(),
            name: self.name.into(),
            time: self.time.into(),
            value: self.value.into(),
            kind: self.kind.into(),
            unit: self.unit.into(),
            ..Default::default()
        })
    }
}

/// One location for each run: the program as a whole.
fn locations(study: &Study, runs: usize, builder: &mut RunBuilder) -> Result<(), ImportError> {
    let names = study.program.as_ref().map(|program| std::iter::repeat_n(program, runs));
    builder.append_derived(tables::Locations {
        location: LOCATION.into(),
        kind: "process".into(),
        name: names.map(StringArray::from_iter_values).into(),
        sort_index: vec![0; runs].into(),
        role: "compute".into(),
        ..Default::default()
    })
}
