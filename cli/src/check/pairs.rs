//! Pairs: which runs of the baseline the runs of the new traces are compared with.
//!
//! ```text
//! base: study/100 p=1 r=0   study/100 p=1 r=1   study/100 p=32 r=0          new: patched/100 p=1 r=0   patched/100 p=32 r=0
//!       `100 p=1`, two repetitions              `100 p=32`                       `100 p=1`               `100 p=32`
//! ```
//! A run is called after its trace, the part of the trace that it is, its problem size and its cores. Runs that are called the
//! same are repetitions. Traces whose names only count (`run-1`, `run-2`, `log`, `log_2`) are repetitions too, and names of
//! traces and parts tell runs apart only where some stand on both sides: `before` and `after` are two names of one thing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;

use super::Side;
use crate::connection::Params;
use crate::errors::Failure;
use crate::terminal;

/// Before a number, these words say that it is no mere count: `p1` and `p2` are two things.
const MEASURES: [&str; 16] = [
    "c", "core", "cores", "n", "node", "nodes", "np", "p", "proc", "procs", "rank", "ranks", "size", "t", "thread",
    "threads",
];
/// So many runs without a partner are named.
const NAMED_MAX: usize = 5;

/// What runs are called when they are compared.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// By run, and by study; of the baseline and of the new traces. Empty where all runs of a side are repetitions of one.
    called: [HashMap<String, String>; 2],
    /// What stands on one side only, in words that follow others; empty where nothing does.
    pub(super) alone: String,
    /// What runs are called that stand on one side only.
    single: BTreeSet<String>,
}

/// What a run says about itself.
struct Facts {
    run: String,
    trace: String,
    part: String,
    study: Option<String>,
    /// Problem size and cores.
    configuration: String,
}

impl Pairs {
    /// `sides`: the baseline and the new traces.
    pub(super) fn of(sides: [&mut Side; 2]) -> Result<Pairs, Failure> {
        let [base, new] = sides;
        let facts = [facts(base)?, facts(new)?];
        let names =
            |part: fn(&Facts) -> &str| facts.each_ref().map(|side| side.iter().map(part).collect::<BTreeSet<&str>>());
        let (traces, parts) = (names(|run| &run.trace), names(|run| &run.part));
        if facts.iter().any(|side| side.len() > 1) && are_strangers(&traces) {
            terminal::note(
                "no trace has the same name on both sides, so all traces of a side count as repetitions: if they are not, \
                 give them names, `small=FILE large=FILE` on both sides",
            );
        }
        let (traces, parts) = (without_counts(&traces), told_apart(&parts));
        let called = facts.each_ref().map(|side| {
            let mut called = HashMap::new();
            for run in side {
                let names = [traces.get(run.trace.as_str()), parts.get(run.part.as_str())];
                let names = names.into_iter().flatten().map(String::as_str);
                let words = |configuration| {
                    names
                        .clone()
                        .chain([configuration])
                        .filter(|word: &&str| !word.is_empty())
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                called.insert(run.run.clone(), words(&run.configuration));
                // Efficiencies have the study as their run.
                run.study.iter().for_each(|study| _ = called.insert(study.clone(), words("")));
            }
            called
        });
        Ok(Pairs::new(called, &facts))
    }

    fn new(called: [HashMap<String, String>; 2], facts: &[Vec<Facts>; 2]) -> Pairs {
        let sides: [usize; 2] = [0, 1];
        let names =
            sides.map(|side| facts[side].iter().map(|run| called[side][&run.run].as_str()).collect::<BTreeSet<_>>());
        if let [Some(base), Some(new)] = names.each_ref().map(|side| side.first().filter(|_| side.len() == 1)) {
            // With one name on each side, the two are compared, whatever they are called.
            let alone = if base == new { String::new() } else { format!("; `{base}` against `{new}`") };
            return Pairs { alone, ..Pairs::default() };
        }
        let mut alone = String::new();
        for (side, place) in [(0, "in the baseline"), (1, "in the new traces")] {
            let missing: Vec<String> =
                names[side].difference(&names[1 - side]).map(|name| format!("`{name}`")).collect();
            if !missing.is_empty() {
                let more = missing.len().saturating_sub(NAMED_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let named = missing.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
                alone.push_str(&format!("; only {place}: {named}{more}"));
            }
        }
        let single = names[0].symmetric_difference(&names[1]).map(|&name| name.to_owned()).collect();
        Pairs { called, alone, single }
    }

    /// Whether runs are told apart.
    pub(super) fn tell_apart(&self) -> bool {
        self.called.iter().any(|side| !side.is_empty())
    }

    /// Whether these runs have no partner.
    pub(super) fn is_single(&self, called: &str) -> bool {
        self.single.contains(called)
    }

    /// What a run of the baseline (0) or of the new traces (1) is called; `""` for what is none.
    pub(super) fn called(&self, side: usize, run: Option<&str>) -> &str {
        run.and_then(|run| self.called[side].get(run)).map_or("", String::as_str)
    }
}

impl Pairs {
    /// The new runs that are called so.
    pub(super) fn runs_called(&self, wanted: &str) -> Vec<String> {
        let is_wanted = |(run, called): (&String, &String)| (called == wanted).then(|| run.clone());
        let mut runs: Vec<String> = self.called[1].iter().filter_map(is_wanted).collect();
        runs.sort();
        runs
    }
}

fn facts(side: &mut Side) -> Result<Vec<Facts>, Failure> {
    let rows = side.connection.collect(
        "SELECT run, study, trim(coalesce(argument, '') || coalesce(' p=' || cores, '')) AS configuration FROM runs ORDER BY run_number",
        &Params::new(),
    )?;
    let texts = rows.columns().iter().map(|column| cast(column, &DataType::Utf8)).collect::<Result<Vec<_>, _>>()?;
    let text = |column: usize, row: usize| {
        let column = texts[column].as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let of = |(row, run): (usize, &tq_engine::session::RunSummary)| {
        // A name that is there twice has a number at its end.
        let trace = run.own_name.as_ref().and_then(|own| Some(&run.name[..run.name.rfind(&format!("/{own}"))?]));
        let trace = trace.unwrap_or(&run.name).to_owned();
        let study = text(1, row);
        // Executions of a study differ in size, cores and repetition; their own names say no more.
        let part = match &study {
            Some(study) => study.strip_prefix(&trace).map_or("", |part| part.trim_start_matches('/')),
            None => run.own_name.as_deref().unwrap_or_default(),
        };
        Facts {
            part: part.to_owned(),
            trace,
            study,
            run: run.name.clone(),
            configuration: text(2, row).unwrap_or_default(),
        }
    };
    Ok(side.connection.session().runs().iter().enumerate().map(of).collect())
}

/// Names that tell runs apart: all, where one of them stands on both sides.
fn told_apart<'a>([base, new]: &[BTreeSet<&'a str>; 2]) -> HashMap<&'a str, String> {
    let all: BTreeSet<&str> = base.union(new).copied().collect();
    if all.len() < 2 || base.is_disjoint(new) {
        return HashMap::new();
    }
    all.into_iter().map(|name| (name, name.to_owned())).collect()
}

