//! Phases: what each kind of event becomes.
//!
//! | `ph` | becomes |
//! | --- | --- |
//! | `X` | a task; so does `T` with a duration (Perfetto's thread states, on a lane of their own) |
//! | `B` `E`, `b` `e`, `S` `F` | a task, once its end is found |
//! | `i` `I` `R`, `n`, `T` `p`, `N` `O` `D`, `P`, `V` `v`, `(` `)` | a row of `events` |
//! | `C` | a row of `counters` per series; Kineto's `[memory]` instants become both |
//! | `s` `t` `f` | links |
//! | `M` | facts about locations |
//! | `=` `c` | counted: they only matter when traces are merged |

use std::borrow::Cow;

use super::chunk::{
    Async, Begin, Bind, Edge, End, Fact, Flow, FlowId, Joins, Lists, Mark, MarkKind, Measure, NO_TIME, NO_WORD, Python,
    Records, SEPARATOR, Sample, Step, Tasks, Texts, UNFINISHED,
};
use super::event::{self, Event, Text};
use super::lanes::{pid_key, plain_number};
use super::place::{Place, Recent};
use super::round_trip::{self, Said, WRITTEN, Written};
use super::{flows, repair, time};
use crate::trace::{Finding, Stats, Words, findings};
use tq_udfs::ticks::Tick;

/// Bytes of an event of a dense trace, to guess how many a block holds.
const EVENT_BYTES: usize = 150;

/// Sorts the events of a block into its records.
pub(super) struct Phases<'t> {
    names: Words,
    kinds: Words,
    lanes: Words,
    texts: Words,
    tasks: Tasks,
    /// The arguments of the tasks.
    args: Texts,
    joins: Joins,
    lists: Lists,
    stats: Stats,
    /// Where the block begins, for places in messages.
    place: Place<'t>,
    /// What times are counted in.
    tick: Tick,
    /// Whether `tq` wrote the file.
    is_ours: bool,
    records: u64,
    rounded: u64,
    rounded_example: String,
    recent_kind: Recent<'t>,
    /// Of flows.
    recent_category: Recent<'t>,
    recent_name: Recent<'t>,
    /// The last few lanes by pid and tid as written; the next to be replaced.
    recent_lanes: [(&'t str, &'t str, i32); 4],
    next_lane: usize,
    scratch: String,
}

