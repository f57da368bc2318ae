//! Lanes: processes, threads, and additional lanes for what does not belong on a thread (asynchronous spans, thread
//! states).
//!
//! ```text
//! pid and tid    number, string ("Spans", "worker:7"), or absent: tid = pid, pid = 0; 7, "7" and 7.0 are one
//! location       24622 (process) → 24622/24640 (thread, stream) → 24622/async io/read, 24622/24640/state
//! several ranks  rank 3 → rank 3/24622 → rank 3/24622/24640, and `process` is the rank
//! ```
//! Strings are used in the name of a location as they are, or as JSON with quotes where they could be mistaken for
//! something else. A string that is a whole number is that number, as in chrome://tracing: PyTorch 1.8 writes `"tid": "123"` in tasks
//! and `"tid": 123` in the flows and instants of the same thread.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::chunk::{Fact, SEPARATOR};
use super::event;
use super::round_trip::{TQ_LOCATION, Told, Written};

/// What a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneKind {
    /// A rank of a run of several files.
    Rank,
    Process,
    Thread,
    /// Spans that are bound to an id instead of a thread; they overlap freely.
    Async,
    /// States of a thread, beside its tasks.
    State,
}

/// A location in the making.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) lane_kind: LaneKind,
    /// Its full name.
    pub(super) location: String,
    pub(super) parent: Option<i32>,
    /// The process it belongs to, by its location.
    pub(super) process: String,
    pub(super) clock: Option<String>,
    /// The name that the trace gives it.
    pub(super) name: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) sort_index: Option<i64>,
    /// Raw ids and whatever metadata there is.
    pub(super) facts: Map<String, Value>,
    /// Whether work of a device ran on it.
    pub(super) is_stream: bool,
    /// The location of another format that it shows.
    pub(super) shows: Option<String>,
    /// Whether its tasks nest.
    pub(super) nests: bool,
}

/// All lanes of a run, in the order in which the trace mentions them, processes before what belongs to them.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) all: Vec<Lane>,
    /// The locations of another format, where this file shows them.
    told: Vec<Told>,
    by_location: HashMap<String, i32>,
    /// Bytes of their names.
    text_bytes: usize,
}

/// What a lane costs besides its name: itself, its facts, and its row of `locations` in the making.
const LANE_BYTES: usize = 1_024;

/// How many copies of the name of a lane there are: its own, the key that finds it, its process, and its row.
const NAME_COPIES: usize = 4;

/// Which file of several a lane belongs to.
#[derive(Debug, Clone, Default)]
pub(super) struct Origin {
    /// The rank, where the run has several.
    pub(super) rank: Option<i64>,
    /// What `tq` wrote of the file, where it wrote it.
    pub(super) written: Written,
}

/// A pid or tid.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Id {
    Number(String),
    Text(String),
}

impl Id {
    /// The meaning of a token; `None` when there is none.
    fn of(token: &str) -> Option<Id> {
        match token {
            // Writers that have no number for it leave it out, or empty.
            "" | "\"\"" | "null" | "true" | "false" => None,
            _ => Some(match event::string_value(token) {
                Some(text) if is_whole(&text) => Id::Number(text),
                Some(text) => Id::Text(text),
                // 7.0 and 7e0 are 7.
                None => Id::Number(plain_number(token)),
            }),
        }
    }

    fn display(&self) -> String {
        match self {
            Id::Number(number) => number.clone(),
            Id::Text(text) => {
                let begins_as_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
                let reads_as_number = begins_as_number && text.parse::<f64>().is_ok();
                let reads_as_other = reads_as_number || text.starts_with("async ");
                let ambiguous = text.is_empty() || reads_as_other || text.contains(['/', '"']);
                if ambiguous { Value::from(text.as_str()).to_string() } else { text.clone() }
            }
        }
    }

    fn value(&self) -> Value {
        match self {
            Id::Number(number) => serde_json::from_str(number).unwrap_or_else(|_| number.as_str().into()),
            Id::Text(text) => text.as_str().into(),
        }
    }

