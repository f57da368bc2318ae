//! `clock_offsets(messages, locations)`: bounds on the offsets between the clocks of senders and receivers, from message
//! times.
//!
//! Life of the data: each message between two clocks bounds their offset from one side, since nothing is received before it is
//! sent; the tightest bound is kept for each pair and direction.
//!
//! ```text
//! clock a   s1 ───►              r2        offset = what b shows when a shows 0
//! clock b        r1      s2 ───►           r1 - s1 is at least the offset, s2 - r2 at most
//! ```
//! [`align`] finds offsets that satisfy the bounds of all pairs at once, for callers that shift the times and do not
//! only report bounds.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::{Lanes, Nulls};
use crate::relation::call::Call;
use crate::relation::rows::{EVERY_RUN, Role, Rows};
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `clock_offsets`.
#[derive(Debug)]
pub struct ClockOffsets;

static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "messages",
        omitted: Omitted::Table("messages"),
        columns: &[
            ColumnSpec::needed("source", ColumnKind::Text),
            ColumnSpec::needed("target", ColumnKind::Text),
            ColumnSpec::needed("send_time", ColumnKind::Integer),
            ColumnSpec::needed("receive_time", ColumnKind::Integer),
        ],
    }),
    Parameter::Input(InputSpec {
        name: "locations",
        omitted: Omitted::Table("locations"),
        columns: &[ColumnSpec::needed("location", ColumnKind::Text), ColumnSpec::optional("clock", ColumnKind::Text)],
    }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How far apart the clocks of two locations are, as bounded by the messages between them.\n\n\
         Rows: one per pair of clocks with messages between them. The offset is what `other` shows when `clock` shows 0. No \
         message is received before it is sent, so a message from `clock` to `other` says that the offset is at most \
         receive_time - send_time, and one back that it is at least send_time - receive_time: `upper` and `lower` are the best \
         of these bounds, `estimate` lies in the middle between them, else (messages in one direction only) it is the offset \
         nearest to 0 that the bound allows. `messages` go from `clock` to `other`, `messages_back` the other way; \
         `impossible` of them are received before they are sent, as recorded. With `lower` above `upper` no offset \
         explains all messages: a clock drifted or was set. `--option align=messages` moves the times of all clocks so that \
         as few messages as possible stay impossible.\n\n\
         Units: ticks in `lower`, `upper`, `estimate`; messages in the others.\n\n\
         Nulls: a message without source, target, send_time or receive_time is left out and counted in a note. `lower` is \
         NULL without messages back, `upper` without messages. A location without clock is a clock by itself.\n\n\
         Ties: none.\n\n\
         Errors: a difference of times beyond BIGINT.\n\n\
         Cost: linear in messages.\n\n\
         Source: Cristian's and NTP's bounds; as the unsynchronised ranks of PaRSEC traces need them.",
        "clock_offsets([messages], [locations])",
    )
    .with_sql_example(
        "SELECT clock, other, messages, messages_back, impossible, lower, upper, estimate FROM clock_offsets(\n  \
         (SELECT * FROM (VALUES ('a', 'b', 100, 70), ('a', 'b', 200, 190), ('b', 'a', 50, 100))\n   \
         AS messages(source, target, send_time, receive_time)),\n  \
         (SELECT * FROM (VALUES ('a', 'clock a'), ('b', 'clock b')) AS locations(location, clock)))",
    )
    .with_argument("messages", "Relation: source, target (VARCHAR), send_time, receive_time (BIGINT); optional run.")
    .with_argument("locations", "Relation: location (VARCHAR); optional run, clock (VARCHAR).")
    .build()
});

impl RelationFunction for ClockOffsets {
    fn name(&self) -> &'static str {
        "clock_offsets"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("clock", DataType::Utf8View, false),
            Field::new("other", DataType::Utf8View, false),
            Field::new("messages", DataType::Int64, false),
            Field::new("messages_back", DataType::Int64, false),
            Field::new("impossible", DataType::Int64, false),
            time_field("lower", true),
            time_field("upper", true),
            time_field("estimate", false),
        ]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut runs = Runs::new();
        let needed = ["source", "target", "send_time", "receive_time"];
        let messages = Rows::read(call, "messages", Role::First, &needed, &mut runs)?;
        call.work.note_count(
            messages.left_out,
            "message without both ends and times was left out",
            "messages without both ends and times were left out",
        );
        let locations = Rows::read(call, "locations", Role::Other, &["location"], &mut runs)?;
        // Locations and clocks share their numbers: a location without clock is one.
        let mut lanes = Lanes::new();
        let places = lanes.number(&locations, Some("location"), Nulls::NoLane, &mut call.work)?;
        let mut clock_of: BTreeMap<u32, u32> = BTreeMap::new();
        if locations.has("clock") {
            let clocks = lanes.number(&locations, Some("clock"), Nulls::NoLane, &mut call.work)?;
            let known = places.iter().zip(clocks).filter(|(place, clock)| **place != NONE && *clock != NONE);
            clock_of.extend(known.map(|(place, clock)| (*place, clock)));
        }
        let sources = lanes.number(&messages, Some("source"), Nulls::NoLane, &mut call.work)?;
        let targets = lanes.number(&messages, Some("target"), Nulls::NoLane, &mut call.work)?;
        let clocks = Clocks { lanes: &lanes, clock_of: &clock_of };
        for run in runs.in_order() {
            let Some(bounds) = clocks.bounds(&messages, run, &sources, &targets) else {
                return exec_err!("clock_offsets: a difference of times does not fit a BIGINT");
            };
            emit(call, &runs, run, &lanes, &bounds)?;
        }
        Ok(())
    }
}

