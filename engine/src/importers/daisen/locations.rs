//! Locations: a tree by the dots of their names.
//!
//! ```text
//! GPU[1]                 scope        nothing ran here, but it is above what did
//! GPU[1].SA[0]           scope        also where the trace lists it as a component
//! GPU[1].SA[0].L1ICache  component    tasks name it
//! L1Cache.Top            port         the trace lists it as one
//! ```
//! They are sorted as Daisen lists them: numbers by their value, so that `CU[2]` comes before `CU[10]`.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::tasks::Tasks;
use crate::error::ImportError;
use crate::tables;
use crate::trace::RunBuilder;

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

/// A location with its name, kind and arguments.
type Row = (String, Kind, Map<String, Value>);

/// Rows for all locations: those that are listed, those that tasks, events and counters name, and all above them.
pub(super) fn append(listed: Vec<Known>, tasks: &Tasks, builder: &mut RunBuilder) -> Result<(), ImportError> {
    let mut all: HashMap<String, (Kind, Map<String, Value>)> = HashMap::new();
    for Known { name, kind, args } in listed {
        let known = all.entry(name).or_insert_with(|| (kind, Map::new()));
        known.0 = known.0.max(kind);
        known.1.extend(args);
    }
    let mut named: Vec<String> =
        (0..tasks.locations.len()).map(|key| tasks.locations.word(key as i32).to_owned()).collect();
    for column in [tables::Events::location, tables::Counters::location] {
        let words = builder.words(column);
        named.extend((0..words.len()).map(|key| words.word(key as i32).to_owned()));
    }
    let ran: HashSet<&str> = (0..tasks.locations.len()).map(|key| tasks.locations.word(key as i32)).collect();
    let around: HashSet<&str> =
        ran.iter().flat_map(|name| std::iter::successors(above(name), |name| above(name))).collect();
    for (name, (kind, _)) in &mut all {
        // A component that is listed, and whose parts do what it does, executes no more than other containers.
        if *kind == Kind::Component && around.contains(name.as_str()) && !ran.contains(name.as_str()) {
            *kind = Kind::Scope;
        }
    }
    for name in named {
        all.entry(name).or_insert_with(|| (Kind::Component, Map::new()));
    }
    let names: Vec<String> = all.keys().cloned().collect();
    for name in &names {
        let mut above = above(name);
        while let Some(scope) = above.filter(|scope| !all.contains_key(*scope)) {
            all.insert(scope.to_owned(), (Kind::Scope, Map::new()));
            above = self::above(scope);
        }
    }
    all.remove("");
    let mut rows: Vec<Row> = all.into_iter().map(|(name, (kind, args))| (name, kind, args)).collect();
    rows.sort_by(|(one, ..), (other, ..)| natural(one, other));
    let args = |(.., args): &Row| (!args.is_empty()).then(|| Value::from(args.clone()).to_string());
    builder.append_derived(tables::Locations {
        location: rows.iter().map(|(name, ..)| name.as_str()).collect(),
        parent: rows.iter().map(|(name, ..)| above(name)).collect(),
        kind: rows.iter().map(|(_, kind, _)| kind.name()).collect(),
        process: rows.iter().map(|(name, ..)| name.split('.').next()).collect(),
        sort_index: (0..rows.len() as i64).collect(),
        role: "compute".into(),
        args: rows.iter().map(args).collect(),
        ..Default::default()
    })
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
