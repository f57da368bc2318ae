//! `metric`: a column of one answer against the same column of the baseline's answer.
//!
//! Each run gives one value for each key. The key is made of the columns of `by` and, where runs are told apart
//! ([`super::pairs`]), of what the run is called. A side's value is the median of its runs. With three runs a
//! side and more, a change fails the check when it is beyond the tolerance and significant by the test of [`permutation`]; with fewer,
//! and where so few runs can never be significant, the tolerance alone decides, and the output says so.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use tq_engine::queries::{Better, Metric, MetricTolerance};
use tq_udfs::permutation::{self, Significance, Tail, median};
use tq_udfs::ticks::{Tick, is_shown_as_time, time_field};

use super::{Evidence, Pairs, Side, Verdict, type_in_words};
use crate::errors::{Failure, Problem, did_you_mean};
use crate::figures::{Figure, figures};
use crate::output::Cells;
use crate::text::words::{counted, signed_percent};

/// A change less probable than this among splits of noise is none.
const SIGNIFICANT: f64 = 0.05;

/// The values of a side by key.
struct Samples {
    by_key: BTreeMap<Vec<String>, Vec<Figure>>,
    is_time: bool,
    /// Keys of which some run has no value: NULL, or no number.
    without_value: HashSet<Vec<String>>,
}

/// One key on both sides.
struct Change {
    key: Vec<String>,
    /// What the values of both sides are counted from, so that small differences of large numbers are exact.
    origin: Figure,
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
        let (over, under) = (tick.per_nanosecond(), base_tick.per_nanosecond());
        base.by_key.values_mut().flatten().for_each(|value| *value = value.times(over, under));
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
        return Ok(Verdict::Held(format!("{}{unmatched}", text_of_held(&changes))));
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
        for (row, value) in values.into_iter().enumerate() {
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
            match value.filter(|value| value.double().is_finite()) {
                Some(value) => samples.by_key.entry(key).or_default().push(value),
                None => {
                    samples.without_value.insert(key.clone());
                    samples.by_key.entry(key).or_default();
                }
            }
        }
        Ok(samples)
    }
}

fn numbers(metric: &Metric, column: &ArrayRef) -> Result<Vec<Option<Figure>>, Failure> {
    let data_type = column.data_type();
    if !(data_type.is_numeric() || data_type == &DataType::Null) {
        let message = format!("`{}` is {}, and must be a number", metric.column, type_in_words(data_type));
        return Err(Problem::new(message).into());
    }
    Ok(figures(column)?)
}

impl Change {
    fn new(metric: &Metric, key: Vec<String>, base: Vec<Figure>, new: Vec<Figure>, tick: Tick) -> Change {
        let zero = Figure::Exact { units: 0, scale: 0 };
        let is_exact = |value: &Figure| matches!(value, Figure::Exact { .. });
        let are_exact = base.iter().chain(&new).all(is_exact);
        let origin = base.first().copied().filter(|_| are_exact).unwrap_or(zero);
        let counted = |values: Vec<Figure>| -> Vec<f64> {
            values.into_iter().map(|value| value.minus(origin).double()).collect()
        };
        let (base, new) = (counted(base), counted(new));
        let before = origin.double() + median(&base);
        let sign = match metric.better {
            Better::Lower => 1.0,
            Better::Higher => -1.0,
        };
        let worse = sign * (median(&new) - median(&base));
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
        Change { key, origin, base, new, worse, test, beyond, fails: beyond && !is_noise }
    }

    /// Which of two changes is the smaller one: of two equal shares, that of less; of two equal ones, the key that comes last.
    fn by_size(&self, other: &Change) -> Ordering {
        let change = |of: &Change| of.change().abs();
        let sizes = self.worse.total_cmp(&other.worse).then_with(|| change(self).total_cmp(&change(other)));
        sizes.then_with(|| other.key.cmp(&self.key))
    }

    fn change(&self) -> f64 {
        median(&self.new) - median(&self.base)
    }

