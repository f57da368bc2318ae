//! `metric`: a column of one answer against the same column of the baseline's answer.
//!
//! Each run gives one value for each key: what it is called, where runs are told apart ([`super::pairs`]), and the columns of
//! `by`. A side's value is the median of its runs. With three runs a side and more,
//! a change fails the check when it is beyond the tolerance and significant by the test of [`permutation`]; with fewer, and
//! where so few runs can never be significant, the tolerance alone decides, and the output says so.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use tq_engine::queries::{Better, Metric, MetricTolerance};
use tq_udfs::permutation::{self, Significance, Tail, median};
use tq_udfs::ticks::{Tick, is_shown_as_time, mean_time_text, time_field};

use super::{Evidence, Pairs, Side, Verdict, type_in_words};
use crate::errors::{Failure, Problem, did_you_mean};
use crate::output::Cells;
use crate::text::words::counted;

/// A change less probable than this among splits of noise is none.
const SIGNIFICANT: f64 = 0.05;

/// The values of a side by key.
struct Samples {
    by_key: BTreeMap<Vec<String>, Vec<f64>>,
    is_time: bool,
    /// Keys of which some run has no value: NULL, or no number.
    without_value: HashSet<Vec<String>>,
}

/// One key on both sides.
struct Change {
    key: Vec<String>,
    base: Vec<f64>,
    new: Vec<f64>,
    /// How much worse the new side is, in the terms of the tolerance (of a share: relative to the baseline's); positive is worse.
    worse: f64,
    test: Option<Significance>,
    /// Whether it is worse by more than the tolerance.
    beyond: bool,
    fails: bool,
}

/// `sides`: the baseline and the new one, each with its answer.
pub(super) fn verdict(metric: &Metric, sides: [(&RecordBatch, &Side); 2], pairs: &Pairs) -> Result<Verdict, Failure> {
    let [base_tick, tick] = [sides[0].1, sides[1].1].map(|side| side.connection.session().tick());
    let mut base = Samples::read(metric, 0, sides[0], pairs)?;
    let mut new = Samples::read(metric, 1, sides[1], pairs)?;
    if base_tick != tick {
        if [base_tick, tick].contains(&Tick::Weight) || !(base.is_time && new.is_time) {
            let column = &metric.column;
            let units = format!("the baseline counts in {base_tick} and the traces in {tick}");
            return Err(Problem::new(format!("{units}, and `{column}` is no time that can be converted"))
                .hint("compare traces of one unit, or let the query answer a time: sums, differences and extremes of times are times")
                .into());
        }
        let factor = tick.per_nanosecond() as f64 / base_tick.per_nanosecond() as f64;
        base.by_key.values_mut().flatten().for_each(|value| *value *= factor);
    }
    let mut changes = Vec::new();
    let (mut only_base, mut without_value) = (0, 0);
    // Runs without a partner are named; all that they have is without one.
    let counts = |key: &[String]| !(pairs.tell_apart() && pairs.is_single(&key[0]));
    for (key, base_values) in base.by_key {
        if base.without_value.contains(&key) {
            new.by_key.remove(&key);
            without_value += 1;
            continue;
        }
        if new.without_value.contains(&key) {
            // The baseline has a number and these runs have none: NULL counts as false.
            let summary = format!("{} is no number any more: NULL, NaN or infinite", named(&key));
            return Ok(Verdict::Failed(Evidence::new(summary, None, 1)));
        }
        match new.by_key.remove(&key) {
            Some(new_values) => changes.push(Change::new(metric, key, base_values, new_values, tick)),
            None => only_base += usize::from(counts(&key)),
        }
    }
    let only_new = new.by_key.keys().filter(|key| counts(key)).count();
    if changes.is_empty() {
        let nothing = match (without_value, only_base, only_new) {
            (0, 0, 0) if !pairs.alone.is_empty() => {
                let message = format!("no run of the traces can be compared with one of the baseline{}", pairs.alone);
                Problem::new(message).hint("runs are compared that have the same name, problem size and cores: `NAME=TRACE` on both sides names them")
            }
            (0, 0, 0) => Problem::new("the query returns no rows, neither for the baseline nor for the traces"),
            (0, _, _) => Problem::new("no key of the traces occurs in the baseline")
                .hint("both sides must return rows with the same keys: see the columns of `by`"),
            _ => Problem::new(format!("the baseline has no value of `{}`: NULL, NaN or infinite", metric.column)),
        };
        return Err(nothing.into());
    }
    let unmatched = format!("{}{}", unmatched(only_base, only_new), pairs.alone);
    let failed: Vec<&Change> = changes.iter().filter(|change| change.fails).collect();
    if failed.is_empty() {
        return Ok(Verdict::Held(format!("{}{unmatched}", best_known(&changes))));
    }
    let most = worst(&changes);
    let mut summary = if changes.len() == 1 {
        changes[0].in_words(metric, new.is_time, tick)
    } else {
        let most =
            most.filter(|_| pairs.tell_apart()).map(|most| format!(", most {} ({})", named(&most.key), most.size()));
        let (failed, all) = (failed.len(), changes.len());
        format!("{failed} of {all} worse by more than {}{}", metric.tolerance, most.unwrap_or_default())
    };
    summary.push_str(&most.map(decided_by).unwrap_or_default());
    summary.push_str(&unmatched);
    let count = failed.len();
    let mut evidence = Evidence::new(summary, Some(table(metric, failed, new.is_time, pairs)?), count);
    evidence.is_change = true;
    evidence.runs = most.filter(|_| pairs.tell_apart()).map(|most| most.key[0].clone());
    Ok(Verdict::Failed(evidence))
}