/// What the messages of one direction say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OneWay {
    messages: i64,
    impossible: i64,
    /// The least receive_time - send_time.
    least: i64,
}

/// By the words of two clocks: messages from the first to the second.
type Bounds = BTreeMap<(u32, u32), OneWay>;

struct Clocks<'l> {
    lanes: &'l Lanes,
    /// By lane of a location: the lane of its clock.
    clock_of: &'l BTreeMap<u32, u32>,
}

impl Clocks<'_> {
    /// The word of the clock of a location.
    fn of(&self, place: u32) -> u32 {
        let lane = self.lanes.lane(place as usize);
        // Locations without run are those of every run.
        let known = self.clock_of.get(&place).copied().or_else(|| {
            let everywhere = self.lanes.find(EVERY_RUN, lane.word)?;
            self.clock_of.get(&(everywhere as u32)).copied()
        });
        known.map_or(lane.word, |clock| self.lanes.lane(clock as usize).word)
    }

    /// The bounds between the clocks of a run; `None` when a difference does not fit.
    fn bounds(&self, messages: &Rows, run: usize, sources: &[u32], targets: &[u32]) -> Option<Bounds> {
        let mut bounds = Bounds::new();
        let mut last = ((NONE, NONE), (NONE, NONE));
        for batch in messages.batches() {
            let times = |name: &str| Some(batch.batch.column_by_name(name)?.as_primitive::<Int64Type>());
            let (Some(sends), Some(receives)) = (times("send_time"), times("receive_time")) else { continue };
            for stretch in batch.stretches.iter().filter(|stretch| stretch.run == Some(run)) {
                for row in stretch.rows.clone() {
                    let places = (sources[batch.first + row], targets[batch.first + row]);
                    if places != last.0 {
                        last = (places, (self.of(places.0), self.of(places.1)));
                    }
                    let (source, target) = last.1;
                    if source == target {
                        continue;
                    }
                    let delay = receives.value(row).checked_sub(sends.value(row))?;
                    let new = OneWay { messages: 0, impossible: 0, least: i64::MAX };
                    let one_way = bounds.entry((source, target)).or_insert(new);
                    one_way.messages += 1;
                    one_way.impossible += i64::from(delay < 0);
                    one_way.least = one_way.least.min(delay);
                }
            }
        }
        Some(bounds)
    }
}

/// Lower bound, upper bound, estimate.
fn offset(there: Option<OneWay>, back: Option<OneWay>) -> Option<(Option<i64>, Option<i64>, i64)> {
    let upper = there.map(|there| there.least);
    let lower = match back {
        Some(back) => Some(back.least.checked_neg()?),
        None => None,
    };
    let estimate = match (lower, upper) {
        (Some(lower), Some(upper)) => i64::midpoint(lower, upper),
        (lower, upper) => lower.unwrap_or(0).max(0) + upper.unwrap_or(0).min(0),
    };
    Some((lower, upper, estimate))
}