    /// The name that a string id is.
    fn name(&self) -> Option<String> {
        match self {
            Id::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }
}

impl Lanes {
    /// The lane of a key that a block composed.
    pub(super) fn of_key(&mut self, key: &str, origin: &Origin) -> i32 {
        let mut parts = key.split(SEPARATOR);
        let letter = parts.next().unwrap_or_default();
        let pid = Id::of(parts.next().unwrap_or_default());
        let process = self.process(pid.as_ref(), origin);
        match letter {
            "T" => self.thread(process, pid, parts.next().unwrap_or_default()),
            "S" => {
                let thread = self.thread(process, pid, parts.next().unwrap_or_default());
                self.below(thread, "state", LaneKind::State, None)
            }
            "A" => {
                let category = parts.next().unwrap_or_default();
                let name = parts.next().unwrap_or_default();
                let title = if category.is_empty() { name.to_owned() } else { format!("{category}/{name}") };
                self.below(process, &format!("async {title}"), LaneKind::Async, Some(title))
            }
            _ => process,
        }
    }

    fn process(&mut self, pid: Option<&Id>, origin: &Origin) -> i32 {
        let zero = Id::Number("0".to_owned());
        let pid = pid.unwrap_or(&zero);
        let rank = origin.rank.map(|rank| self.rank(rank));
        let (prefix, clock) = match rank {
            Some(rank) => {
                let lane = &self.all[rank as usize];
                (format!("{}/", lane.location), lane.clock.clone())
            }
            None => (String::new(), None),
        };
        let location = format!("{prefix}{}", pid.display());
        if let Some(&lane) = self.by_location.get(&location) {
            return lane;
        }
        let process = rank.map_or_else(|| location.clone(), |rank| self.all[rank as usize].process.clone());
        self.add(Lane {
            lane_kind: LaneKind::Process,
            location,
            parent: rank,
            process,
            clock,
            name: pid.name(),
            labels: None,
            sort_index: None,
            facts: Map::from_iter([("pid".to_owned(), pid.value())]),
            is_stream: false,
            shows: None,
            nests: false,
        })
    }

    /// The location of a rank; each has a clock of its own.
    pub(super) fn rank(&mut self, rank: i64) -> i32 {
        let location = format!("rank {rank}");
        if let Some(&lane) = self.by_location.get(&location) {
            return lane;
        }
        self.add(Lane {
            lane_kind: LaneKind::Rank,
            process: rank.to_string(),
            clock: Some(location.clone()),
            name: Some(location.clone()),
            location,
            parent: None,
            labels: None,
            sort_index: Some(rank),
            facts: Map::from_iter([("rank".to_owned(), rank.into())]),
            is_stream: false,
            shows: None,
            nests: false,
        })
    }

    fn thread(&mut self, process: i32, pid: Option<Id>, tid: &str) -> i32 {
        let tid = Id::of(tid).or(pid).unwrap_or_else(|| Id::Number("0".to_owned()));
        let lane = self.below(process, &tid.display(), LaneKind::Thread, tid.name());
        let facts = &mut self.all[lane as usize].facts;
        if !facts.contains_key("tid") {
            facts.insert("tid".to_owned(), tid.value());
        }
        lane
    }

    fn below(&mut self, parent: i32, part: &str, lane_kind: LaneKind, name: Option<String>) -> i32 {
        let above = &self.all[parent as usize];
        let location = format!("{}/{part}", above.location);
        if let Some(&lane) = self.by_location.get(&location) {
            return lane;
        }
        let mut facts = Map::new();
        if let (LaneKind::Thread, Some(pid)) = (lane_kind, above.facts.get("pid")) {
            facts.insert("pid".to_owned(), pid.clone());
        }
        let lane = Lane {
            lane_kind,
            location,
            parent: Some(parent),
            process: above.process.clone(),
            clock: above.clock.clone(),
            name,
            labels: None,
            sort_index: None,
            facts,
            is_stream: false,
            shows: None,
            nests: lane_kind == LaneKind::Thread,
        };
        self.add(lane)
    }

    /// Bytes that they cost until the tables are built.
    pub(super) fn memory(&self) -> usize {
        self.all.len() * LANE_BYTES + self.text_bytes * NAME_COPIES
    }

    /// The lane of a full name.
    pub(super) fn find(&self, location: &str) -> Option<i32> {
        self.by_location.get(location).copied()
    }