impl Samples {
    /// Of the baseline (`at` 0) or of the new traces (1).
    fn read(
        metric: &Metric,
        at: usize,
        (answer, side): (&RecordBatch, &Side),
        pairs: &Pairs,
    ) -> Result<Samples, Failure> {
        let who = ["the baseline", "the traces"][at];
        let schema = answer.schema();
        let column_of = |name: &str| {
            schema.index_of(name).map_err(|_| {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                let near = did_you_mean(name, names.iter().copied());
                Problem::new(format!("the answer has no column `{name}`{near}"))
                    .hint(format!("its columns are {}", names.join(", ")))
            })
        };
        let column = column_of(&metric.column)?;
        let keys = metric.by.iter().map(|name| column_of(name)).collect::<Result<Vec<usize>, Problem>>()?;
        let run = schema.index_of("run").ok();
        if run.is_none() && side.runs > 1 {
            return Err(Problem::new(format!("{who} are {} runs, and the answer has no column `run`", side.runs))
                .hint("select `run`, so that each run has a value of its own")
                .into());
        }
        let values = numbers(metric, answer.column(column))?;
        let cells = Cells::new(answer)?;
        let mut samples = Samples {
            by_key: BTreeMap::new(),
            is_time: is_shown_as_time(schema.field(column)),
            without_value: HashSet::new(),
        };
        let mut seen = HashSet::new();
        for row in 0..answer.num_rows() {
            let text = |column: usize| {
                let mut text = String::new();
                cells.exact(column, row, &mut text).map(|()| text)
            };
            let run = run.map(text).transpose()?;
            let called = pairs.tell_apart().then(|| Ok(pairs.called(at, run.as_deref()).to_owned()));
            let key = called.into_iter().chain(keys.iter().map(|&column| text(column)));
            let key = key.collect::<Result<Vec<String>, _>>()?;
            if !seen.insert((run, key.clone())) {
                let hint = if metric.by.is_empty() {
                    "say which rows belong together: `by=name`"
                } else {
                    "name more columns in `by=`, or group the rows"
                };
                let of = if key.is_empty() { "a run".to_owned() } else { format!("{} of one run", named(&key)) };
                let message = format!("the answer of {who} has more than one row for {of}");
                return Err(Problem::new(message).hint(hint).into());
            }
            if values.is_null(row) || !values.value(row).is_finite() {
                samples.without_value.insert(key.clone());
                samples.by_key.entry(key).or_default();
            } else {
                samples.by_key.entry(key).or_default().push(values.value(row));
            }
        }
        Ok(samples)
    }
}