fn emit(call: &mut Call, runs: &Runs, run: usize, lanes: &Lanes, bounds: &Bounds) -> Result<()> {
    let mut words: Vec<u32> = bounds.keys().flat_map(|(source, target)| [*source, *target]).collect();
    words.sort_unstable();
    words.dedup();
    let of_word = |word: &u32| lanes.find(run, *word).or_else(|| lanes.find(EVERY_RUN, *word)).unwrap_or(0);
    let texts = lanes.texts(words.iter().map(of_word))?;
    let texts: &StringViewArray = texts.as_string_view();
    // `rank 2` before `rank 10`.
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|place| (texts.value(*place).len(), texts.value(*place)));
    let mut rows: Vec<(usize, usize, Option<OneWay>, Option<OneWay>)> = Vec::new();
    for (number, &clock) in order.iter().enumerate() {
        for &other in &order[number + 1..] {
            let there = bounds.get(&(words[clock], words[other])).copied();
            let back = bounds.get(&(words[other], words[clock])).copied();
            if there.is_some() || back.is_some() {
                rows.push((clock, other, there, back));
            }
        }
    }
    let offsets: Option<Vec<_>> = rows.iter().map(|(.., there, back)| offset(*there, *back)).collect();
    let Some(offsets) = offsets else {
        return exec_err!("clock_offsets: a difference of times does not fit a BIGINT");
    };
    let text = |places: &mut dyn Iterator<Item = usize>| -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(places.map(|place| texts.value(place))))
    };
    let integers =
        |values: &mut dyn Iterator<Item = Option<i64>>| -> ArrayRef { Arc::new(values.collect::<Int64Array>()) };
    let count = |one_way: &Option<OneWay>, of: fn(&OneWay) -> i64| one_way.as_ref().map_or(0, of);
    let columns = vec![
        runs.column(&[(run, rows.len())], call.output().field(0).data_type())?,
        text(&mut rows.iter().map(|row| row.0)),
        text(&mut rows.iter().map(|row| row.1)),
        integers(&mut rows.iter().map(|row| Some(count(&row.2, |one_way| one_way.messages)))),
        integers(&mut rows.iter().map(|row| Some(count(&row.3, |one_way| one_way.messages)))),
        integers(&mut rows.iter().map(|row| {
            Some(count(&row.2, |one_way| one_way.impossible) + count(&row.3, |one_way| one_way.impossible))
        })),
        integers(&mut offsets.iter().map(|offset| offset.0)),
        integers(&mut offsets.iter().map(|offset| offset.1)),
        integers(&mut offsets.iter().map(|offset| Some(offset.2))),
    ];
    if rows.is_empty() { Ok(()) } else { call.emit(columns) }
}

/// A message from clock `from` to clock `to` took `delay` by the two clocks: the least of its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The sender's clock.
    pub from: usize,
    /// The receiver's clock.
    pub to: usize,
    /// receive_time - send_time.
    pub delay: i64,
}

/// What to subtract from the times of each clock so that no message is received before it is sent; in each group of clocks
/// that exchange messages, the first clock is not changed.
///
/// Where messages go both ways between all clocks, directly or through others, each offset is in the middle of the tightest
/// bounds, which also satisfies every pair. Else the offsets are the smallest that satisfy all. Where none can, every delay is
/// increased by the least amount with which offsets exist.
///
/// The offsets are shortest paths: `offset(to) - offset(from) <= delay` is an edge.
/// Cost: clocks × delays at worst, sixty times that when the delays contradict each other.
///
/// # Panics
/// When a delay names a clock beyond `clocks`.
pub fn align(clocks: usize, delays: &[Delay]) -> Vec<i64> {
    let edges: Vec<(usize, usize, i128)> =
        delays.iter().map(|delay| (delay.from, delay.to, i128::from(delay.delay))).collect();
    let slack = least_slack(clocks, &edges);
    let loosened: Vec<(usize, usize, i128)> =
        edges.iter().map(|&(from, to, delay)| (from, to, delay + slack)).collect();
    let reversed: Vec<(usize, usize, i128)> = loosened.iter().map(|&(from, to, delay)| (to, from, delay)).collect();
    let mut offsets = vec![0i128; clocks];
    let smallest = shortest(&loosened, vec![Some(0); clocks]).unwrap_or_default();
    let groups = groups(clocks, &edges);
    for group in &groups {
        let only_first = || (0..clocks).map(|clock| (clock == group[0]).then_some(0)).collect();
        let (Some(upper), Some(lower)) = (shortest(&loosened, only_first()), shortest(&reversed, only_first())) else {
            continue;
        };
        let middle: Option<Vec<i128>> =
            group.iter().map(|&clock| Some((upper[clock]? - lower[clock]?).div_euclid(2))).collect();
        for (place, &clock) in group.iter().enumerate() {
            let least = || smallest.get(clock).copied().flatten().unwrap_or(0) - smallest[group[0]].unwrap_or(0);
            offsets[clock] = middle.as_ref().map_or_else(least, |middle| middle[place]);
        }
    }
    offsets.into_iter().map(|offset| i64::try_from(offset).unwrap_or(0)).collect()
}

