//! Build: the batches of one section become chunks of the run.
//!
//! Each output column is filled from the cells mapped to it: times become ticks, words become keys of the run's
//! dictionaries, references become keys in the index of tasks. A cell that does not fit its column becomes NULL, is
//! counted with its place, and goes to `args` unchanged. A row is left out only when it cannot be a row of the table: a
//! link that lacks an end, a second row for a location.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray,
    StringBuilder,
};
use datafusion::arrow::compute::{cast, filter, nullif};
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Int64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::array_value_to_string;

use tq_udfs::ticks::Tick;

use super::args::{BadCell, args, count_not_finite};
use super::guess::Looks;
use super::mapping::{END_TIME, LOCATION_ATTRIBUTES, Section, TaskKey};
use super::plan::{From, Plan, Planned, PlannedPiece, has_args, key_word};
use super::read::{Batch, CellKind, Header, Place, Sink};
use super::run::{Chunk, Lanes, Reference, RunTables};
use super::times::{Clock, Times, rounded_once};
use crate::cells::Values;
use crate::error::ImportError;
use crate::importers::mpi;
use crate::tables::{self, ColumnType, Table};
use crate::trace::{Room, Stats, findings};

/// From here on not every whole number is a float: 2^53.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// Takes the batches of one section.
pub(super) struct SectionSink<'a> {
    run: &'a mut RunTables,
    section: &'a Section,
    plan: Option<Plan>,
}

