//! Facts: what a commit says of a run, and the run that it says it of.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::Int64Type;
use tq_udfs::ticks::Tick;

use super::log::{Facts, StoredInfo, StoredRun, StoredStat};
use crate::open::NamedRun;
use crate::tables::ColumnType;
use crate::trace::kinds::{has_idle_tasks, has_profiler_rows, has_work_beside, processes, span};
use crate::trace::{Finding, Run, RunInfo, Severity, Stage, Stat};

/// What a run says of itself, as a commit has it. Its rows are elsewhere.
pub(super) fn stored(named: &NamedRun, at: i64) -> StoredRun {
    let info = &named.run.info;
    StoredRun {
        name: named.name.clone(),
        format: named.format.to_owned(),
        source: named.run.source.display().to_string(),
        imported_at: at,
        info: StoredInfo {
            own_name: info.own_name.clone(),
            program: info.program.clone(),
            started_at: info.started_at,
            time_unit: info.time_unit.to_owned(),
            tick: info.tick.map(|tick| tick.symbol().to_owned()),
            origin: info.origin,
            cores: info.cores,
            argument: info.argument.clone(),
            problem_size: info.problem_size.map(f64::to_bits),
            size_order: info.size_order,
            repetition: info.repetition,
            study: info.study.clone(),
            args: info.args.clone(),
        },
        stats: named.run.stats.iter().map(stored_stat).collect(),
        facts: facts(&named.run),
        parts: vec![],
    }
}

fn stored_stat(stat: &Stat) -> StoredStat {
    StoredStat {
        what: stat.finding.what.to_owned(),
        severity: stat.finding.severity.word().to_owned(),
        stage: stat.finding.stage.word().to_owned(),
        count: stat.count,
        example: stat.example.clone(),
    }
}

fn facts(run: &Run) -> Facts {
    let (first, last) = span(run).unzip();
    let (mut least, mut greatest) = (None::<i64>, None::<i64>);
    for (table, batches) in &run.tables {
        for column in table.spec().columns.iter().filter(|column| column.column_type == ColumnType::Time) {
            for times in batches.iter().map(|batch| batch[column.name].as_primitive::<Int64Type>()) {
                least = least.into_iter().chain(min(times)).min();
                greatest = greatest.max(max(times));
            }
        }
    }
    Facts {
        first,
        last,
        least,
        greatest,
        processes: processes(run),
        profiler: has_profiler_rows(run),
        beside: has_work_beside(run),
        idle: has_idle_tasks(run),
    }
}

/// What a run of the store says of itself.
pub(super) fn info_of(run: &StoredRun) -> RunInfo {
    let info = run.info.clone();
    let ticks = [Tick::Weight, Tick::Nanosecond, Tick::Picosecond];
    RunInfo {
        own_name: info.own_name,
        program: info.program,
        started_at: info.started_at,
        time_unit: forever(&info.time_unit),
        tick: info.tick.and_then(|symbol| ticks.into_iter().find(|tick| tick.symbol() == symbol)),
        origin: info.origin,
        cores: info.cores,
        argument: info.argument,
        problem_size: info.problem_size.map(f64::from_bits),
        size_order: info.size_order,
        repetition: info.repetition,
        study: info.study,
        args: info.args,
    }
}

/// The rows of `import_stats`.
pub(super) fn stats_of(run: &StoredRun) -> Vec<Stat> {
    let severities = [Severity::Info, Severity::Repaired, Severity::Lost];
    let stages = [Stage::Recording, Stage::Import];
    let of_session = |stat: &StoredStat| {
        let severity = severities.into_iter().find(|severity| severity.word() == stat.severity);
        let stage = stages.into_iter().find(|stage| stage.word() == stat.stage);
        let (severity, stage) = (severity.unwrap_or(Severity::Lost), stage.unwrap_or(Stage::Import));
        let finding = Finding::stored(&stat.what, severity, stage, forever);
        Stat { finding, count: stat.count, example: stat.example.clone() }
    };
    run.stats.iter().map(of_session).collect()
}

/// Where it was read from, once.
pub(super) fn source_of(run: &StoredRun) -> PathBuf {
    PathBuf::from(&run.source)
}

/// The longest word that is kept for ever.
const WORD_BYTES: usize = 64;

/// The same text, for as long as the process lives, as formats and findings have it: they are few, and a stranger's store cannot
/// make them long.
pub(super) fn forever(text: &str) -> &'static str {
    static WORDS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    const MOST: usize = 10_000;
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = words.get_or_insert_default();
    if let Some(known) = words.get(text) {
        return known;
    }
    if text.len() > WORD_BYTES || words.len() >= MOST {
        return "unknown";
    }
    let word: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(word);
    word
}