fn numbers(metric: &Metric, column: &ArrayRef) -> Result<Float64Array, Failure> {
    let data_type = column.data_type();
    if !(data_type.is_numeric() || data_type == &DataType::Null) {
        let message = format!("`{}` is {}, and must be a number", metric.column, type_in_words(data_type));
        return Err(Problem::new(message).into());
    }
    Ok(cast(column, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

impl Change {
    fn new(metric: &Metric, key: Vec<String>, base: Vec<f64>, new: Vec<f64>, tick: Tick) -> Change {
        let (before, after) = (median(&base), median(&new));
        let sign = match metric.better {
            Better::Lower => 1.0,
            Better::Higher => -1.0,
        };
        let worse = sign * (after - before);
        let allowed = metric.tolerance.allowed(before, tick);
        // A tolerance that is met exactly is met, whatever the last bit of a product says.
        let beyond = worse > allowed * (1.0 + 1e-12);
        let worse_tail = match metric.better {
            Better::Lower => Tail::Higher,
            Better::Higher => Tail::Lower,
        };
        let test = permutation::test(&base, &new, worse_tail);
        let is_noise = test.is_some_and(|test| test.least < SIGNIFICANT && test.p >= SIGNIFICANT);
        let worse = match metric.tolerance {
            MetricTolerance::Percent(_) if worse != 0.0 => worse / before.abs(),
            _ => worse,
        };
        Change { key, base, new, worse, test, beyond, fails: beyond && !is_noise }
    }

    /// Which of two changes is the smaller one: of two equal shares, that of less; of two equal ones, the key that comes last.
    fn by_size(&self, other: &Change) -> Ordering {
        let change = |of: &Change| (median(&of.new) - median(&of.base)).abs();
        let sizes = self.worse.total_cmp(&other.worse).then_with(|| change(self).total_cmp(&change(other)));
        sizes.then_with(|| other.key.cmp(&self.key))
    }

    fn percent(&self) -> Option<f64> {
        let (before, after) = (median(&self.base), median(&self.new));
        (before != 0.0).then(|| 100.0 * (after - before) / before.abs())
    }

    /// The change in percent, or as it is from nothing.
    fn size(&self) -> String {
        self.percent().map_or_else(
            || format!("{:+}", round(median(&self.new) - median(&self.base))),
            |percent| format!("{percent:+.1} %"),
        )
    }

    fn in_words(&self, metric: &Metric, is_time: bool, tick: Tick) -> String {
        let show = |values: &[f64]| {
            let value = median(values);
            if is_time { mean_time_text(value, tick) } else { format!("{}", round(value)) }
        };
        let percent = self.percent().map(|percent| format!(" ({percent:+.1} %)")).unwrap_or_default();
        format!("{} → {}{percent}, tolerance {}", show(&self.base), show(&self.new), metric.tolerance)
    }
}

/// How the verdict was found, for the worst change.
fn decided_by(change: &Change) -> String {
    let runs = format!("{} against {}", change.base.len(), counted(change.new.len(), "run"));
    match change.test {
        None => format!("; {runs}: the tolerance alone decides"),
        Some(test) if change.beyond && test.least >= SIGNIFICANT => {
            format!("; {runs} whose medians cannot give p < {SIGNIFICANT}: the tolerance alone decides")
        }
        Some(test) if change.beyond && !change.fails => format!("; {runs}, {}: no more than noise", p_text(test.p)),
        Some(test) if change.beyond => format!("; {runs}, {}", p_text(test.p)),
        Some(_) => format!("; {runs}"),
    }
}

/// A probability is never nothing.
fn p_text(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// The change that says most about the verdict: the worst of those that fail, else the worst.
fn worst(changes: &[Change]) -> Option<&Change> {
    changes.iter().max_by(|one, other| one.fails.cmp(&other.fails).then_with(|| one.by_size(other)))
}

/// What is said of a metric that held.
fn best_known(changes: &[Change]) -> String {
    let is_one = changes.len() == 1 && changes[0].key.is_empty();
    let mut text = if is_one { String::new() } else { format!("{} compared, ", changes.len()) };
    if let Some(change) = worst(changes) {
        let of = if change.key.is_empty() { String::new() } else { format!(" ({})", named(&change.key)) };
        let label = if changes.len() == 1 { "changed" } else { "worst" };
        let _ = write!(text, "{label} {}{of}{}", change.size(), decided_by(change));
    }
    text
}

fn unmatched(only_base: usize, only_new: usize) -> String {
    match (only_base, only_new) {
        (0, 0) => String::new(),
        (base, 0) => format!("; {base} only in the baseline"),
        (0, new) => format!("; {new} only in the new traces"),
        (base, new) => format!("; {base} only in the baseline, {new} only in the new traces"),
    }
}

fn named(key: &[String]) -> String {
    let said: Vec<&str> = key.iter().map(String::as_str).filter(|part| key.len() == 1 || !part.is_empty()).collect();
    if key.is_empty() { "the metric".to_owned() } else { format!("`{}`", said.join(", ")) }
}

/// Six significant digits are enough for people.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// What failed, the largest change first.
fn table(metric: &Metric, mut failed: Vec<&Change>, is_time: bool, pairs: &Pairs) -> Result<RecordBatch, Failure> {
    failed.sort_by(|one, other| other.by_size(one));
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let called = pairs.tell_apart().then_some("runs");
    for (at, name) in called.into_iter().chain(metric.by.iter().map(String::as_str)).enumerate() {
        fields.push(Field::new(name, DataType::Utf8, false));
        columns.push(Arc::new(failed.iter().map(|change| Some(change.key[at].as_str())).collect::<StringArray>()));
    }
    let mut number = |name: &str, value: &dyn Fn(&Change) -> Option<f64>| {
        let values = failed.iter().map(|change| value(change));
        if is_time {
            fields.push(time_field(name, true));
            columns.push(Arc::new(values.map(|value| value.map(|value| value.round() as i64)).collect::<Int64Array>()));
        } else {
            fields.push(Field::new(name, DataType::Float64, true));
            columns.push(Arc::new(values.map(|value| value.map(round)).collect::<Float64Array>()));
        }
    };
    number("base", &|change| Some(median(&change.base)));
    number("new", &|change| Some(median(&change.new)));
    number("change", &|change| Some(median(&change.new) - median(&change.base)));
    let mut double = |name: &str, value: &dyn Fn(&Change) -> Option<f64>| {
        fields.push(Field::new(name, DataType::Float64, true));
        columns.push(Arc::new(failed.iter().map(|change| value(change)).collect::<Float64Array>()));
    };
    double("change_percent", &|change| change.percent().map(|percent| (percent * 10.0).round() / 10.0));
    if failed.iter().any(|change| change.test.is_some()) {
        double("p", &|change| change.test.map(|test| (test.p * 1e4).round() / 1e4));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(better: Better) -> Metric {
        let tolerance = MetricTolerance::Percent(5.0);
        Metric { column: "duration".to_owned(), better, tolerance, by: Vec::new(), line: 1 }
    }

    fn fails(better: Better, base: &[f64], new: &[f64]) -> bool {
        Change::new(&metric(better), Vec::new(), base.to_vec(), new.to_vec(), Tick::Nanosecond).fails
    }

    #[test]
    fn one_run_a_side_is_decided_by_the_tolerance() {
        assert!(!fails(Better::Lower, &[100.0], &[105.0]));
        assert!(fails(Better::Lower, &[100.0], &[105.1]));
        assert!(!fails(Better::Lower, &[100.0], &[50.0]));
        assert!(fails(Better::Higher, &[100.0], &[94.0]));
        assert!(fails(Better::Lower, &[0.0], &[1.0]));
        assert!(!fails(Better::Lower, &[0.0], &[0.0]));
    }

    #[test]
    fn noise_does_not_fail_and_a_change_does() {
        let base = [100.0, 120.0, 90.0, 110.0, 105.0];
        // The median is 9.5 % worse, but any split of these ten values could be.
        assert!(!fails(Better::Lower, &base, &[115.0, 95.0, 130.0, 118.0, 92.0]));
        assert!(fails(Better::Lower, &base, &[140.0, 150.0, 145.0, 160.0, 142.0]));
        // A sure change within the tolerance is allowed.
        assert!(!fails(Better::Lower, &[100.0, 100.1, 100.2, 100.3, 100.4], &[101.0, 101.1, 101.2, 101.3, 101.4]));
    }

    #[test]
    fn three_runs_a_side_can_fail() {
        assert!(fails(Better::Lower, &[100.0, 101.0, 102.0], &[200.0, 201.0, 202.0]));
    }
}