    fn add(&mut self, lane: Lane) -> i32 {
        let number = self.all.len() as i32;
        self.text_bytes += lane.location.len();
        self.by_location.insert(lane.location.clone(), number);
        self.all.push(lane);
        number
    }

    /// Takes what a metadata event says. The last one wins.
    pub(super) fn tell(&mut self, fact: &Fact) {
        let Some(lane) = usize::try_from(fact.lane).ok().and_then(|lane| self.all.get_mut(lane)) else { return };
        if fact.what == TQ_LOCATION {
            let told = serde_json::from_str(&fact.args).ok().and_then(|args| Told::of(&args));
            self.told.extend(told);
            return;
        }
        if fact.what == "thread_name"
            && let Some(location) = event::get(&fact.args, TQ_LOCATION)
        {
            lane.shows = event::string_value(location);
        }
        // A name that is a number is a name as well.
        let text = |key: &str| {
            let value = event::get(&fact.args, key).filter(|value| !value.starts_with(['n', '{', '[']))?;
            Some(event::string_value(value).unwrap_or_else(|| value.to_owned()))
        };
        let said = match fact.what.as_str() {
            "process_name" | "thread_name" => "name",
            "process_labels" => "labels",
            "process_sort_index" | "thread_sort_index" => "sort_index",
            _ => "",
        };
        match fact.what.as_str() {
            "process_name" | "thread_name" => lane.name = text("name").or(lane.name.take()),
            "process_labels" => lane.labels = text("labels").or(lane.labels.take()),
            "process_sort_index" | "thread_sort_index" => {
                let index = event::get(&fact.args, "sort_index").and_then(whole);
                lane.sort_index = index.or(lane.sort_index);
            }
            _ => {}
        }
        // What has no column of its own stays under the name of the event.
        let mut value = serde_json::from_str(&fact.args).unwrap_or(Value::Null);
        let has_more = value.as_object_mut().is_some_and(|members| {
            members.remove(said);
            !members.is_empty()
        });
        if has_more || said.is_empty() {
            lane.facts.insert(fact.what.clone(), value);
        }
    }
}

impl Lanes {
    /// Whether the file shows the locations of another format.
    pub(super) fn are_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// Gives threads that show locations of another format their names, when all metadata is known. Each location is shown by
    /// one thread, and no other one is called so: lanes on which something lies (`holds`) keep their names, and those above them;
    /// what else a viewer needs may be called like a location that it shows, and gives its name away.
    pub(super) fn settle_told(&mut self, holds: &[bool]) {
        let mut known = HashSet::new();
        self.told.retain(|told| known.insert(told.location.clone()));
        for told in &mut self.told {
            told.parent.take_if(|parent| !known.contains(parent));
        }
        let flat: HashSet<String> =
            self.told.iter().filter(|told| !told.nests).map(|told| told.location.clone()).collect();
        let mut showing = HashMap::new();
        let mut kept = Vec::new();
        for (at, lane) in self.all.iter_mut().enumerate() {
            match lane.shows.take().filter(|shows| known.remove(shows)) {
                Some(shows) => drop(showing.insert(shows, at)),
                None => kept.extend(holds.get(at).is_some_and(|holds| *holds).then_some(at)),
            }
        }
        if self.told.is_empty() {
            return;
        }
        let mut keeps = vec![false; self.all.len()];
        while let Some(at) = kept.pop() {
            if !std::mem::replace(&mut keeps[at], true) {
                kept.extend(self.all[at].parent.map(|parent| parent as usize));
                // Whoever shows a location of this name keeps its own.
                kept.extend(showing.remove(&self.all[at].location));
            }
        }
        for at in (0..self.all.len()).filter(|at| !keeps[*at]) {
            self.by_location.remove(&self.all[at].location);
        }
        for (shows, at) in &showing {
            let lane = &mut self.all[*at];
            lane.nests &= !flat.contains(shows);
            lane.location.clone_from(shows);
            lane.shows = Some(shows.clone());
            self.by_location.insert(shows.clone(), *at as i32);
        }
        // Lanes are told apart by their names, also those that become no row.
        for (at, _) in keeps.iter().enumerate().filter(|(_, keeps)| !**keeps) {
            if self.all[at].shows.is_some() {
                continue;
            }
            let mut unused = format!("{}{SEPARATOR}", self.all[at].location);
            while self.by_location.contains_key(&unused) {
                unused.push(SEPARATOR);
            }
            self.by_location.insert(unused.clone(), at as i32);
            self.all[at].location = unused;
        }
    }