    /// The values of the sides: whole numbers with all their digits.
    fn sides(&self) -> [Figure; 2] {
        [&self.base, &self.new].map(|values| {
            let counted = median(values);
            let zero = Figure::Exact { units: 0, scale: 0 };
            let exact = |size: i128| self.origin.minus(zero.minus(Figure::Exact { units: size, scale: 0 }));
            match counted.fract() == 0.0 && counted.abs() < 9e18 {
                true if self.origin.whole().is_some() => exact(counted as i128),
                _ => Figure::Double(self.origin.double() + counted),
            }
        })
    }

    fn percent(&self) -> Option<f64> {
        let before = self.origin.double() + median(&self.base);
        (before != 0.0).then(|| 100.0 * self.change() / before.abs())
    }

    /// The change in percent, or as it is from nothing.
    fn size(&self) -> String {
        self.percent().map_or_else(|| format!("{:+}", round(self.change())), signed_percent)
    }

    fn in_words(&self, metric: &Metric, is_time: bool, tick: Tick) -> String {
        let [before, after] = self.sides();
        let is_alike = round(before.double()) == round(after.double()) && self.change() != 0.0;
        let show = |value: Figure| match value.whole() {
            _ if is_time => value.time(tick),
            Some(whole) if is_alike => whole.to_string(),
            _ if is_alike => value.double().to_string(),
            _ => round(value.double()).to_string(),
        };
        let percent = self.percent().map(|percent| format!(" ({percent:+.1} %)")).unwrap_or_default();
        format!("{} → {}{percent}, tolerance {}", show(before), show(after), metric.tolerance)
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

/// The text for a metric that held: the worst of its changes.
fn text_of_held(changes: &[Change]) -> String {
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
    // All digits of whole numbers where those that people read are the same.
    let is_alike = |change: &&Change| {
        let [before, after] = change.sides();
        change.change() != 0.0 && round(before.double()) == round(after.double())
    };
    let are_whole = failed.iter().all(|change| change.sides().iter().all(|side| side.whole().is_some()));
    let is_exact = are_whole && failed.iter().any(is_alike);
    let mut number = |name: &str, value: &dyn Fn(&Change) -> Figure| {
        let values = failed.iter().map(|change| value(change));
        let whole = |value: Figure| value.whole().unwrap_or_else(|| value.double().round() as i64);
        if is_time || is_exact {
            let field = if is_time { time_field(name, true) } else { Field::new(name, DataType::Int64, true) };
            fields.push(field);
            columns.push(Arc::new(values.map(|value| Some(whole(value))).collect::<Int64Array>()));
        } else {
            fields.push(Field::new(name, DataType::Float64, true));
            columns.push(Arc::new(values.map(|value| Some(round(value.double()))).collect::<Float64Array>()));
        }
    };
    number("base", &|change| change.sides()[0]);
    number("new", &|change| change.sides()[1]);
    number("change", &|change| Figure::Double(change.change()));
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
        let figures = |values: &[f64]| values.iter().copied().map(Figure::Double).collect();
        Change::new(&metric(better), Vec::new(), figures(base), figures(new), Tick::Nanosecond).fails
    }

    #[test]
    fn numbers_beyond_the_digits_of_doubles_are_told_apart() {
        const LARGE: i128 = 1 << 53;
        let figures = |units| vec![Figure::Exact { units, scale: 0 }];
        let strict = Metric { tolerance: MetricTolerance::Absolute(0.0), ..metric(Better::Lower) };
        let change = Change::new(&strict, Vec::new(), figures(LARGE), figures(LARGE + 1), Tick::Weight);
        assert!(change.fails);
        let words = change.in_words(&strict, false, Tick::Weight);
        assert!(words.starts_with("9007199254740992 → 9007199254740993 (+0.0 %)"), "{words}");
        let words = change.in_words(&strict, true, Tick::Weight);
        assert!(words.starts_with("9007199254740992 weights → 9007199254740993 weights"), "{words}");
        assert!(!Change::new(&strict, Vec::new(), figures(LARGE + 1), figures(LARGE + 1), Tick::Weight).fails);
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