/// What one batch becomes, while its columns are read.
struct Rows {
    chunk: Chunk,
    bad: Vec<BadCell>,
    process: Option<StringArray>,
    clock: Option<StringArray>,
    /// The file's own `args`.
    own_args: Option<StringArray>,
    ids: Option<StringArray>,
    names: Option<StringArray>,
    /// Columns of locations: ours, and the texts.
    locations: Vec<(&'static str, StringArray)>,
    /// Columns that refer to tasks: ours, and the texts.
    references: Vec<(&'static str, StringArray)>,
    /// Whether names say the roles of tasks, since no column does.
    guesses_roles: bool,
    durations: Option<Int64Array>,
    /// Times of ours, and what rounding took from them.
    rests: Vec<(&'static str, Vec<(usize, i32)>)>,
    /// Rows to leave out.
    left_out: Vec<bool>,
}

impl Sink for SectionSink<'_> {
    fn header(&mut self, header: Header) -> Result<(), ImportError> {
        let mut plan = Plan::new(self.section, &header, self.run.tick)?;
        if plan.uses_picoseconds() && self.run.may_count_in_picoseconds() {
            self.run.count_in(Tick::Picosecond);
            plan = Plan::new(self.section, &header, self.run.tick)?;
        }
        let refers = plan.columns.iter().find(|planned| planned.column.column_type == ColumnType::Identity);
        if self.section.table == Table::Tasks && plan.has("id") {
            self.run.has_ids = true;
        }
        if let Some(planned) = refers
            && self.section.key == TaskKey::Id
            && !self.run.has_ids
        {
            let column = planned.column.name;
            return Err(ImportError::Unusable {
                path: self.section.file.clone(),
                what: format!("`{column}` refers to tasks by their id, but no column is the `id` of the tasks"),
                hint: Some(
                    "map `table.id=COLUMN` of the tasks, or say `table.key=name` where their names are unique"
                        .to_owned(),
                ),
            });
        }
        plan.note_columns(self.section, &header, &mut self.run.builder.stats);
        let unit = plan.columns.iter().find(|planned| planned.times.is_some()).and_then(|planned| planned.unit);
        // Tasks are read first: their unit is that of the run.
        if let Some(unit) = unit.filter(|_| !std::mem::replace(&mut self.run.has_unit, true)) {
            self.run.builder.info.time_unit = unit.symbol();
        }
        self.plan = Some(plan);
        Ok(())
    }

    fn batch(&mut self, batch: Batch) -> Result<(), ImportError> {
        let Some(mut plan) = self.plan.take() else {
            return Err(self.internal("rows before the header"));
        };
        let taken = self.take(&mut plan, &batch);
        self.plan = Some(plan);
        taken
    }

    fn stats(&mut self) -> &mut Stats {
        &mut self.run.builder.stats
    }
}

impl<'a> SectionSink<'a> {
    pub(super) fn new(run: &'a mut RunTables, section: &'a Section) -> SectionSink<'a> {
        SectionSink { run, section, plan: None }
    }

    /// After the last batch: every key that the mapping names must have been in some record.
    pub(super) fn finish(self) -> Result<(), ImportError> {
        let missing = self.plan.iter().flat_map(|plan| &plan.columns).find(|planned| planned.must_appear);
        let Some(planned) = missing else { return Ok(()) };
        let entry = self.section.entries.iter().find(|entry| entry.column == planned.column);
        let what = format!("no record of {} has a key `{}`", self.section.file.display(), planned.name);
        Err(match entry {
            Some(entry) => entry.given.refuse(what, None),
            None => self.internal("a column that nobody asked for"),
        })
    }

    fn take(&mut self, plan: &mut Plan, batch: &Batch) -> Result<(), ImportError> {
        self.run.builder.stats.records(batch.rows as u64);
        let table = self.section.table;
        let mut rows = Rows {
            chunk: Chunk::new(table, batch.rows),
            bad: Vec::new(),
            process: None,
            clock: None,
            own_args: None,
            ids: None,
            names: None,
            locations: Vec::new(),
            references: Vec::new(),
            guesses_roles: table == Table::Tasks && !plan.has("role"),
            durations: None,
            rests: Vec::new(),
            left_out: vec![false; batch.rows],
        };
        self.guess_unit(plan, batch)?;
        for planned in &mut plan.columns {
            self.column(planned, batch, &mut rows)?;
        }
        self.defaults(plan, &mut rows);
        if table == Table::Tasks {
            self.spans(batch, &mut rows);
            self.enter_tasks(batch, &rows);
        }
        self.refer(batch, &mut rows);
        self.locate(batch, &mut rows);
        if has_args(table) {
            rows.bad.sort();
            self.note_not_finite(plan, batch);
            let args = args(batch, &plan.unmapped, rows.own_args.as_ref(), &rows.bad);
            if let Some(args) = args.map_err(|error| self.arrow(error))? {
                rows.chunk.given.set_named("args", Values::Each(Arc::new(args)));
            }
        }
        let chunk = without(rows.chunk, &rows.left_out).map_err(|error| self.arrow(error))?;
        if chunk.rows == 0 { Ok(()) } else { self.run.push(chunk) }
    }

    /// Times that name no unit get one from the first of them that is a number, all the same one.
    fn guess_unit(&mut self, plan: &mut Plan, batch: &Batch) -> Result<(), ImportError> {
        let is_open = |planned: &&mut Planned| planned.times.is_some() && planned.unit.is_none();
        // A start says more than a duration: it may be a date.
        let is_length = |planned: &Planned| planned.column.name == "duration";
        let said = plan.columns.iter().filter(|planned| planned.times.is_some()).find_map(|planned| planned.unit);
        let mut candidates: Vec<&mut Planned> = plan.columns.iter_mut().filter(is_open).collect();
        candidates.sort_by_key(|planned| is_length(planned));
        let mut looks = None;
        for planned in &candidates {
            let column = cells(planned, batch).map_err(|error| self.arrow(error))?;
            if let Some(found) = Looks::of(&column) {
                looks = Some((found, planned.column.name, planned.name.clone()));
                break;
            }
        }
        let Some((looks, ours, theirs)) = looks else { return Ok(()) };
        let (unit, why) = match said {
            Some(unit) => (unit, "others of the same rows are"),
            None => looks.unit(),
        };
        for planned in candidates {
            planned.unit = Some(unit);
            if let Some(reader) = &mut planned.times {
                reader.set_unit(unit);
            }
        }
        if !std::mem::replace(&mut self.run.has_unit, true) {
            self.run.builder.info.time_unit = unit.symbol();
        }
        let file = self.section.file.display();
        self.run.builder.stats.note(findings::TIME_UNIT_GUESSED, 1, || {
            let key = if self.section.phase.is_some() { "time" } else { ours };
            let theirs = theirs.trim_start_matches(END_TIME);
            format!("{file}: `{theirs}` names no unit; its numbers were taken as {}, since {why}: `table.{key}={theirs}:us` and the like say it", unit.symbol())
        });
        Ok(())
    }

    /// Where the file says no roles, calls of MPI have those that their names tell: else waiting for a message would be work.
    fn guess_roles(&mut self, names: &StringArray, batch: &Batch, rows: &mut Rows) {
        let roles: StringArray = names.iter().map(|name| name.and_then(mpi::role)).collect();
        let Some(first) = roles.iter().position(|role| role.is_some()) else { return };
        let count = (roles.len() - roles.null_count()) as u64;
        let place = self.place(batch, first);
        self.run.builder.stats.note(findings::ROLE_GUESSED, count, || {
            format!("{place}: `{}` has role {}; a column `role` says otherwise", names.value(first), roles.value(first))
        });
        let roles = self.words("role", &roles).values();
        rows.chunk.given.set_named("role", roles);
    }

    /// Roles that say nothing to any figure.
    fn count_unknown_roles(&mut self, roles: &StringArray, batch: &Batch) {
        let is_unknown = |role: &Option<&str>| role.is_some_and(|role| !role.is_empty() && !ROLES.contains(&role));
        let Some(first) = roles.iter().position(|role| is_unknown(&role)) else { return };
        let count = roles.iter().filter(is_unknown).count() as u64;
        let place = self.place(batch, first);
        let example = || format!("{place}: `{}`; known are {}", clipped(roles.value(first)), ROLES.join(", "));
        self.run.builder.stats.note(findings::UNKNOWN_ROLE, count, example);
    }

    /// Reads one column of ours.
    fn column(&mut self, planned: &mut Planned, batch: &Batch, rows: &mut Rows) -> Result<(), ImportError> {
        let name = planned.column.name;
        let column = cells(planned, batch).map_err(|error| self.arrow(error))?;
        let column = self.without_nan(planned, column, batch)?;
        planned.must_appear &= column.null_count() == column.len();
        if let Some(reader) = &mut planned.times {
            let times = reader.read(&column, &mut self.run.epoch).map_err(|error| self.arrow(error))?;
            let Some(times) = times else {
                return Err(self.wrong_type(planned, column.data_type()));
            };
            return self.times(planned, &column, times, batch, rows);
        }
        let texts = match planned.column.column_type {
            ColumnType::Integer | ColumnType::Double => {
                let numbers = self.numbers(planned, &column, batch, rows)?;
                rows.chunk.given.set_named(name, Values::Each(numbers));
                return Ok(());
            }
            _ => texts(&column).map_err(|error| self.arrow(error))?,
        };
        let table = self.section.table;
        match planned.column.column_type {
            ColumnType::Identity => rows.references.push((name, texts)),
            _ if name == "args" => rows.own_args = Some(texts),
            ColumnType::Text => {
                if name == "id" {
                    rows.ids = Some(texts.clone());
                }
                rows.chunk.given.set_named(name, Values::Each(Arc::new(texts)));
            }
            _ if LOCATION_ATTRIBUTES.contains(&name) && table != Table::Locations => {
                *(if name == "process" { &mut rows.process } else { &mut rows.clock }) = Some(texts);
            }
            _ => {
                if table == Table::Tasks && name == "name" && self.run.needs_names {
                    rows.names = Some(texts.clone());
                }
                if rows.guesses_roles && name == "name" {
                    self.guess_roles(&texts, batch, rows);
                }
                if is_location(table, name) {
                    rows.locations.push((name, texts.clone()));
                }
                if table == Table::Tasks && name == "role" {
                    self.count_unknown_roles(&texts, batch);
                }
                let words = self.words(name, &texts);
                if table == Table::Tasks && name == "location" {
                    rows.chunk.lanes = Some(words.clone());
                }
                rows.chunk.given.set_named(name, words.values());
            }
        }
        Ok(())
    }

    /// The column with NULL in place of NaN, as which pandas writes NULL.
    fn without_nan(&mut self, planned: &Planned, column: ArrayRef, batch: &Batch) -> Result<ArrayRef, ImportError> {
        let Some(is_nan) = nan_rows(&column) else { return Ok(column) };
        let count = is_nan.true_count() as u64;
        let place = self.place(batch, is_nan.values().set_indices().next().unwrap_or(0));
        self.run.builder.stats.note(findings::NAN_IS_NULL, count, || format!("{place}: {}", planned.column.name));
        nullif(&column, &is_nan).map_err(|error| self.arrow(error))
    }

    /// Counts what `args` cannot hold.
    fn note_not_finite(&mut self, plan: &Plan, batch: &Batch) {
        if batch.cells != CellKind::Typed {
            return;
        }
        for (column, name) in &plan.unmapped {
            let count = count_not_finite(&batch.columns[*column]);
            let file = self.section.file.display();
            let example = || format!("{file}: NaN or Infinity in column `{name}`, which is null in args");
            self.run.builder.stats.note(findings::NOT_FINITE, count, example);
        }
    }

    /// Interns a column of words. One word in all rows takes no memory.
    fn words(&mut self, name: &'static str, texts: &StringArray) -> Lanes {
        let fill = default_word(self.section.table, name);
        let words = self.run.builder.words_of(self.section.table, name);
        let mut last: Option<(&str, i32)> = None;
        let keys: Int32Array = texts
            .iter()
            .map(|text| {
                let text = text.or(fill)?;
                // Runs of one word are common: the same location, the same name.
                match last {
                    Some((word, key)) if word == text => Some(key),
                    _ => {
                        let key = words.intern(text);
                        last = Some((text, key));
                        Some(key)
                    }
                }
            })
            .collect();
        match keys.values().first() {
            Some(&first) if keys.null_count() == 0 && keys.values().iter().all(|&key| key == first) => {
                Lanes::One(first)
            }
            _ => Lanes::Each(keys),
        }
    }

    /// Values of unmapped columns.
    fn defaults(&mut self, plan: &Plan, rows: &mut Rows) {
        let table = self.section.table;
        for column in table.spec().columns {
            if !plan.has(column.name)
                && let Some(word) = default_word(table, column.name)
            {
                rows.chunk.given.set_named(column.name, Values::Word(word.to_owned()));
            }
        }
        if table == Table::Messages && !plan.has("count") {
            rows.chunk.given.set(tables::Messages::count, 1);
        }
        if table == Table::Locations && !plan.has("kind") {
            rows.chunk.given.set(tables::Locations::kind, self.section.location_kind.as_str());
        }
    }

    fn times(
        &mut self,
        planned: &Planned,
        column: &ArrayRef,
        times: Times,
        batch: &Batch,
        rows: &mut Rows,
    ) -> Result<(), ImportError> {
        let name = planned.column.name;
        for (row, why) in &times.bad {
            self.bad_value(planned, column, *row, &format!("{name} {why}"), batch, rows);
        }
        if let Some(&(row, _)) = times.rests.first() {
            let count = times.rests.len() as u64;
            let tick = self.run.tick;
            let text = array_value_to_string(column, row).unwrap_or_default();
            let place = self.place(batch, row);
            self.run.builder.stats.note(findings::ROUNDED_TIME, count, || match planned.unit {
                Some(unit) => format!("{place}: {name} `{text}` {} is no whole number of {tick}", unit.symbol()),
                None => format!("{place}: {name} `{text}` is no whole number of {tick}"),
            });
        }
        if name == "duration" {
            if times.clock == Clock::Instant {
                return Err(self.wrong_type(planned, column.data_type()));
            }
            rows.durations = Some(times.ticks);
            rows.rests.push((name, times.rests));
        } else {
            rows.rests.push((name, times.rests));
            rows.chunk.times.push((name, times.ticks, times.clock));
        }
        Ok(())
    }

    fn numbers(
        &mut self,
        planned: &Planned,
        column: &ArrayRef,
        batch: &Batch,
        rows: &mut Rows,
    ) -> Result<ArrayRef, ImportError> {
        let is_integer = planned.column.column_type == ColumnType::Integer;
        let (wanted, what) = match is_integer {
            true => (DataType::Int64, "is no whole number"),
            false => (DataType::Float64, "is no number"),
        };
        let array: ArrayRef = match column.data_type() {
            DataType::Utf8 => {
                let texts = column.as_string::<i32>();
                match is_integer {
                    true => Arc::new(texts.iter().map(|text| integer(text?)).collect::<Int64Array>()),
                    false => Arc::new(texts.iter().map(|text| text?.trim().parse().ok()).collect::<Float64Array>()),
                }
            }
            number if number.is_numeric() && is_integer && !number.is_integer() => {
                let floats = cast(column, &DataType::Float64).map_err(|error| self.arrow(error))?;
                let whole = |value: f64| (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64);
                Arc::new(floats.as_primitive::<Float64Type>().iter().map(|value| whole(value?)).collect::<Int64Array>())
            }
            number if number.is_numeric() => cast(column, &wanted).map_err(|error| self.arrow(error))?,
            DataType::Dictionary(..) | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts: ArrayRef = cast(column, &DataType::Utf8).map_err(|error| self.arrow(error))?;
                return self.numbers(planned, &texts, batch, rows);
            }
            other => return Err(self.wrong_type(planned, other)),
        };
        let array = if is_integer { array } else { self.finite(planned, column, array, batch) };
        if array.null_count() > column.null_count() {
            for row in (0..column.len()).filter(|&row| column.is_valid(row) && array.is_null(row)) {
                self.bad_value(planned, column, row, &format!("{} {what}", planned.column.name), batch, rows);
            }
        }
        Ok(array)
    }