impl<'t> Phases<'t> {
    pub(super) fn new(bytes: usize, place: Place<'t>, written: &Written) -> Phases<'t> {
        let mut tasks = Tasks::default();
        let rows = bytes / EVENT_BYTES;
        tasks.starts.reserve(rows);
        tasks.finishes.reserve(rows);
        tasks.names.reserve(rows);
        tasks.kinds.reserve(rows);
        tasks.lanes.reserve(rows);
        Phases {
            names: Words::default(),
            kinds: Words::default(),
            lanes: Words::default(),
            texts: Words::default(),
            tasks,
            args: Texts::with_capacity(rows, bytes / 4 * 3),
            joins: Joins::default(),
            lists: Lists::default(),
            stats: Stats::default(),
            place,
            tick: written.tick(),
            is_ours: written.is_ours(),
            records: 0,
            rounded: 0,
            rounded_example: String::new(),
            recent_kind: Recent::new(),
            recent_category: Recent::new(),
            recent_name: Recent::new(),
            recent_lanes: [("", "", NO_WORD); 4],
            next_lane: 0,
            scratch: String::new(),
        }
    }

    pub(super) fn into_records(mut self) -> Records {
        self.stats.records(self.records);
        let example = self.rounded_example;
        self.stats.note(findings::ROUNDED, self.rounded, || example);
        self.tasks.shrink();
        self.joins.shrink();
        Records {
            names: self.names,
            kinds: self.kinds,
            lanes: self.lanes,
            texts: self.texts,
            tasks: self.tasks,
            args: self.args.finish(),
            joins: self.joins,
            lists: self.lists,
            stats: self.stats,
        }
    }

    pub(super) fn has_events(&self) -> bool {
        self.lists.events > 0
    }

    pub(super) fn note(&mut self, finding: Finding, at: usize, what: impl FnOnce() -> String) {
        let place = self.place;
        self.stats.note(finding, 1, || format!("byte {}: {}", place.of(at), what()));
    }

    /// Counts a record that becomes no row.
    pub(super) fn left_out(&mut self, finding: Finding, at: usize, what: impl FnOnce() -> String) {
        self.records += 1;
        self.dropped(finding, at, what);
    }

    /// The same for a record that is booked already.
    fn dropped(&mut self, finding: Finding, at: usize, what: impl FnOnce() -> String) {
        let place = self.place;
        self.stats.left_out(finding, 1, || format!("byte {}: {}", place.of(at), what()));
    }

    /// Takes the event that begins at `at`.
    #[inline]
    pub(super) fn take(&mut self, event: &Event<'t>, at: usize) {
        self.lists.events += 1;
        self.lists.first_phase.get_or_insert(event.phase);
        if let event::Args::Repaired(_) = event.args {
            self.note(findings::ARGS_REPAIRED, at, || "`args` was no valid JSON".to_owned());
        }
        if let Some(key) = event.misfit {
            self.note(findings::WRONG_TYPE, at, || format!("`{key}` is an array or an object; it joins the arguments"));
        }
        if event.phase != b'C' {
            self.records += 1;
        }
        match event.phase {
            b'X' => self.complete(event, at),
            b'f' | b's' | b't' => self.flow(event, at),
            b'B' => self.begin(event, at),
            b'E' => self.end(event, at),
            b'i' | b'I' | b'R' => self.instant(event, at),
            b'C' => self.counter(event, at),
            b'M' => self.metadata(event, at),
            b'T' if !event.dur.is_empty() => self.state(event, at),
            b'b' | b'n' | b'e' | b'S' | b'T' | b'p' | b'F' => self.asynchronous(event, at),
            b'N' | b'O' | b'D' => self.mark(event, at, MarkKind::Object),
            b'P' => self.mark(event, at, MarkKind::Sample),
            b'V' | b'v' => self.mark(event, at, MarkKind::MemoryDump),
            b'(' | b')' => self.mark(event, at, MarkKind::Context),
            b'=' => self.dropped(findings::LINK_IDS, at, || "`=` links ids across processes".to_owned()),
            b'c' => self.dropped(findings::CLOCK_SYNC, at, || "`c` synchronises clocks of several traces".to_owned()),
            other => {
                let phase = char::from(other);
                self.dropped(findings::UNKNOWN_PHASE, at, || format!("`ph` is `{}`", phase.escape_debug()));
            }
        }
    }

    // Tasks.

    #[inline]
    fn complete(&mut self, event: &Event<'t>, at: usize) {
        let span = match event.dur {
            "" | "null" => self.time(event, at).map(|start| (start, UNFINISHED)),
            _ => self.span(event, at),
        };
        let Some(span) = span else { return };
        if span.1 == UNFINISHED {
            let name = plain(event.name);
            self.note(findings::UNFINISHED, at, || format!("`{name}` has no `dur`"));
        }
        let lane = self.thread(event.pid, event.tid);
        let kind = self.kind(event.category, at);
        let row = self.push(event, at, span, kind, lane, [("tts", event.tts), ("tdur", event.tdur)]);
        let facts = event.facts;
        if let Some(id) = facts.correlation.filter(|id| *id > 0) {
            self.joins.correlations.push((row, id));
        }
        if let Some(id) = facts.external.filter(|id| *id > 0) {
            self.joins.externals.push((row, id));
        }
        if let Some(id) = facts.python {
            self.joins.pythons.push(Python { row, id, parent: facts.python_parent });
        }
        if event.category.is_some_and(|category| category.raw == "cuda_sync") {
            self.joins.syncs.push(row);
        }
    }

    fn state(&mut self, event: &Event<'t>, at: usize) {
        let Some(span) = self.span(event, at) else { return };
        let lane = self.composed('S', [event.pid, event.tid]);
        let kind = self.kinds.intern("state");
        self.push(event, at, span, kind, lane, [("tts", event.tts), ("tdur", event.tdur)]);
    }

    fn begin(&mut self, event: &Event<'t>, at: usize) {
        let Some(start) = self.time(event, at) else { return };
        let lane = self.thread(event.pid, event.tid);
        let kind = self.kind(event.category, at);
        let row = self.push(event, at, (start, UNFINISHED), kind, lane, [("tts", event.tts), ("", "")]);
        let thread_time = thread_time(event);
        let name = self.tasks.names[row as usize];
        let edge = Edge::Begin(Begin { row, name, kind, thread_time });
        self.lists.steps.push(Step { lane, time: start, sequence: self.lists.events, edge });
    }

    fn end(&mut self, event: &Event<'t>, at: usize) {
        let Some(time) = self.time(event, at) else { return };
        let lane = self.thread(event.pid, event.tid);
        let edge = Edge::End(End {
            next_row: self.tasks.len() as u32,
            name: self.text(event.name, at),
            category: self.text(event.category, at),
            thread_time: thread_time(event),
            args: own_args(event, []),
        });
        self.lists.steps.push(Step { lane, time, sequence: self.lists.events, edge });
        self.dropped(findings::END_EVENTS, at, || "an `E` ends the task of its `B`".to_owned());
    }

    fn asynchronous(&mut self, event: &Event<'t>, at: usize) {
        let Some(time) = self.time(event, at) else { return };
        let old = matches!(event.phase, b'S' | b'T' | b'p' | b'F');
        let category = plain(event.category);
        let name = plain(event.name);
        let mut key = String::new();
        for part in [category.as_str(), event.scope].into_iter().chain(old.then_some(name.as_str())) {
            push_part(part, &mut key);
            key.push(SEPARATOR);
        }
        let id = self.async_id(event, &mut key, at, &name);
        let lane = self.composed('A', [event.pid, &category, &name]);
        let begins = matches!(event.phase, b'b' | b'S');
        let row = begins.then(|| {
            let kind = self.kind(event.category, at);
            let row = self.push(event, at, (time, UNFINISHED), kind, lane, [("tts", event.tts), ("", "")]);
            if let Some(id) = id {
                self.tasks.ids.pop_if(|(known, _)| *known == row);
                self.tasks.ids.push((row, id.into()));
            }
            row
        });
        if matches!(event.phase, b'e' | b'F') {
            self.dropped(findings::END_EVENTS, at, || "an `e` or `F` ends the task of its `b` or `S`".to_owned());
        }
        let part = Async {
            sequence: self.lists.events,
            phase: event.phase,
            key: self.texts.intern(&key),
            name: self.text(event.name, at),
            lane,
            time,
            row,
            args: if begins { None } else { own_args(event, []) },
        };
        self.lists.asyncs.push(part);
    }

    /// Completes the key of asynchronous events by their id; the id as text.
    fn async_id(&mut self, event: &Event<'t>, key: &mut String, at: usize, name: &str) -> Option<String> {
        let global = event::get(event.id2, "global");
        let local = event::get(event.id2, "local");
        let id = global.or(local).unwrap_or(event.id);
        if id.is_empty() || id == "\"\"" || id == "null" {
            // Without an id, events of one name in one process belong together.
            key.extend(["\u{1}pid", &pid_key(event.pid), "\u{1}", name]);
            self.note(findings::MISSING_ID, at, || "no `id`: paired by process, category and name".to_owned());
            return None;
        }
        if global.is_none() && local.is_some() {
            key.extend(["pid", &pid_key(event.pid), "\u{1}"]);
        }
        push_part(&async_key(id), key);
        Some(event::string_value(id).unwrap_or_else(|| id.to_owned()))
    }

    /// Appends a task; `own` are members that join its arguments.
    #[inline]
    fn push(
        &mut self,
        event: &Event<'t>,
        at: usize,
        (start, finish): (i64, i64),
        kind: i32,
        lane: i32,
        own: [(&'t str, &'t str); 2],
    ) -> u32 {
        let row = self.tasks.len() as u32;
        let name = match event.name {
            Some(Text { raw, plain: true }) => self.names.intern(raw),
            Some(text) => {
                let name = self.repaired(text, at);
                self.names.intern(&name)
            }
            None => self.names.intern(""),
        };
        self.tasks.starts.push(start);
        self.tasks.finishes.push(finish);
        self.tasks.names.push(name);
        self.tasks.kinds.push(kind);
        self.tasks.lanes.push(lane);
        let fits = if own.iter().all(|(_, value)| value.is_empty()) && event.others.is_empty() {
            self.args.push(event.kept_args())
        } else {
            let args = with_others(event, own);
            self.args.push(&args)
        };
        if !fits {
            self.note(findings::ARGS_TOO_LONG, at, || "`args` of a block end at 2 GiB".to_owned());
        }
        if !event.id.is_empty() {
            let id = event::string_value(event.id).unwrap_or_else(|| event.id.to_owned());
            self.tasks.ids.push((row, id.into()));
        }
        if event.told.is_some() {
            let role = self.told(event, "role");
            self.tasks.roles.extend(role.map(|role| (row, role)));
            let has_none = matches!(round_trip::said(event.told.as_deref(), "kind"), Said::Null);
            self.tasks.without_kind.extend(has_none.then_some(row));
        }
        if !event.bind_id.is_empty() {
            self.bind(event, row, at);
        }
        row
    }

    fn bind(&mut self, event: &Event<'t>, row: u32, at: usize) {
        let (into, out) = (is_true(event.flow_in), is_true(event.flow_out));
        match self.flow_id(event.bind_id) {
            Some(id) if into || out => {
                let time = self.tasks.starts[row as usize];
                self.lists.binds.push(Bind { row, time, id, into, out });
            }
            Some(_) => {}
            None => self.note(findings::FLOW_WITHOUT_ID, at, || "`bind_id` is empty".to_owned()),
        }
    }

    // Everything else.

    fn flow(&mut self, event: &Event<'t>, at: usize) {
        let Some(time) = self.time(event, at) else { return };
        let Some(id) = self.flow_id_of(event) else {
            self.dropped(findings::FLOW_WITHOUT_ID, at, || "a flow without `id`".to_owned());
            return;
        };
        let mut key = |text: Option<Text<'t>>, recent: &mut Recent<'t>| match text {
            None => NO_WORD,
            // None as well: one end of a flow may say nothing where the other says "".
            Some(text) if text.raw.is_empty() => NO_WORD,
            Some(text) => recent.get(text.raw, || match text.plain {
                true => self.texts.intern(text.raw),
                false => self.texts.intern(&repair::unescape(text.raw).0),
            }),
        };
        let category = key(event.category, &mut self.recent_category);
        let name = key(event.name, &mut self.recent_name);
        let args = event.args.text().map(event::members).unwrap_or_default();
        let task = match args.as_slice() {
            [(key, task)] if *key == flows::TASK => task.parse().ok(),
            _ => None,
        };
        let told = event.told.as_deref().map_or(NO_WORD, |told| self.texts.intern(told));
        if (task.is_none() && !args.is_empty()) || !event.others.is_empty() {
            self.note(findings::FLOW_ARGS_LEFT_OUT, at, || {
                "`s`, `t` and `f` become links, which have no arguments".to_owned()
            });
        }
        let flow = Flow {
            sequence: self.lists.events,
            phase: event.phase,
            encloses: event.binding_point.trim_matches('"') == "e",
            lane: self.thread(event.pid, event.tid),
            time,
            category,
            name,
            id,
            task,
            told,
        };
        self.lists.flows.push(flow);
        self.dropped(findings::FLOW_EVENTS, at, || "pairs of `s`, `t` and `f` become links".to_owned());
    }

    /// The id of `s`, `t` and `f`; one that is local counts within its process.
    fn flow_id_of(&mut self, event: &Event<'t>) -> Option<FlowId> {
        match (event.id, event::get(event.id2, "global"), event::get(event.id2, "local")) {
            ("" | "null" | "\"\"", Some(global), _) => self.flow_id(global),
            ("" | "null" | "\"\"", None, Some(local)) if local != "\"\"" && local != "null" => {
                let key = format!("pid{}{SEPARATOR}{}", pid_key(event.pid), async_key(local));
                Some(FlowId::Text(self.texts.intern(&key)))
            }
            (id, ..) => self.flow_id(id),
        }
    }

    /// Strings are hexadecimal, with or without `0x`, as Perfetto reads them; `None` for an empty one.
    fn flow_id(&mut self, token: &str) -> Option<FlowId> {
        if let Some(text) = event::string_value(token) {
            if text.is_empty() {
                return None;
            }
            let number = hexadecimal(digits_of(&text).unwrap_or(&text));
            let number = number.map(|number| FlowId::Number(number as i64));
            return Some(number.unwrap_or_else(|| FlowId::Text(self.texts.intern(token))));
        }
        match token {
            "" | "null" => None,
            _ => Some(whole_id(token).map_or_else(|| FlowId::Text(self.texts.intern(token)), FlowId::Number)),
        }
    }

    fn instant(&mut self, event: &Event<'t>, at: usize) {
        let rows = self.lists.marks.len();
        self.mark(event, at, MarkKind::Instant);
        // What `tq` wrote says what it counts.
        let is_memory = !self.is_ours && event.name.is_some_and(|name| name.raw == "[memory]");
        if is_memory && self.lists.marks.len() > rows {
            self.memory(event, at);
        }
    }

    fn mark(&mut self, event: &Event<'t>, at: usize, kind: MarkKind) {
        let Some(time) = self.told_time(event, at) else { return };
        let lane = match event.instant_scope.trim_matches('"') {
            "g" => NO_WORD,
            "p" => self.composed('P', [event.pid]),
            _ => self.thread(event.pid, event.tid),
        };
        let mut own = Vec::new();
        let told_kind = event.category.map(|category| repair::unescape(category.raw).0);
        let told_kind = told_kind.as_deref().and_then(|category| category.strip_prefix(WRITTEN));
        let told_kind = told_kind.map_or(NO_WORD, |kind| self.texts.intern(kind));
        let category = event.category.filter(|_| told_kind == NO_WORD).map(|category| {
            let mut quoted = String::new();
            repair::quote(&repair::unescape(category.raw).0, &mut quoted);
            quoted
        });
        let phase = format!("\"{}\"", char::from(event.phase));
        if let Some(category) = category.as_deref().filter(|category| *category != "\"\"") {
            own.push(("cat", category));
        }
        if kind != MarkKind::Instant {
            own.push(("ph", phase.as_str()));
        }
        for (key, value) in [("id", event.id), ("id2", event.id2), ("tts", event.tts)] {
            if !value.is_empty() {
                own.push((key, value));
            }
        }
        let args = own_args(event, own);
        let name = self.text(Some(event.name.unwrap_or(Text { raw: "", plain: true })), at);
        let told_task = round_trip::task(event.told.as_deref());
        self.lists.marks.push(Mark { lane, time, name, kind, told_kind, task: None, told_task, args });
    }

    fn counter(&mut self, event: &Event<'t>, at: usize) {
        let args = event.args.text().unwrap_or_default();
        let series = event::members(args);
        if series.is_empty() {
            self.left_out(findings::BAD_COUNTER, at, || "a counter without values".to_owned());
            return;
        }
        let time = match time::ticks(event.ts.as_bytes(), self.tick) {
            Ok(time) => {
                if time.rounded {
                    self.rounded(at, event);
                }
                if matches!(round_trip::said(event.told.as_deref(), "time"), Said::Null) { NO_TIME } else { time.value }
            }
            Err(_) => {
                self.records += series.len() as u64 - 1;
                let count = series.len() as u64;
                let place = self.place;
                self.stats
                    .left_out(findings::BAD_TIME, count - 1, || format!("byte {}: `ts` of a counter", place.of(at)));
                self.left_out(findings::BAD_TIME, at, || "`ts` of a counter is no time".to_owned());
                return;
            }
        };
        let category = event.category.map(|category| repair::unescape(category.raw).0);
        let told_name = category.as_deref().and_then(|category| category.strip_prefix(WRITTEN));
        let lane = match told_name {
            Some(_) if matches!(round_trip::said(event.told.as_deref(), "location"), Said::Null) => NO_WORD,
            Some(_) => self.thread(event.pid, event.tid),
            None => self.composed('P', [event.pid]),
        };
        let measure = match event.told.as_deref() {
            None => Measure::Level,
            Some(told) => Measure::Told {
                kind: self.told(event, "kind").unwrap_or_else(|| self.texts.intern("level")),
                unit: self.told(event, "unit").unwrap_or(NO_WORD),
                task: round_trip::task(Some(told)),
            },
        };
        let name = told_name.map_or_else(|| plain(event.name), str::to_owned);
        let id = match event::get(event.id2, "global").or(event::get(event.id2, "local")).unwrap_or(event.id) {
            "" | "\"\"" | "null" => String::new(),
            token => format!(" id: {}", event::string_value(token).unwrap_or_else(|| token.to_owned())),
        };
        for (key, value) in series {
            let key = repair::unescape(key).0;
            let text = event::string_value(value);
            let Some((value, is_exact)) = time::double(text.as_deref().unwrap_or(value)) else {
                self.left_out(findings::BAD_COUNTER, at, || format!("`{key}` of `{name}` is no number: {value}"));
                continue;
            };
            if !is_exact {
                self.note(findings::VALUE_ROUNDED, at, || format!("`{key}` of `{name}` is rounded to {value}"));
            }
            self.records += 1;
            let blank = if key.is_empty() { "" } else { " " };
            let series = self.texts.intern(&format!("{name}{id}{blank}{key}"));
            self.lists.samples.push(Sample { lane, time, series, value, measure });
        }
    }

    /// `{"Total Reserved": 0, "Total Allocated": 6144, "Bytes": 2048, "Addr": 98765, "Device Id": -1, "Device Type": 0}`
    fn memory(&mut self, event: &Event<'t>, at: usize) {
        let Some(time) = time::ticks(event.ts.as_bytes(), self.tick).ok() else { return };
        let args = event.args.text().unwrap_or_default();
        let members = event::members(args);
        let number = |key: &str| {
            members.iter().find(|(name, _)| *name == key).and_then(|(_, value)| event::integer(value.as_bytes()))
        };
        // The numbers of PyTorch's DeviceType.
        let device = match number("Device Type").unwrap_or(0) {
            0 => "cpu".to_owned(),
            1 => "cuda".to_owned(),
            6 => "hip".to_owned(),
            12 => "xpu".to_owned(),
            13 => "mps".to_owned(),
            15 => "hpu".to_owned(),
            19 => "mtia".to_owned(),
            other => format!("device type {other}"),
        };
        let device = match number("Device Id") {
            Some(id) if id >= 0 => format!("{device}:{id}"),
            _ => device,
        };
        let lane = self.composed('P', [event.pid]);
        for (key, measure) in
            [("Total Allocated", Measure::Bytes), ("Total Reserved", Measure::Bytes), ("Bytes", Measure::BytesDelta)]
        {
            let Some((_, token)) = members.iter().find(|(name, _)| *name == key) else { continue };
            let text = event::string_value(token);
            let Some((value, is_exact)) = time::double(text.as_deref().unwrap_or(token)) else {
                self.note(findings::BAD_COUNTER, at, || format!("`{key}` of `[memory]` is no number: {token}"));
                continue;
            };
            if !is_exact {
                self.note(findings::VALUE_ROUNDED, at, || format!("`{key}` of `[memory]` is rounded to {value}"));
            }
            let series = self.texts.intern(&format!("{key} {device}"));
            self.lists.samples.push(Sample { lane, time: time.value, series, value, measure });
        }
    }

    fn metadata(&mut self, event: &Event<'t>, at: usize) {
        let what = plain(event.name);
        let lane = match what.starts_with("thread_") {
            true => self.thread(event.pid, event.tid),
            false => self.composed('P', [event.pid]),
        };
        let args = event.args.text().unwrap_or_default().to_owned();
        self.lists.facts.push(Fact { lane, what, args });
        self.dropped(findings::METADATA_EVENTS, at, || "`M` describes locations".to_owned());
    }

    // Parts of events.

    #[inline]
    fn span(&mut self, event: &Event<'t>, at: usize) -> Option<(i64, i64)> {
        match time::span(event.ts.as_bytes(), event.dur.as_bytes(), self.tick) {
            Ok(span) => {
                if span.rounded {
                    self.rounded(at, event);
                }
                if span.negative {
                    let dur = event.dur;
                    self.note(findings::NEGATIVE_DURATION, at, || format!("`dur` is {dur}; read as 0"));
                }
                Some((span.start, span.finish))
            }
            Err(_) => {
                let (ts, dur) = (event.ts, event.dur);
                let missing = [ts, dur].iter().any(|time| time.is_empty() || *time == "null");
                let finding = if missing { findings::MISSING_TIME } else { findings::BAD_TIME };
                self.dropped(finding, at, || format!("`ts` is `{ts}`, `dur` is `{dur}`"));
                None
            }
        }
    }

    #[inline]
    fn time(&mut self, event: &Event<'t>, at: usize) -> Option<i64> {
        match time::ticks(event.ts.as_bytes(), self.tick) {
            Ok(time) => {
                if time.rounded {
                    self.rounded(at, event);
                }
                Some(time.value)
            }
            Err(_) => {
                let ts = event.ts;
                let finding = if ts.is_empty() || ts == "null" { findings::MISSING_TIME } else { findings::BAD_TIME };
                self.dropped(finding, at, || format!("`ts` is `{ts}`"));
                None
            }
        }
    }

    fn rounded(&mut self, at: usize, event: &Event<'t>) {
        if self.rounded == 0 {
            let place = self.place.of(at);
            self.rounded_example = format!("byte {place}: ts {} dur {}, rounded to 1 ns", event.ts, event.dur);
        }
        self.rounded += 1;
    }

    #[inline]
    fn kind(&mut self, category: Option<Text<'t>>, at: usize) -> i32 {
        match category.unwrap_or(Text { raw: "", plain: true }) {
            Text { raw, plain: true } => self.recent_kind.get(raw, || self.kinds.intern(raw)),
            text => {
                let kind = self.repaired(text, at);
                self.kinds.intern(&kind)
            }
        }
    }

    #[inline]
    fn thread(&mut self, pid: &'t str, tid: &'t str) -> i32 {
        for (recent_pid, recent_tid, lane) in self.recent_lanes {
            if recent_tid == tid && recent_pid == pid && lane != NO_WORD {
                return lane;
            }
        }
        let lane = self.composed('T', [pid, tid]);
        self.recent_lanes[self.next_lane] = (pid, tid, lane);
        self.next_lane = (self.next_lane + 1) % self.recent_lanes.len();
        lane
    }

    /// The lane of a sort (a letter) that these parts name; [`super::lanes`] reads them again.
    fn composed<const N: usize>(&mut self, sort: char, parts: [&str; N]) -> i32 {
        self.scratch.clear();
        self.scratch.push(sort);
        for part in parts {
            self.scratch.push(SEPARATOR);
            push_part(part, &mut self.scratch);
        }
        self.lanes.intern(&self.scratch)
    }

    /// The key of what a member `tq` says, [`NO_WORD`] for NULL; `None` where it says nothing.
    fn told(&mut self, event: &Event<'t>, key: &str) -> Option<i32> {
        match round_trip::said(event.told.as_deref(), key) {
            Said::Nothing => None,
            Said::Null => Some(NO_WORD),
            Said::Text(text) => Some(self.texts.intern(&text)),
        }
    }

    /// The time of an event; [`NO_TIME`] where `tq` says that it has none.
    fn told_time(&mut self, event: &Event<'t>, at: usize) -> Option<i64> {
        let time = self.time(event, at)?;
        Some(if matches!(round_trip::said(event.told.as_deref(), "time"), Said::Null) { NO_TIME } else { time })
    }

    /// The key of a text, [`NO_WORD`] without one.
    fn text(&mut self, text: Option<Text<'t>>, at: usize) -> i32 {
        match text {
            None => NO_WORD,
            Some(Text { raw, plain: true }) => self.texts.intern(raw),
            Some(text) => {
                let text = self.repaired(text, at);
                self.texts.intern(&text)
            }
        }
    }

    fn repaired(&mut self, text: Text<'t>, at: usize) -> String {
        let (meaning, repaired) = repair::unescape(text.raw);
        if repaired {
            self.note(findings::BAD_STRING, at, || format!("`{}`", text.raw.escape_debug()));
        }
        meaning
    }
}

/// Appends a part of a composed key. A separator in it becomes an escape, which means the same where the part is JSON.
fn push_part(part: &str, key: &mut String) {
    match part.contains(SEPARATOR) {
        true => key.push_str(&part.replace(SEPARATOR, "\\u0001")),
        false => key.push_str(part),
    }
}

fn plain(text: Option<Text<'_>>) -> String {
    text.map(|text| repair::unescape(text.raw).0).unwrap_or_default()
}

fn is_true(token: &str) -> bool {
    matches!(token.trim_matches('"'), "true" | "1")
}

/// An id as part of a key: "0x1f", "0X1F", "31", 31 and 31.0 are one.
fn async_key(token: &str) -> String {
    let Some(text) = event::string_value(token) else { return plain_number(token) };
    digits_of(&text).and_then(hexadecimal).map_or(text, |number| number.to_string())
}

/// What follows the `0x` of a hexadecimal number.
fn digits_of(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn hexadecimal(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

/// A whole number as the id of a flow. Ids above 2⁶³ wrap: all that matters is that they differ.
fn whole_id(token: &str) -> Option<i64> {
    let number = plain_number(token);
    number.parse().ok().or_else(|| number.parse::<u64>().ok().map(|number| number as i64))
}

fn thread_time(event: &Event<'_>) -> Option<i64> {
    time::ticks(event.tts.trim_matches('"').as_bytes(), Tick::Nanosecond).ok().map(|time| time.value)
}

/// The arguments with members of the event that have no column.
fn with_others(event: &Event<'_>, own: [(&str, &str); 2]) -> String {
    let own = own.map(valid_member);
    event::with_members(event.args.text(), joined(own.iter().flatten(), event))
}

fn own_args<'m>(event: &'m Event<'_>, own: impl IntoIterator<Item = (&'m str, &'m str)>) -> Option<Box<str>> {
    let own: Vec<_> = own.into_iter().filter_map(valid_member).collect();
    if own.is_empty() && event.others.is_empty() {
        return event.args.text().map(|args| event::compact(args).into());
    }
    Some(event::with_members(event.args.text(), joined(own.iter(), event)).into())
}

/// Members of an event that join its arguments.
fn joined<'m>(
    own: impl Iterator<Item = &'m (&'m str, Cow<'m, str>)>,
    event: &'m Event<'_>,
) -> impl Iterator<Item = (&'m str, &'m str)> {
    let others = event.others.iter().map(|(key, value)| (&**key, value.as_str()));
    own.map(|(key, value)| (*key, &**value)).chain(others)
}

/// A member with a value that is JSON, which `.5` and `+3` become; `None` for one without a value.
fn valid_member<'m>((key, value): (&'m str, &'m str)) -> Option<(&'m str, Cow<'m, str>)> {
    if value.is_empty() {
        return None;
    }
    if super::lex::value(value.as_bytes(), 0, &mut Vec::new()) == Ok(value.len()) {
        return Some((key, value.into()));
    }
    let mut repaired = String::new();
    // What ends with the text may go on behind it.
    if repair::value(&format!("{value} "), 0, &mut repaired).is_err() {
        repaired.clear();
        repair::quote(value, &mut repaired);
    }
    Some((key, repaired.into()))
}