    /// The rows of `locations`. `role_of` says which lanes a recorder made for itself and which only carry data, `is_used` where
    /// something lies.
    pub(super) fn rows(
        &self,
        role_of: impl Fn(usize) -> Option<&'static str>,
        is_used: impl Fn(usize) -> bool,
    ) -> Vec<Told> {
        let told: HashSet<&str> = self.told.iter().map(|told| told.location.as_str()).collect();
        // What only holds threads that show other locations is the process of a viewer, and no location.
        let is_row = |at: &usize| {
            let lane = &self.all[*at];
            !told.contains(lane.location.as_str()) && (told.is_empty() || is_used(*at))
        };
        let of_lane = |at: usize| {
            let lane = &self.all[at];
            Told {
                location: lane.location.clone(),
                parent: lane.parent.map(|parent| self.all[parent as usize].location.clone()),
                kind: Some(lane.kind().to_owned()),
                name: lane.display_name(),
                process: Some(lane.process.clone()),
                role: role_of(at).map(str::to_owned),
                sort_index: lane.sort_index,
                clock: lane.clock.clone(),
                args: lane.args(),
                nests: lane.nests,
            }
        };
        self.told.iter().cloned().chain((0..self.all.len()).filter(is_row).map(of_lane)).collect()
    }
}

impl Lane {
    /// `process`, `thread`, `stream` …
    pub(super) fn kind(&self) -> &'static str {
        match self.lane_kind {
            LaneKind::Rank => "rank",
            LaneKind::Process => "process",
            LaneKind::Thread if self.is_stream || self.name.as_deref().is_some_and(names_a_stream) => "stream",
            LaneKind::Thread => "thread",
            LaneKind::Async => "async",
            LaneKind::State => "state",
        }
    }

    /// A name for people.
    pub(super) fn display_name(&self) -> Option<String> {
        match (&self.name, &self.labels) {
            (Some(name), Some(labels)) => Some(format!("{name} ({labels})")),
            (Some(name), None) => Some(name.clone()),
            (None, Some(labels)) => Some(labels.clone()),
            (None, None) => match self.lane_kind {
                LaneKind::Process => self.facts.get("pid").map(|pid| format!("pid {pid}")),
                LaneKind::Thread => self.facts.get("tid").map(|tid| format!("tid {tid}")),
                _ => None,
            },
        }
    }

    /// Raw ids and metadata as JSON.
    pub(super) fn args(&self) -> Option<String> {
        let mut facts = self.facts.clone();
        if let Some(labels) = &self.labels {
            facts.insert("labels".to_owned(), labels.as_str().into());
        }
        (!facts.is_empty()).then(|| Value::Object(facts).to_string())
    }
}

/// A number as it is written without a point or an exponent, where it is a whole one.
pub(super) fn plain_number(token: &str) -> String {
    // Above it, doubles leave whole numbers out.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !token.contains(['e', 'E']) {
        return token.trim_end_matches('0').strip_suffix('.').unwrap_or(token).to_owned();
    }
    match token.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < EXACT => format!("{}", number as i64),
        _ => token.to_owned(),
    }
}

/// Whether a text is a whole number, spelled as JSON spells it.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_spelled_so = digits == text || digits != "0";
    is_spelled_so
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
}

/// The part of a key that a pid is: 7, "7" and 7.0 are one.
pub(super) fn pid_key(token: &str) -> String {
    Id::of(token).map_or_else(String::new, |id| id.display())
}

/// A whole number, which `1.0` is as well.
fn whole(token: &str) -> Option<i64> {
    let of_decimal = || token.trim_end_matches('0').strip_suffix('.')?.parse().ok();
    event::integer(token.as_bytes()).or_else(of_decimal)
}