    /// Floats with NULL for those that are not finite. Whole numbers that no float holds are counted.
    fn finite(&mut self, planned: &Planned, column: &ArrayRef, array: ArrayRef, batch: &Batch) -> ArrayRef {
        let floats = array.as_primitive::<Float64Type>();
        if floats.values().iter().all(|value| value.abs() < INEXACT) {
            return array;
        }
        for (row, value) in floats.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite() && value.abs() >= INEXACT) else { continue };
            let text = array_value_to_string(column, row).unwrap_or_default();
            if text.trim().parse::<i128>().is_ok_and(|whole| whole != value as i128) {
                let place = self.place(batch, row);
                let name = planned.column.name;
                let example = || format!("{place}: {name} `{}` is {value:.0} as a float", clipped(&text));
                self.run.builder.stats.note(findings::ROUNDED_VALUE, 1, example);
            }
        }
        Arc::new(floats.iter().map(|value| value.filter(|value| value.is_finite())).collect::<Float64Array>())
    }

    /// A cell that is not what its column asks for: NULL, counted, and kept in `args`.
    fn bad_value(
        &mut self,
        planned: &Planned,
        column: &ArrayRef,
        row: usize,
        what: &str,
        batch: &Batch,
        rows: &mut Rows,
    ) {
        let text = array_value_to_string(column, row).unwrap_or_default();
        let place = self.place(batch, row);
        self.run.builder.stats.note(findings::BAD_VALUE, 1, || format!("{place}: {what}: `{}`", clipped(&text)));
        rows.bad.push(BadCell { row, column: planned.name.clone(), text });
    }

    /// Completes start, finish and duration from each other.
    fn spans(&mut self, batch: &Batch, rows: &mut Rows) {
        let Some(durations) = rows.durations.take() else { return };
        let take = |rows: &mut Rows, name: &str| {
            let at = rows.chunk.times.iter().position(|(column, ..)| *column == name)?;
            Some(rows.chunk.times.swap_remove(at))
        };
        let (start, finish) = (take(rows, "start"), take(rows, "finish"));
        if start.is_none() && finish.is_none() {
            rows.chunk.given.set(tables::Tasks::duration, durations);
            return;
        }
        let clock = start.as_ref().or(finish.as_ref()).map_or(Clock::Number, |(.., clock)| *clock);
        let count = durations.len();
        let value = |times: &Option<(&str, Int64Array, Clock)>, row: usize| {
            times.as_ref().and_then(|(_, times, _)| times.is_valid(row).then(|| times.value(row)))
        };
        let (mut starts, mut finishes, mut spans) =
            (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut lonely, mut differing) = (false, 0u64);
        let mut first_difference = None;
        let rests = std::mem::take(&mut rows.rests);
        let rest_of = |wanted: &'static str| {
            let rests = rests.iter().find(|(name, _)| *name == wanted).map_or(&[][..], |(_, rests)| rests);
            let mut rests = rests.iter().peekable();
            move |row: usize| rests.next_if(|(at, _)| *at == row).map_or(0, |(_, rest)| i64::from(*rest))
        };
        let (mut of_start, mut of_finish, mut of_duration) = (rest_of("start"), rest_of("finish"), rest_of("duration"));
        for row in 0..count {
            let duration = durations.is_valid(row).then(|| durations.value(row));
            let (start_rest, finish_rest, duration_rest) = (of_start(row), of_finish(row), of_duration(row));
            let (begin, end) = match (value(&start, row), value(&finish, row), duration) {
                (Some(begin), None, Some(duration)) => {
                    let end = begin.checked_add(duration);
                    (Some(begin), end.and_then(|end| rounded_once(end, start_rest + duration_rest)))
                }
                (None, Some(end), Some(duration)) => {
                    let begin = end.checked_sub(duration);
                    (begin.and_then(|begin| rounded_once(begin, finish_rest - duration_rest)), Some(end))
                }
                (begin, end, _) => (begin, end),
            };
            let spanned =
                begin.zip(end).filter(|(begin, end)| begin <= end).and_then(|(begin, end)| end.checked_sub(begin));
            if let (Some(spanned), Some(duration)) = (spanned, duration)
                && spanned != duration
            {
                differing += 1;
                first_difference.get_or_insert((row, spanned, duration));
            }
            lonely |= begin.is_none() && end.is_none() && duration.is_some();
            starts.push(begin);
            finishes.push(end);
            spans.push(spanned.or(duration.filter(|_| begin.is_none() && end.is_none())));
        }
        if let Some((row, spanned, duration)) = first_difference {
            let place = self.place(batch, row);
            self.run.builder.stats.note(findings::DURATION_DIFFERS, differing, || {
                format!("{place}: duration {duration}, but finish - start is {spanned}, which is taken")
            });
        }
        rows.chunk.times.push(("start", starts.into(), clock));
        rows.chunk.times.push(("finish", finishes.into(), clock));
        if lonely {
            // Durations are computed for all rows or for none.
            rows.chunk.given.set(tables::Tasks::duration, spans);
        }
    }

    /// Enters the tasks into the indexes that links and parents refer to.
    fn enter_tasks(&mut self, batch: &Batch, rows: &Rows) {
        let first = self.run.tasks;
        for (row, id) in rows.ids.iter().flat_map(|ids| ids.iter().enumerate()) {
            if let Some(id) = id
                && !self.run.ids.enter(id, first + row as i64, false)
            {
                let place = self.place(batch, row);
                self.run.builder.stats.note(findings::DUPLICATE_ID, 1, || {
                    format!("{place}: `{}`; links and parents mean the first task of that id", clipped(id))
                });
            }
        }
        for (row, name) in rows.names.iter().flat_map(|names| names.iter().enumerate()) {
            if let Some(name) = name {
                self.run.names.enter(name, first + row as i64, true);
            }
        }
    }

    /// Resolves references to tasks, or keeps them until all tasks are there.
    fn refer(&mut self, batch: &Batch, rows: &mut Rows) {
        let (table, key) = (self.section.table, self.section.key);
        for (name, texts) in std::mem::take(&mut rows.references) {
            let index = self.run.index(key);
            let keys: Vec<i32> = texts.iter().map(|text| text.map_or(-1, |text| index.key(text))).collect();
            if table == Table::Tasks {
                rows.chunk.parents.push((name, key, keys));
                continue;
            }
            let mut positions = Vec::with_capacity(keys.len());
            for (row, reference) in keys.into_iter().enumerate() {
                let found = if reference < 0 { None } else { Some(self.run.index(key).find(reference)) };
                positions.push(match found {
                    Some(Reference::Task(position)) => Some(position),
                    _ => None,
                });
                let resolved = matches!(found, Some(Reference::Task(_)));
                // A link needs both ends; one that was left out already is not counted again.
                let leaves = table == Table::Links && !resolved;
                if resolved || (leaves && std::mem::replace(&mut rows.left_out[row], leaves)) {
                    continue;
                }
                let place = self.place(batch, row);
                let example = || match found {
                    None => format!("{place}: no {name}"),
                    Some(Reference::Ambiguous) => {
                        format!(
                            "{place}: {name} `{}` is the {} of several tasks",
                            clipped(texts.value(row)),
                            key_word(key)
                        )
                    }
                    Some(_) => {
                        format!("{place}: {name} `{}` is the {} of no task", clipped(texts.value(row)), key_word(key))
                    }
                };
                match found {
                    None if leaves => self.run.builder.stats.left_out(findings::MISSING_END, 1, example),
                    None => {}
                    Some(lost) => self.run.lost_reference(lost, leaves, example),
                }
            }
            rows.chunk.given.set_named(name, Values::Each(Arc::new(Int64Array::from(positions))));
        }
    }

    /// Makes known the locations that the rows name, or list.
    fn locate(&mut self, batch: &Batch, rows: &mut Rows) {
        let table = self.section.table;
        for (name, texts) in std::mem::take(&mut rows.locations) {
            let mut last = None;
            for row in 0..texts.len() {
                let location = texts.is_valid(row).then(|| texts.value(row));
                if table == Table::Locations && name == "location" {
                    let listed = location.is_some_and(|location| self.run.list_location(location));
                    if !listed {
                        rows.left_out[row] = true;
                        let place = self.place(batch, row);
                        let location = location.unwrap_or("").to_owned();
                        self.run.builder.stats.left_out(findings::DUPLICATE_LOCATION, 1, || {
                            format!("{place}: `{}` has a row already, or no name", clipped(&location))
                        });
                    }
                    continue;
                }
                let Some(location) = location.filter(|location| last != Some(*location)) else { continue };
                let attribute = |texts: &Option<StringArray>| {
                    texts.as_ref().filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row).to_owned())
                };
                let (process, clock) = (attribute(&rows.process), attribute(&rows.clock));
                self.run.meet_location(location, process.as_deref(), clock.as_deref(), &self.section.location_kind);
                last = Some(location);
            }
        }
    }

    /// A column of the file's batches as texts.
    pub(super) fn texts_of(&self, batch: &Batch, index: usize) -> Result<StringArray, ImportError> {
        let column: ArrayRef = match batch.cells {
            CellKind::Json => Arc::new(decoded(batch.columns[index].as_string())),
            CellKind::Plain | CellKind::Typed => Arc::clone(&batch.columns[index]),
        };
        texts(&column).map_err(|error| self.arrow(error))
    }

    /// A column of ours as texts; `None` when nothing fills it.
    pub(super) fn texts_of_ours(&self, batch: &Batch, name: &str) -> Result<Option<StringArray>, ImportError> {
        let planned = self.plan.iter().flat_map(|plan| &plan.columns).find(|planned| planned.column.name == name);
        let column = planned.map(|planned| cells(planned, batch)).transpose().map_err(|error| self.arrow(error))?;
        column.map(|column| texts(&column)).transpose().map_err(|error| self.arrow(error))
    }

    /// A column of the file that only says how to read the others.
    pub(super) fn leave_out_of_args(&mut self, column: usize) {
        if let Some(plan) = &mut self.plan {
            plan.unmapped.retain(|(index, _)| *index != column);
        }
    }

    /// Asks the memory pool for rows that wait.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.run.reserve(bytes)
    }

    /// Gives back what was asked with [`SectionSink::reserve`].
    pub(super) fn release(&mut self, bytes: usize) {
        self.run.release(bytes);
    }

    /// Where rows are kept.
    pub(super) fn room(&self) -> &Room {
        self.run.room()
    }

    /// `log.csv:17` or `log.parquet row 17`.
    pub(super) fn place(&self, batch: &Batch, row: usize) -> String {
        self.shown(batch.places.at(row))
    }

    /// A place of this file, as [`SectionSink::place`] shows it.
    pub(super) fn shown(&self, place: Place) -> String {
        let file = self.section.file.display();
        match place {
            Place::Line(line) => format!("{file}:{line}"),
            Place::Row(row) => format!("{file} row {row}"),
        }
    }

    fn wrong_type(&self, planned: &Planned, data_type: &DataType) -> ImportError {
        ImportError::Unusable {
            path: self.section.file.clone(),
            what: format!("column `{}` holds {data_type}, which cannot be a {}", planned.name, planned.column.name),
            hint: None,
        }
    }

    pub(super) fn arrow(&self, error: ArrowError) -> ImportError {
        ImportError::internal(&self.section.file, error)
    }

    pub(super) fn internal(&self, what: &str) -> ImportError {
        ImportError::Internal { path: self.section.file.clone(), what: what.to_owned() }
    }
}