/// The same for names of traces, where those that merely count are one.
fn without_counts<'a>(sides: &[BTreeSet<&'a str>; 2]) -> HashMap<&'a str, String> {
    let mut called = told_apart(sides);
    let mut by_stem: BTreeMap<&str, Vec<(&str, Option<u64>)>> = BTreeMap::new();
    for name in called.keys() {
        let (stem, number) = stem_and_number(name);
        by_stem.entry(stem).or_default().push((name, number));
    }
    for (stem, names) in by_stem {
        if names.len() > 1 && are_counted(stem, &names) {
            names.iter().for_each(|(name, _)| _ = called.insert(name, stem.to_owned()));
        }
    }
    if called.values().collect::<BTreeSet<_>>().len() < 2 {
        called.clear();
    }
    called
}

/// Whether several things may be on a side whose traces have no name in common with those of the other.
fn are_strangers([base, new]: &[BTreeSet<&str>; 2]) -> bool {
    let stems = |side: &BTreeSet<&str>| side.iter().map(|name| stem_and_number(name).0).collect::<BTreeSet<_>>().len();
    base.is_disjoint(new) && stems(base).max(stems(new)) > 1
}

/// `run-3` is `run` and 3.
fn stem_and_number(name: &str) -> (&str, Option<u64>) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name[stem.len()..].parse() {
        Ok(number) => (stem.trim_end_matches(['-', '_', '.', ' ', '/', '#']), Some(number)),
        Err(_) => (name, None),
    }
}

/// Whether the numbers count 1, 2, 3 (or from 0), where a name without one is the first.
fn are_counted(stem: &str, names: &[(&str, Option<u64>)]) -> bool {
    let word = stem.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    let numbers: BTreeSet<u64> = names.iter().map(|(_, number)| number.unwrap_or(1)).collect();
    let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else { return false };
    first <= 1 && last - first + 1 == numbers.len() as u64 && !MEASURES.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_only_count_are_repetitions() {
        let called = |base: &[&'static str], new: &[&'static str]| {
            let mut called: Vec<_> =
                without_counts(&[base.iter().copied().collect(), new.iter().copied().collect()]).into_iter().collect();
            called.sort();
            called.into_iter().map(|(name, called)| format!("{name}: {called}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(called(&["run-1", "run-2"], &["run-1", "run-2", "run-3"]), "");
        assert_eq!(called(&["log", "log_2"], &["log", "log_2"]), "");
        assert_eq!(called(&["before"], &["after"]), "");
        assert_eq!(called(&["small", "big"], &["small"]), "big: big, small: small");
        assert_eq!(called(&["p1", "p2"], &["p1", "p2"]), "p1: p1, p2: p2");
        assert_eq!(called(&["chol8", "chol16"], &["chol8"]), "chol16: chol16, chol8: chol8");
        assert_eq!(called(&["a_1", "a_2", "b"], &["b"]), "a_1: a, a_2: a, b: b");
    }
}