/// Clocks that exchange messages, directly or through others.
fn groups(clocks: usize, edges: &[(usize, usize, i128)]) -> Vec<Vec<usize>> {
    let mut group_of: Vec<usize> = (0..clocks).collect();
    fn root(group_of: &mut [usize], clock: usize) -> usize {
        let mut clock = clock;
        while group_of[clock] != clock {
            group_of[clock] = group_of[group_of[clock]];
            clock = group_of[clock];
        }
        clock
    }
    for &(from, to, _) in edges {
        let (from, to) = (root(&mut group_of, from), root(&mut group_of, to));
        group_of[from.max(to)] = from.min(to);
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for clock in 0..clocks {
        groups.entry(root(&mut group_of, clock)).or_default().push(clock);
    }
    groups.into_values().collect()
}

/// The least amount to add to every delay so that offsets exist.
fn least_slack(clocks: usize, edges: &[(usize, usize, i128)]) -> i128 {
    let possible = |slack: i128| {
        let loosened: Vec<_> = edges.iter().map(|&(from, to, delay)| (from, to, delay + slack)).collect();
        shortest(&loosened, vec![Some(0); clocks]).is_some()
    };
    let (mut no, mut yes) = (-1i128, 0i128);
    while !possible(yes) {
        (no, yes) = (yes, (yes * 2).max(1));
    }
    while no + 1 < yes {
        let middle = i128::midpoint(no, yes);
        if possible(middle) { yes = middle } else { no = middle }
    }
    yes
}

/// Shortest paths (Bellman and Ford) from where distances are known; `None` with a cycle below 0.
fn shortest(edges: &[(usize, usize, i128)], known: Vec<Option<i128>>) -> Option<Vec<Option<i128>>> {
    let mut distances = known;
    for _ in 0..=distances.len() {
        let mut changed = false;
        for &(from, to, delay) in edges {
            let Some(distance) = distances[from].map(|distance| distance + delay) else { continue };
            if distances[to].is_none_or(|known| distance < known) {
                distances[to] = Some(distance);
                changed = true;
            }
        }
        if !changed {
            return Some(distances);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn delays(messages: &[(usize, usize, i64)]) -> Vec<Delay> {
        messages.iter().map(|&(from, to, delay)| Delay { from, to, delay }).collect()
    }

    fn worst(offsets: &[i64], delays: &[Delay]) -> i64 {
        delays.iter().map(|delay| delay.delay - (offsets[delay.to] - offsets[delay.from])).min().unwrap_or(0)
    }

    #[test]
    fn bounds_from_both_sides_and_from_one() {
        let one_way = |least| Some(OneWay { messages: 1, impossible: 0, least });
        assert_eq!(offset(one_way(-10), one_way(50)), Some((Some(-50), Some(-10), -30)));
        assert_eq!(offset(one_way(-10), None), Some((None, Some(-10), -10)));
        assert_eq!(offset(one_way(10), None), Some((None, Some(10), 0)));
        assert_eq!(offset(None, one_way(-7)), Some((Some(7), None, 7)));
        assert_eq!(offset(None, one_way(i64::MIN)), None);
    }

    #[test]
    fn clocks_are_moved_to_the_middle_of_their_bounds() {
        assert_eq!(align(2, &delays(&[(0, 1, -10), (1, 0, 50)])), [0, -30]);
        assert_eq!(align(2, &delays(&[(0, 1, 10)])), [0, 0]);
        assert_eq!(align(2, &delays(&[(0, 1, -10)])), [0, -10]);
        assert_eq!(align(3, &[]), [0, 0, 0]);
    }

    #[test]
    fn contradictions_are_shared() {
        // Both directions are too fast by 20 in sum: no offset helps, half of it does.
        let messages = delays(&[(0, 1, -15), (1, 0, -5)]);
        let offsets = align(2, &messages);
        assert_eq!(worst(&offsets, &messages), -10);
    }

    proptest! {
        /// Whatever the clocks show, messages that really took time are possible again.
        #[test]
        fn aligned_messages_are_received_after_they_are_sent(
            shown in vec(-1000..1000i64, 5), messages in vec((0..5usize, 0..5usize, 0..50i64), 0..30),
        ) {
            let recorded: Vec<(usize, usize, i64)> =
                messages.iter().map(|&(from, to, took)| (from, to, took + shown[to] - shown[from])).collect();
            let recorded = delays(&recorded);
            let offsets = align(5, &recorded);
            prop_assert!(worst(&offsets, &recorded) >= 0, "{offsets:?}");
        }

        #[test]
        fn no_offsets_do_better(messages in vec((0..3usize, 0..3usize, -6..6i64), 0..6)) {
            let messages: Vec<_> = messages.into_iter().filter(|(from, to, _)| from != to).collect();
            let recorded = delays(&messages);
            let found = worst(&align(3, &recorded), &recorded).min(0);
            for one in -20..=20 {
                for two in -20..=20 {
                    prop_assert!(worst(&[0, one, two], &recorded).min(0) <= found);
                }
            }
        }
    }
}