/// What figures know of tasks.
const ROLES: [&str; 6] = ["work", "communication", "wait", "copy", "runtime", "profiler"];

/// The word of rows that have none.
fn default_word(table: Table, column: &str) -> Option<&'static str> {
    match (table, column) {
        (Table::Tasks | Table::Events, "name") => Some(""),
        (Table::Links, "kind") => Some("dependency"),
        (Table::Messages, "kind") => Some("logical"),
        (Table::Counters, "kind") => Some("level"),
        (Table::Locations, "role") => Some("compute"),
        _ => None,
    }
}

/// Whether a column names locations.
fn is_location(table: Table, column: &str) -> bool {
    match table {
        Table::Messages => matches!(column, "source" | "target"),
        Table::Locations => matches!(column, "location" | "parent"),
        _ => column == "location",
    }
}

/// The cells of a planned column: decoded from JSON, put together from pieces, or as they are.
fn cells(planned: &Planned, batch: &Batch) -> Result<ArrayRef, ArrowError> {
    let column = |index: usize| -> ArrayRef {
        match batch.cells {
            CellKind::Json => Arc::new(decoded(batch.columns[index].as_string())),
            CellKind::Plain | CellKind::Typed => Arc::clone(&batch.columns[index]),
        }
    };
    let pieces = match &planned.from {
        From::Column(index) => {
            // Our own `args` of a JSON record is an object and stays one.
            let raw = planned.column.name == "args" && batch.cells == CellKind::Json;
            return Ok(if raw { Arc::clone(&batch.columns[*index]) } else { column(*index) });
        }
        From::Text(pieces) => pieces,
    };
    let parts: Vec<Result<&str, StringArray>> = pieces
        .iter()
        .map(|piece| match piece {
            PlannedPiece::Literal(text) => Ok(Ok(text.as_str())),
            PlannedPiece::Column(index) => texts(&column(*index)).map(Err),
        })
        .collect::<Result<_, ArrowError>>()?;
    let columns: Vec<&StringArray> = parts.iter().filter_map(|part| part.as_ref().err()).collect();
    let mut joined = StringBuilder::with_capacity(batch.rows, batch.rows * 8);
    let mut text = String::new();
    for row in 0..batch.rows {
        // Nothing but literals around empty cells says nothing.
        if !columns.is_empty() && columns.iter().all(|column| column.is_null(row)) {
            joined.append_null();
            continue;
        }
        text.clear();
        for part in &parts {
            match part {
                Ok(literal) => text.push_str(literal),
                Err(column) if column.is_valid(row) => text.push_str(column.value(row)),
                Err(_) => {}
            }
        }
        joined.append_value(&text);
    }
    Ok(Arc::new(joined.finish()))
}

