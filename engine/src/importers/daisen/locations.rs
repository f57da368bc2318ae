//! Locations: a tree by the dots of their names.
//!
//! ```text
//! GPU[1]                 scope        nothing ran here, but it is above what did
//! GPU[1].SA[0]           scope        also where the trace lists it as a component
//! GPU[1].SA[0].L1ICache  component    tasks name it
//! L1Cache.Top            port         the trace lists it as one
//! ```
//! They are sorted as Daisen lists them: numbers by their value, so that `CU[2]` comes before `CU[10]`.

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;
use serde_json::{Map, Value};
use std::cmp::Ordering;

use super::tasks::reserve;
use crate::error::ImportError;
use crate::tables;
use crate::trace::{Location, RunBuilder, Words};

/// A location that the trace lists.
#[derive(Debug)]
pub(super) struct Known {
    name: String,
    kind: Kind,
    args: Map<String, Value>,
}

/// What a location is; when it is several, the last one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Scope,
    Component,
    Port,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Scope => "scope",
            Kind::Component => "component",
            Kind::Port => "port",
        }
    }
}

impl Known {
    /// A component with its specification, which is JSON.
    pub(super) fn component(name: String, kind: Option<String>, spec: Option<String>) -> Known {
        let mut args = Map::new();
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        args.extend(given(kind).map(|kind| ("type".to_owned(), kind.into())));
        let spec = given(spec).map(|spec| serde_json::from_str(&spec).unwrap_or(Value::String(spec)));
        args.extend(spec.map(|spec| ("spec".to_owned(), spec)));
        Known { name, kind: Kind::Component, args }
    }

    /// A port. Ports of one connection form a link; one that is not plugged in has none.
    pub(super) fn port(name: String, component: Option<String>, connection: Option<String>) -> Known {
        let mut args = Map::new();
        for (key, value) in [("component", component), ("connection", connection)] {
            args.extend(value.filter(|value| !value.is_empty()).map(|value| (key.to_owned(), value.into())));
        }
        Known { name, kind: Kind::Port, args }
    }

    /// A name in the table of locations.
    pub(super) fn location(name: String) -> Known {
        Known { name, kind: Kind::Component, args: Map::new() }
    }
}

/// What is known of a location; few have arguments.
#[derive(Clone)]
struct Place {
    kind: Kind,
    args: Option<Box<Map<String, Value>>>,
    /// Whether a task names it.
    ran: bool,
}

/// What a location costs here beside its text: in the map, which doubles when it grows, and in the sorted rows.
const PLACE_BYTES: usize = 4 * size_of::<(&str, Place)>();

/// Rows for all locations: those that are listed, those that tasks, events and counters name, and all above them.
pub(super) fn append(
    mut listed: Vec<Known>,
    of_tasks: &Words,
    memory: &MemoryReservation,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    // Words of the builder cannot be borrowed while it takes rows; nearly all of them are those of tasks.
    let mut others: Vec<String> = Vec::new();
    for column in [tables::Events::location, tables::Counters::location] {
        let words = builder.words(column);
        let words = (0..words.len()).map(|key| words.word(key as i32));
        others.extend(words.filter(|word| of_tasks.find(word).is_none()).map(str::to_owned));
    }
    let held = memory.new_empty();
    let charge = |bytes: usize| reserve(&held, bytes, builder.source());
    charge(others.iter().map(|other| other.len() + size_of::<String>()).sum())?;
    let is_listed = !listed.is_empty();
    let mut all: HashMap<&str, Place> = HashMap::new();
    for Known { name, kind, args } in &mut listed {
        charge(PLACE_BYTES)?;
        let place = all.entry(name).or_insert(Place { kind: *kind, args: None, ran: false });
        place.kind = place.kind.max(*kind);
        if !args.is_empty() {
            place.args.get_or_insert_default().append(args);
        }
    }
    for word in (0..of_tasks.len()).map(|key| of_tasks.word(key as i32)) {
        charge(PLACE_BYTES)?;
        all.entry(word).or_insert(Place { kind: Kind::Component, args: None, ran: false }).ran = true;
    }
    // A component that is listed, and whose parts do what it does, executes no more than other containers.
    if is_listed {
        let ran: Vec<&str> = all.iter().filter(|(_, place)| place.ran).map(|(name, _)| *name).collect();
        for name in ran.into_iter().flat_map(scopes) {
            if let Some(place) = all.get_mut(name).filter(|place| place.kind == Kind::Component && !place.ran) {
                place.kind = Kind::Scope;
            }
        }
    }
    for other in &others {
        all.entry(other).or_insert(Place { kind: Kind::Component, args: None, ran: false });
    }
    let below: Vec<&str> = all.keys().copied().collect();
    for scope in below.into_iter().flat_map(scopes) {
        if !all.contains_key(scope) {
            charge(PLACE_BYTES)?;
            all.insert(scope, Place { kind: Kind::Scope, args: None, ran: false });
        }
    }
    all.remove("");
    let mut rows: Vec<(&str, Place)> = all.into_iter().collect();
    rows.sort_by(|(one, _), (other, _)| natural(one, other));
    rows.into_iter().try_for_each(|(name, place)| {
        let args = place.args.map(|args| Value::Object(*args).to_string());
        builder.location(&Location {
            location: name,
            parent: above(name),
            kind: place.kind.name(),
            process: name.split('.').next(),
            role: "compute",
            args: args.as_deref(),
            ..Location::default()
        })
    })
}

/// What lies above a name, from below.
fn scopes(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(above(name), |name| above(name))
}

/// The name without its last dotted segment.
fn above(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(above, _)| above).filter(|above| !above.is_empty())
}

/// Daisen's order: stretches of digits by value, others by bytes; of names that agree as far as they go the shorter first.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (stretches(one), stretches(other));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return one.cmp(other),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(left), Some(right)) if is_number(left) && is_number(right) => {
                let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
                left.len().cmp(&right.len()).then_with(|| left.cmp(right))
            }
            (Some(left), Some(right)) => left.cmp(right),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn is_number(stretch: &str) -> bool {
    stretch.starts_with(|char: char| char.is_ascii_digit())
}

/// A name as stretches of digits and of other letters.
fn stretches(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|char: char| char.is_ascii_digit() != first.is_ascii_digit()).unwrap_or(rest.len());
        let (stretch, after) = rest.split_at(end);
        rest = after;
        Some(stretch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_ordered_by_value() {
        let sorted =
            ["CU", "CU[2]", "CU[2].L1", "CU[10]", "CU[10].L1", "DRAM[0]", "L1", "L1.x", "L02", "L2", "L2Cache"];
        for pair in sorted.windows(2) {
            assert_eq!(natural(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(natural(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(natural("a1", "a1"), Ordering::Equal);
    }

    #[test]
    fn a_location_stands_below_what_is_before_its_last_dot() {
        assert_eq!(above("GPU[1].SA[0].L1"), Some("GPU[1].SA[0]"));
        assert_eq!((above("Driver"), above(".x")), (None, None));
    }
}