/// `stream 7` (Kineto), `stream#1` and `Stream #14(Compute)` (XProf).
fn names_a_stream(name: &str) -> bool {
    name.strip_prefix("stream")
        .or_else(|| name.strip_prefix("Stream"))
        .is_some_and(|rest| rest.trim_start_matches([' ', '#']).starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(key: &str) -> String {
        let mut lanes = Lanes::default();
        let lane = lanes.of_key(&key.replace('|', "\u{1}"), &Origin::default());
        lanes.all[lane as usize].location.clone()
    }

    #[test]
    fn ids_keep_their_type() {
        assert_eq!(location("T|12|34"), "12/34");
        assert_eq!(location("T|12.0|-1"), "12/-1");
        assert_eq!(location("T|100|10.00"), "100/10");
        assert_eq!(location("T|1e0|15E2"), "1/1500");
        assert_eq!(location("T|1|-2.5e1"), "1/-25");
        assert_eq!(location("T|1|2.5e0"), "1/2.5e0");
        assert_eq!(location("T|12|"), "12/12");
        assert_eq!(location("T||7"), "0/7");
        assert_eq!(location("T|null|true"), "0/0");
        assert_eq!(location("P|\"Spans\""), "Spans");
        assert_eq!(location("T|\"1000\"|\"\""), "1000/1000");
        assert_eq!(location("T|1000|\"-5\""), "1000/-5");
        assert_eq!(location("T|\"007\"|\"2.0\""), "\"007\"/\"2.0\"");
        assert_eq!(location("T|\"10.0.0.5\"|\"0x1f\""), "10.0.0.5/0x1f");
        assert_eq!(location("T|\"-0\"|\"-\""), "\"-0\"/-");
        assert_eq!(location("T|\"\"|7"), "0/7");
        assert_eq!(location("T|\"\"|\"\""), "0/0");
        assert_eq!(location("T|\"a/b\"|\"c\""), "\"a/b\"/c");
        assert_eq!(location("A|1|io|read"), "1/async io/read");
        assert_eq!(location("T|1|\"async read\""), "1/\"async read\"");
        assert_eq!(location("S|1|2"), "1/2/state");
    }

    #[test]
    fn ranks_stand_above_processes() {
        let mut lanes = Lanes::default();
        let origin = Origin { rank: Some(3), ..Origin::default() };
        let lane = lanes.of_key("T\u{1}12\u{1}34", &origin);
        let thread = &lanes.all[lane as usize];
        assert_eq!((thread.location.as_str(), thread.process.as_str()), ("rank 3/12/34", "3"));
        assert_eq!(thread.clock.as_deref(), Some("rank 3"));
        assert_eq!(lanes.all.iter().map(Lane::kind).collect::<Vec<_>>(), ["rank", "process", "thread"]);
    }

    #[test]
    fn streams_are_told_by_their_names() {
        assert!(
            ["stream 7 ", "stream#1", "stream 7 (sync)", "stream7", "Stream #14(Compute)"]
                .into_iter()
                .all(names_a_stream)
        );
        assert!(!["streaming worker", "stream", "upstream 7", "Streamer 7"].into_iter().any(names_a_stream));
    }

    #[test]
    fn the_last_name_wins_and_other_metadata_is_kept() {
        let mut lanes = Lanes::default();
        let lane = lanes.of_key("P\u{1}1", &Origin::default());
        for (what, args) in [
            ("process_name", r#"{"name":"a"}"#),
            ("process_name", r#"{"name":"b"}"#),
            ("process_labels", r#"{"labels":"CPU"}"#),
            ("process_sort_index", r#"{"sort_index":-2.0}"#),
            ("process_name", r#"{"name":7,"more":true}"#),
            ("process_name", r#"{"name":"b"}"#),
            ("num_cpus", r#"{"number":8}"#),
        ] {
            lanes.tell(&Fact { lane, what: what.to_owned(), args: args.to_owned() });
        }
        let process = &lanes.all[0];
        assert_eq!(process.display_name().as_deref(), Some("b (CPU)"));
        assert_eq!(process.sort_index, Some(-2));
        assert_eq!(
            process.args().as_deref(),
            Some(r#"{"labels":"CPU","num_cpus":{"number":8},"pid":1,"process_name":{"more":true}}"#)
        );
    }
}