/// JSON texts without their quotes; other JSON unchanged.
fn decoded(cells: &StringArray) -> StringArray {
    let decode =
        |cell: &str| -> Option<String> { if cell.starts_with('"') { serde_json::from_str(cell).ok() } else { None } };
    let mut texts = StringBuilder::with_capacity(cells.len(), cells.values().len());
    for cell in cells {
        match cell.map(|cell| decode(cell).map_or(Cow::Borrowed(cell), Cow::Owned)) {
            Some(text) => texts.append_value(text),
            None => texts.append_null(),
        }
    }
    texts.finish()
}

/// Which rows of a column of floats are NaN; `None` when there are none.
fn nan_rows(column: &ArrayRef) -> Option<BooleanArray> {
    fn rows<T: ArrowPrimitiveType>(column: &ArrayRef, is_nan: impl Fn(T::Native) -> bool) -> Option<BooleanArray> {
        let values = column.as_primitive::<T>();
        if !values.values().iter().any(|value| is_nan(*value)) {
            return None;
        }
        // NULL may have any value underneath.
        let nan: BooleanArray = values.iter().map(|value| Some(value.is_some_and(&is_nan))).collect();
        (nan.true_count() > 0).then_some(nan)
    }
    match column.data_type() {
        DataType::Float64 => rows::<Float64Type>(column, f64::is_nan),
        DataType::Float32 => rows::<Float32Type>(column, f32::is_nan),
        DataType::Float16 => rows::<Float16Type>(column, |value| value.is_nan()),
        _ => None,
    }
}

/// Any column as text.
fn texts(column: &ArrayRef) -> Result<StringArray, ArrowError> {
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Ok(texts.clone());
    }
    if let Ok(texts) = cast(column, &DataType::Utf8)
        && texts.null_count() == column.logical_null_count()
    {
        return Ok(texts.as_string::<i32>().clone());
    }
    let text = |row| if column.is_null(row) { Ok(None) } else { array_value_to_string(column, row).map(Some) };
    (0..column.len()).map(text).collect()
}

/// A whole number: `12`, and `12.0` of programs that know floats only.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let (whole, fraction) = text.split_once('.')?;
        fraction.bytes().all(|byte| byte == b'0').then(|| whole.parse().ok())?
    })
}

/// The chunk without the rows that are left out.
fn without(mut chunk: Chunk, left_out: &[bool]) -> Result<Chunk, ArrowError> {
    if !left_out.contains(&true) {
        return Ok(chunk);
    }
    let keep: BooleanArray = left_out.iter().map(|&out| Some(!out)).collect();
    chunk.rows = keep.true_count();
    chunk.given.try_map(chunk.rows, |array| filter(array, &keep))?;
    for (_, times, _) in &mut chunk.times {
        *times = filter(times, &keep)?.as_primitive::<Int64Type>().clone();
    }
    Ok(chunk)
}

/// At most 60 characters, for an example.
fn clipped(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_from_floats_too() {
        let check = |text: &str, expected| assert_eq!(integer(text), expected, "{text}");
        check("12", Some(12));
        check(" -3 ", Some(-3));
        check("12.0", Some(12));
        check("12.5", None);
        check("", None);
        check("1e3", None);
    }

    #[test]
    fn json_texts_lose_their_quotes() {
        let cells = StringArray::from(vec![Some("\"a\\n\\\"b\""), Some("1.50"), None, Some("{\"a\":1}"), Some("\"\"")]);
        let expected = StringArray::from(vec![Some("a\n\"b"), Some("1.50"), None, Some("{\"a\":1}"), Some("")]);
        assert_eq!(decoded(&cells), expected);
    }
}
