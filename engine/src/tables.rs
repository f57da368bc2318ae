//! The tables of a session: names, columns, types and what each column means.
//!
//! This is the one place that knows the schemas. Importers fill rows of the structs that are made here, a field per column
//! ([`Tasks`], [`Links`] …); the session registers a table for each entry whatever the opened formats fill, and `tq tables`,
//! `docs.columns` and the docs are printed from here.
//!
//! Words that repeat (`run`, `location`, `name`, `kind`, `role` …) are dictionaries with Int32 keys in memory: 2.5 to 3
//! times smaller than text and 3 to 8 times faster to filter.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tq_udfs::ticks::time_metadata;

use crate::cells::{Cells, Values, kind};

/// A table that importers fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// One row per recording.
    Runs,
    /// What executes: nodes, processes, threads, streams, components.
    Locations,
    /// Executed units of work.
    Tasks,
    /// Dependencies between tasks.
    Links,
    /// Messages between locations.
    Messages,
    /// Sampled or accumulated values.
    Counters,
    /// Instants.
    Events,
    /// What was skipped, repaired, rounded or guessed while reading.
    ImportStats,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A word that repeats: text as a dictionary with Int32 keys.
    Word,
    /// Free text.
    Text,
    /// A whole number.
    Integer,
    /// The identity of a task or message, unique in the session.
    Identity,
    /// Ticks since the origin of the run, or a number of ticks.
    Time,
    /// A double.
    Double,
    /// A wall-clock instant with nanoseconds, UTC.
    Timestamp,
}

impl ColumnType {
    /// The Arrow type in memory.
    pub fn data_type(self) -> DataType {
        match self {
            ColumnType::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            ColumnType::Text => DataType::Utf8,
            ColumnType::Integer | ColumnType::Identity | ColumnType::Time => DataType::Int64,
            ColumnType::Double => DataType::Float64,
            ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        }
    }

    /// The name that users read: the SQL type.
    pub fn sql_name(self) -> &'static str {
        match self {
            ColumnType::Word | ColumnType::Text => "VARCHAR",
            ColumnType::Integer | ColumnType::Identity | ColumnType::Time => "BIGINT",
            ColumnType::Double => "DOUBLE",
            ColumnType::Timestamp => "TIMESTAMP",
        }
    }
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its name in SQL.
    pub name: &'static str,
    /// What it holds.
    pub column_type: ColumnType,
    /// One sentence for users: meaning, unit, when it is NULL.
    pub description: &'static str,
}

/// A table with its documentation.
#[derive(Debug)]
pub struct TableSpec {
    /// Which table.
    pub table: Table,
    /// Its name in SQL.
    pub name: &'static str,
    /// One sentence for users.
    pub description: &'static str,
    /// The columns, `run` first.
    pub columns: &'static [Column],
}

/// A column of a table that importers fill, with what it holds.
#[derive(Debug)]
pub struct Place<K> {
    /// The table.
    pub table: Table,
    /// The name of the column.
    pub name: &'static str,
    kind: PhantomData<K>,
}

impl<K> Clone for Place<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Place<K> {}

impl<K> Place<K> {
    const fn of(table: Table, name: &'static str) -> Place<K> {
        Place { table, name, kind: PhantomData }
    }
}

/// Rows for a table: one of the structs that `filled!` makes.
pub trait Columns {
    /// The table.
    const TABLE: Table;

    /// The values of all columns that are given, in their order: those behind `run` and the row's own identity.
    fn into_values(self) -> Vec<Values>;
}

/// A view that every session has.
#[derive(Debug)]
pub struct ViewSpec {
    /// Its name in SQL.
    pub name: &'static str,
    /// One sentence for users.
    pub description: &'static str,
    /// The SELECT behind it.
    pub sql: &'static str,
    /// Name and meaning of each column.
    pub columns: &'static [(&'static str, &'static str)],
}

impl Table {
    /// All tables, in the order in which they are listed.
    pub const ALL: [Table; 8] = [
        Table::Runs,
        Table::Locations,
        Table::Tasks,
        Table::Links,
        Table::Messages,
        Table::Counters,
        Table::Events,
        Table::ImportStats,
    ];

    /// Its columns and documentation.
    pub fn spec(self) -> &'static TableSpec {
        TABLES[self as usize]
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The table of that name.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Whether its rows have an identity of their own: the column after `run`.
    pub fn has_identity(self) -> bool {
        matches!(self, Table::Tasks | Table::Messages)
    }

    /// Its Arrow schema; times carry the metadata of [`tq_udfs::ticks`].
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<Vec<SchemaRef>> =
            LazyLock::new(|| TABLES.iter().map(|spec| Arc::new(Schema::new(spec.fields()))).collect());
        Arc::clone(&SCHEMAS[self as usize])
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TableSpec {
    fn fields(&self) -> Vec<Field> {
        let field = |(index, column): (usize, &Column)| {
            // `run` and a row's own identity are always there; everything else may be unknown to a format.
            let known = index == 0 || (index == 1 && self.table.has_identity());
            let field = Field::new(column.name, column.column_type.data_type(), !known);
            match column.column_type {
                ColumnType::Time => field.with_metadata(time_metadata()),
                _ => field,
            }
        };
        self.columns.iter().enumerate().map(field).collect()
    }
}

const fn column(name: &'static str, column_type: ColumnType, description: &'static str) -> Column {
    Column { name, column_type, description }
}

use ColumnType::{Double, Identity, Integer, Text, Time, Timestamp, Word};

const RUN: Column = column("run", Word, "The recording that the row belongs to.");

/// What the column `args` is in each table.
macro_rules! args {
    () => {
        "Everything else the trace says of it, as a JSON object; query it with args->>'key'."
    };
}

/// The tables that importers fill: `Table STATIC "name" "description" [columns that no importer gives] { column: kind "description"; … }`.
/// Makes the documentation of each, and a struct of its name: rows for it, with a field per column, absent unless given.
macro_rules! filled {
    ($($table:ident $spec:ident $name:literal $description:literal [$($own:expr),*] {
        $($column:ident: $kind:ident $text:expr;)*
    })*) => {$(
        static $spec: TableSpec = TableSpec {
            table: Table::$table,
            name: $name,
            description: $description,
            columns: &[$($own,)* $(column(stringify!($column), $kind, $text)),*],
        };

        #[doc = concat!("Rows for `", $name, "`. ", $description)]
        #[derive(Debug, Default)]
        pub struct $table {
            $(#[doc = $text] pub $column: Cells<kind::$kind>),*
        }

        #[expect(non_upper_case_globals, reason = "they are called as the columns are")]
        impl $table {
            $(#[doc = $text] pub const $column: Place<kind::$kind> = Place::of(Table::$table, stringify!($column));)*
        }

        impl Columns for $table {
            const TABLE: Table = Table::$table;

            fn into_values(self) -> Vec<Values> {
                vec![$(self.$column.into_values()),*]
            }
        }
    )*};
}

filled! {
    Locations LOCATIONS "locations"
        "What executes: nodes, processes, threads, workers, streams, components; also those that never ran."
        [RUN]
    {
        location: Word "The format's own full name, else ids joined by `/` (`E0/W1`).";
        parent: Word "The location it belongs to; NULL at the top.";
        kind: Word "node, process, thread, worker, stream, pe, component, executor …";
        name: Text "A name for people.";
        process: Word "The process it belongs to; NULL where the trace does not tell.";
        sort_index: Integer "The order in which the trace wants locations shown.";
        role: Word "compute, communication (it carries messages or copies, or waits, and runs nothing), runtime, or profiler: it holds what the recorder wrote of itself.";
        clock: Word "Locations with different clocks are not aligned in time.";
        args: Text args!();
    }
    Tasks TASKS "tasks"
        "Executed units of work, each a half-open span [start, finish) on a location."
        [RUN, column("task", Identity, "Unique in the session: run_number · 2^40 + position in the trace.")]
    {
        id: Text "The trace's own id; several executions of one task share it.";
        parent: Identity "The task it belongs to: as the trace declares it, else `stack_parent`.";
        stack_parent: Identity "The innermost task that encloses it on its lane.";
        name: Word "What it is called; '' when unnamed.";
        kind: Word "The format's own kind of task: static, kernel, cpu_op, req_in …";
        role: Word "work, runtime, communication, copy, wait, or profiler: what the recorder wrote of itself, which is no work.";
        location: Word "Where it ran.";
        start: Time "First tick; NULL for a task known without times.";
        finish: Time "First tick after it; NULL for a task that never ended.";
        duration: Time "finish - start.";
        depth: Integer "Nesting depth on its lane, 0 outermost; NULL where tasks of a location do not nest.";
        args: Text args!();
    }
    Links LINKS "links"
        "Directed links between tasks."
        [RUN]
    {
        source: Identity "The task that comes first.";
        target: Identity "The task that follows.";
        kind: Word "dependency, weak, flow, launch, sync, async, spawn, communication …";
        name: Word "The link's own name, where it has one.";
        args: Text args!();
    }
    Messages MESSAGES "messages"
        "Messages between locations."
        [RUN, column("message", Identity, "Unique in the session.")]
    {
        source: Word "The sending location.";
        target: Word "The receiving location.";
        source_task: Identity "The recorded interval of sending.";
        target_task: Identity "The recorded interval of receiving.";
        send_time: Time "When it was sent.";
        receive_time: Time "When it was received.";
        bytes: Integer "Its size.";
        count: Integer "How many messages the row stands for.";
        kind: Word "logical, local_send, nonblock_send, handled, mpi, collective …";
        tag: Word "Phase, mailbox or MPI tag.";
        args: Text args!();
    }
    Counters COUNTERS "counters"
        "Values over time, or totals."
        [RUN]
    {
        location: Word "Where it was measured.";
        task: Identity "The task it belongs to.";
        message: Identity "The message it belongs to.";
        name: Word "What is counted.";
        time: Time "When; NULL for totals.";
        value: Double "The value, in `unit`.";
        kind: Word "level (a state that holds), delta (an increment) or total.";
        unit: Word "The unit of `value`.";
    }
    Events EVENTS "events"
        "Instants: milestones, marks, tags."
        [RUN]
    {
        location: Word "Where it happened.";
        task: Identity "The task it belongs to.";
        name: Word "What happened.";
        kind: Word "The format's own kind of event.";
        time: Time "When; NULL for tags without a time.";
        args: Text args!();
    }
}

static RUNS: TableSpec = TableSpec {
    table: Table::Runs,
    name: "runs",
    description: "One row per recording that the session opened.",
    columns: &[
        column("run", Word, "Its name: the given name, else the file's stem, made unique."),
        column("run_number", Integer, "Counts from 0 in the order in which the traces were given."),
        column("format", Word, "The format that was recognised; `tq formats` lists them."),
        column("source", Text, "The file or directory it was read from."),
        column("program", Text, "The traced program, where the trace knows it."),
        column("started_at", Timestamp, "Wall-clock time of the origin; NULL where the trace has no date."),
        column("time_unit", Word, "The unit of the trace's own times: ns, ps, us, cycles …"),
        column("origin", Integer, "The trace's own clock at tick 0, in nanoseconds; NULL where the trace has none."),
        column("makespan", Time, "Last finish minus first start of `program_tasks`; NULL without timed ones."),
        column("tasks", Integer, "Number of its tasks."),
        column("locations", Integer, "Number of its locations."),
        column("processes", Integer, "Number of distinct processes; NULL where the trace does not tell."),
        column("cores", Integer, "Cores used, where the trace or `--run-arg cores=` tells."),
        column("argument", Text, "The problem size as it was written."),
        column("problem_size", Double, "The problem size as a number."),
        column("size_order", Integer, "Rank of the problem size within a scalability study."),
        column("repetition", Integer, "Number of the repetition within a study, from 0."),
        column("args", Text, "Machine, commit, parameters, `--run-arg k=v`: a JSON object."),
        column("study", Word, "The scalability study that it is an execution of; NULL for a run that is none."),
    ],
};

static IMPORT_STATS: TableSpec = TableSpec {
    table: Table::ImportStats,
    name: "import_stats",
    description: "What was skipped, repaired, rounded or guessed while reading: nothing is dropped silently.",
    columns: &[
        RUN,
        column("source", Text, "The file."),
        column("what", Word, "What happened, in one word."),
        column("severity", Word, "info, repaired or lost."),
        column("stage", Word, "recording (the trace came so) or import (tq did it)."),
        column("count", Integer, "How often."),
        column("example", Text, "The first case, with its place."),
    ],
};

/// Every table, in the order of [`Table::ALL`].
pub static TABLES: [&TableSpec; 8] = [&RUNS, &LOCATIONS, &TASKS, &LINKS, &MESSAGES, &COUNTERS, &EVENTS, &IMPORT_STATS];

/// The schema of what tables and functions mean.
pub(crate) const DOCS: &str = "docs";

/// The role of what a recorder writes about itself: not work of the recorded program.
pub const PROFILER: &str = "profiler";

/// The view that is read instead of `tasks` wherever the query does not name `tasks`: for omitted inputs, saved
/// queries, pictures.
pub const PROGRAM_TASKS: &str = "program_tasks";

/// The view of the tasks that locations executed.
pub(crate) const WORKING_TASKS: &str = "working_tasks";

/// The view of the spans in which locations worked.
pub(crate) const WORKING_SPANS: &str = "working_spans";

/// [`WORKING_SPANS`] where no task waits: the tasks as they are.
pub(crate) const SPANS_WITHOUT_WAITS: &str = "SELECT run, task, name, location, start, finish, duration, depth, \
     depth = 0 OR depth IS NULL AS is_outermost FROM working_tasks";

/// The view of the work of each name of task.
pub(crate) const WORK_BY_NAME: &str = "work_by_name";

/// [`WORK_BY_NAME`] where no task waits: one pass over the tasks.
pub(crate) const WORK_WITHOUT_WAITS: &str = "SELECT run, name, count(*) AS tasks, sum(self_time) AS work_time, \
     sum(duration) AS total_time FROM self_time((SELECT * FROM working_tasks)) GROUP BY run, name";

/// The tasks, cut at the borders of the slice: what [`PROGRAM_TASKS`] reads in one.
pub(crate) fn tasks_in_slice() -> String {
    // Sums and differences of times are times, and CASE forgets that it is one.
    let column = |(name, _): &(&'static str, &'static str)| match *name {
        "start" => "start + CASE WHEN start < slice_from() THEN slice_from() - start ELSE 0 END AS start",
        "finish" => "finish - CASE WHEN finish > slice_to() THEN finish - slice_to() ELSE 0 END AS finish",
        name => name,
    };
    let of_cut = |(name, _): &(&'static str, &'static str)| {
        if *name == "duration" { "finish - start AS duration" } else { name }
    };
    let columns = |column: &dyn Fn(&(&'static str, &'static str)) -> &'static str| {
        TASK_COLUMNS.iter().map(column).collect::<Vec<_>>().join(", ")
    };
    format!("SELECT {} FROM (SELECT {} FROM tasks)", columns(&of_cut), columns(&column))
}

/// How a view of what the program did ends. Where no recorder wrote anything of itself, sessions leave it out.
pub(crate) const OF_PROGRAM: &str = " WHERE role IS DISTINCT FROM 'profiler'";

/// The end of a view of what locations executed. Sessions leave it out where nothing else was recorded, and where nothing would
/// remain.
pub(crate) const OF_WORKING: &str = " WHERE NOT EXISTS (SELECT 1 FROM locations AS l \
     WHERE (l.kind IN ('async', 'state') OR l.role = 'communication') AND l.run = o.run AND l.location = o.location)";

/// Of tasks that run nothing themselves: waits, and the steps of a profiler, which hold all that runs meanwhile. Sessions leave it
/// out where there are none, and where nothing would remain.
pub(crate) const RUNS_SOMETHING: &str = "(o.role = 'wait' OR o.kind = 'gpu_user_annotation' \
     OR (o.kind = 'user_annotation' AND o.name LIKE 'ProfilerStep#%')) IS NOT TRUE AND ";

/// The same for the words of a row.
pub fn runs_nothing(role: Option<&str>, kind: Option<&str>, name: Option<&str>) -> bool {
    let is_step = || name.is_some_and(|name| name.starts_with("ProfilerStep#"));
    role == Some("wait") || kind == Some("gpu_user_annotation") || (kind == Some("user_annotation") && is_step())
}

/// Whether a location of this kind and role executes nothing: its spans describe what runs elsewhere, or transfers in flight.
pub(crate) fn is_beside(kind: Option<&str>, role: Option<&str>) -> bool {
    matches!(kind, Some("async" | "state")) || role == Some("communication")
}

/// The columns of views of `tasks`.
const TASK_COLUMNS: [(&str, &str); 14] = [
    ("run", "The recording."),
    ("task", "Unique in the session."),
    ("id", "The trace's own id."),
    ("parent", "The task it belongs to."),
    ("stack_parent", "The innermost task that encloses it on its lane."),
    ("name", "What it is called."),
    ("kind", "The format's own kind of task."),
    ("role", "work, runtime, communication, copy or wait."),
    ("location", "Where it ran."),
    ("start", "First tick."),
    ("finish", "First tick after it."),
    ("duration", "finish - start."),
    ("depth", "Nesting depth on its lane."),
    ("args", "Everything else the trace says of it."),
];

/// The columns of views of `locations`.
const LOCATION_COLUMNS: [(&str, &str); 10] = [
    ("run", "The recording."),
    ("location", "Its full name."),
    ("parent", "The location it belongs to."),
    ("kind", "node, process, thread, worker, stream, pe, component, executor …"),
    ("name", "A name for people."),
    ("process", "The process it belongs to."),
    ("sort_index", "The order in which the trace wants locations shown."),
    ("role", "compute, communication or runtime."),
    ("clock", "Locations with different clocks are not aligned in time."),
    ("args", "Everything else the trace says of it."),
];

/// Views over the tables that every session has.
pub static VIEWS: [ViewSpec; 18] = [
    ViewSpec {
        name: PROGRAM_TASKS,
        description: "The tasks of the program: `tasks` without the rows that the recorder wrote of itself (role profiler); \
                      in a slice (`--from`, `--to`), cut at its borders. \
                      Functions read it when their `tasks` is left out, and so do the saved queries.",
        sql: "SELECT * FROM tasks WHERE role IS DISTINCT FROM 'profiler'",
        columns: &TASK_COLUMNS,
    },
    ViewSpec {
        name: "program_locations",
        description: "The locations of the program: `locations` without those that hold nothing but what the recorder wrote of \
                      itself (role profiler). The saved queries read it.",
        sql: "SELECT * FROM locations WHERE role IS DISTINCT FROM 'profiler'",
        columns: &LOCATION_COLUMNS,
    },
    ViewSpec {
        name: WORKING_TASKS,
        description: "Tasks that kept a location busy. Left out of `program_tasks` are asynchronous spans and states of threads (locations \
                      of kind async and state), transfers (role communication of the location), waits, and the steps of PyTorch's \
                      profiler (`ProfilerStep#…`, and kind gpu_user_annotation). Saved queries about busy locations, parallelism and idle time read it.",
        sql: "SELECT * FROM program_tasks AS o WHERE (o.role = 'wait' OR o.kind = 'gpu_user_annotation' \
              OR (o.kind = 'user_annotation' AND o.name LIKE 'ProfilerStep#%')) IS NOT TRUE AND NOT EXISTS (SELECT 1 FROM locations AS l \
              WHERE (l.kind IN ('async', 'state') OR l.role = 'communication') AND l.run = o.run AND l.location = o.location)",
        columns: &TASK_COLUMNS,
    },
    ViewSpec {
        name: WORKING_SPANS,
        description: "The spans in which tasks worked: `working_tasks` without the waits inside them (`cudaStreamSynchronize` in an \
                      operator), whatever runs inside of those; waits that lie in no task, and those of streams (kind cuda_sync), take nothing from others. A task that waits is there once for each piece that is left of it; all others are there once. Where tasks of \
                      a location overlap without nesting (`depth` is NULL), waits are taken from no other task. Saved queries about busy and idle time read it.",
        // Waits of streams (`cuda_sync`) lie around the kernels that they wait for, and take nothing from them.
        sql: "SELECT t.run, t.task, t.name, t.location, p.start, p.finish, p.duration, t.depth, \
              t.depth IS NULL OR coalesce(max(p.finish) OVER (PARTITION BY t.run, t.location ORDER BY p.start, p.finish DESC, t.depth \
              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) <= p.start, true) AS is_outermost \
              FROM subtract((SELECT * FROM working_tasks WHERE finish IS NOT NULL), (SELECT run, location, start, finish \
              FROM program_tasks WHERE role = 'wait' AND (kind IS DISTINCT FROM 'cuda_sync') AND stack_parent IS NOT NULL \
              AND finish IS NOT NULL)) p \
              JOIN working_tasks t ON t.task = p.task",
        columns: &[
            ("run", "The recording."),
            ("task", "The task; several spans have it where waits cut it into pieces."),
            ("name", "What the task is called."),
            ("location", "Where it ran."),
            ("start", "First tick."),
            ("finish", "First tick after it."),
            ("duration", "finish - start."),
            ("depth", "Of the task: where waits are cut out, one that holds another may be left with the same span."),
            (
                "is_outermost",
                "Whether no other span of the location encloses it; true as well where tasks overlap without nesting.",
            ),
        ],
    },
    ViewSpec {
        name: WORK_BY_NAME,
        description: "The work of each name of task: its `working_spans` without what started later on their location.",
        // Equal spans are told apart by depth. Names are texts: sorting words takes, batch by batch, the time of all words that there are.
        sql: "SELECT run, CAST(name AS VARCHAR) AS name, sum(tasks) AS tasks, coalesce(sum(work_time), CASE WHEN count(total_time) > 0 THEN 0 END) AS work_time, sum(total_time) AS total_time FROM (\
              SELECT run, name, 0 AS tasks, self_time AS work_time, CASE WHEN false THEN self_time END AS total_time \
              FROM self_time((SELECT run, name, location, start, finish, coalesce(depth, 0) * 1099511627776 + task % 1099511627776 AS task \
              FROM working_spans)) UNION ALL \
              SELECT run, name, 1 AS tasks, CASE WHEN false THEN duration END AS work_time, duration AS total_time FROM working_tasks) \
              GROUP BY run, name",
        columns: &[
            ("run", "The recording."),
            ("name", "What the tasks are called."),
            ("tasks", "How many there are."),
            ("work_time", "The time of the tasks themselves, without nested ones and waits."),
            ("total_time", "The sum of their durations."),
        ],
    },
    ViewSpec {
        name: "working_locations",
        description: "The locations that execute tasks: `program_locations` without those of kind async and state and of role \
                      communication (all of them where there are no others).",
        sql: "SELECT * FROM program_locations AS o WHERE NOT EXISTS (SELECT 1 FROM locations AS l \
              WHERE (l.kind IN ('async', 'state') OR l.role = 'communication') AND l.run = o.run AND l.location = o.location)",
        columns: &LOCATION_COLUMNS,
    },
    ViewSpec {
        name: "working_lanes",
        description: "Locations that run tasks themselves: `working_locations` without those that hold others (executors, processes, \
                      ranks, nodes, devices, scopes) and without ports. A rank, process, node or executor that holds no other and has tasks is one.",
        sql: "SELECT * FROM working_locations WHERE kind NOT IN ('executor', 'process', 'rank', 'node', 'device', 'scope', 'port') \
              UNION ALL SELECT * FROM working_locations AS o WHERE kind IN ('executor', 'process', 'rank', 'node') \
              AND NOT EXISTS (SELECT 1 FROM locations AS l WHERE l.run = o.run AND l.parent = o.location) \
              AND EXISTS (SELECT 1 FROM tasks AS t WHERE t.run = o.run AND t.location = o.location)",
        columns: &LOCATION_COLUMNS,
    },
    ViewSpec {
        name: "busy_lanes",
        description: "How long each of the `working_lanes` was busy, those that never ran included.",
        sql: "SELECT l.run, l.location, coalesce(busy(t.start, t.finish), 0) AS busy_time FROM working_lanes l \
              LEFT JOIN working_spans t ON t.run = l.run AND t.location = l.location GROUP BY l.run, l.location",
        columns: &[
            ("run", "The recording."),
            ("location", "The location."),
            ("busy_time", "Ticks during which at least one of its `working_spans` ran; 0 where it has none."),
        ],
    },
    ViewSpec {
        name: "spans_and_ends",
        description: "The `working_spans`, and for each run two without task and length, at its first start and its last finish on one of \
                      its locations: intervals and gaps over them reach from end to end of the run, as its makespan does, also where it \
                      begins or ends with what is no work. Saved queries over time read it.",
        sql: "SELECT run, location, task, start, finish, is_outermost FROM working_spans UNION ALL \
              SELECT run, location, NULL AS task, unnest(make_array(first_start, last_finish)) AS start, \
                unnest(make_array(first_start, last_finish)) AS finish, true AS is_outermost FROM ( \
                SELECT w.run, w.location, r.first_start, r.last_finish FROM ( \
                  SELECT run, min(location) AS location FROM working_tasks WHERE finish IS NOT NULL GROUP BY run) w \
                JOIN (SELECT run, min(start) AS first_start, max(finish) AS last_finish FROM program_tasks GROUP BY run) r ON r.run = w.run)",
        columns: &[
            ("run", "The recording."),
            ("location", "Where it ran."),
            ("task", "The task; NULL for the ends of the run."),
            ("start", "First tick."),
            ("finish", "First tick after it."),
            ("is_outermost", "As in `working_spans`; true for the ends of the run."),
        ],
    },
    ViewSpec {
        name: "idle_stretches",
        description: "When locations ran nothing: the gaps between their `working_spans`, from the first start to the last finish of \
                      their run, as its makespan, or of the slice. Locations without spans have none. Saved queries about idle time read it.",
        // What runs on no location makes no gaps, so its ends are none.
        sql: "SELECT run, location, start, finish, duration, task_before, task_after FROM gaps(( \
              SELECT run, location, start, finish, task FROM spans_and_ends WHERE location IS NOT NULL OR task IS NOT NULL), \
              from => slice_from(), to => slice_to(), ends => true)",
        columns: &[
            ("run", "The recording."),
            ("location", "Where nothing ran."),
            ("start", "First tick of the stretch."),
            ("finish", "First tick after it."),
            ("duration", "finish - start."),
            ("task_before", "The task that ran last before it; NULL where none did."),
            ("task_after", "The task that runs first after it; NULL where none does."),
        ],
    },
    ViewSpec {
        name: "collectives",
        description: "Tasks in which ranks work together and none is done before the last one has begun: communication kernels of \
                      devices (NCCL, RCCL), and those of gloo and MPI whose result needs all ranks. The k-th of a name and process group on \
                      each rank is the same one; a first one that ended before those of the others began, or at the beginning of a slice is the rest of one, is an \
                      earlier one. Left out are those that only one rank has and those that one rank ended before another began. Where ranks \
                      have clocks of their own and the same number of them, they are taken as they stand: where clocks differ, so do starts.",
        sql: "SELECT run, task, rank, name, start, finish, on_device, last_start, last_task, ranks, \
                least(last_start, finish) - start AS wait_time, greatest(finish - last_start, 0) AS transfer_time FROM ( \
                SELECT *, max(start) OVER same AS last_start, count(*) OVER same AS ranks, min(finish) OVER same AS first_finish, \
                  min(of_rank) OVER same = max(of_rank) OVER same AS are_as_many, \
                  min(clock) OVER same IS NOT DISTINCT FROM max(clock) OVER same AS is_one_clock, \
                  first_value(task) OVER (PARTITION BY run, name, process_group, number ORDER BY start DESC, task) AS last_task \
                FROM (SELECT *, place - CASE \
                    WHEN first < max(first_start) OVER all_ranks AND min(clock) OVER all_ranks IS NOT DISTINCT FROM max(clock) OVER all_ranks THEN 1 \
                    WHEN first_start <= slice_from() AND abs(first - max(first) OVER all_ranks) > abs(second - max(first) OVER all_ranks) THEN 1 \
                    ELSE 0 END AS number \
                FROM (SELECT *, max(CASE WHEN place = 1 THEN start END) OVER of_one AS first_start, \
                  max(CASE WHEN place = 1 THEN finish END) OVER of_one AS first, max(CASE WHEN place = 2 THEN finish END) OVER of_one AS second \
                FROM (SELECT t.run, l.clock, t.task, coalesce(d.process, l.process, l.location) AS rank, t.name, t.start, t.finish, \
                    t.kind IS NOT DISTINCT FROM 'kernel' AS on_device, coalesce(t.args->>'Process Group Name', '') AS process_group, \
                    row_number() OVER (PARTITION BY t.run, coalesce(d.process, l.process, l.location), t.name, \
                      coalesce(t.args->>'Process Group Name', '') ORDER BY t.start, t.task) AS place, \
                    count(*) OVER (PARTITION BY t.run, coalesce(d.process, l.process, l.location), t.name, \
                      coalesce(t.args->>'Process Group Name', '')) AS of_rank \
                  FROM program_tasks t JOIN program_locations l ON l.run = t.run AND l.location = t.location \
                  LEFT JOIN program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock \
                  WHERE t.finish IS NOT NULL AND ((t.kind = 'kernel' AND t.role = 'communication') OR (t.name LIKE 'gloo:%' \
                    AND t.name NOT IN ('gloo:broadcast', 'gloo:gather', 'gloo:reduce', 'gloo:scatter', 'gloo:send', 'gloo:recv')) \
                    OR t.name IN ('MPI_Barrier', 'MPI_Allreduce', 'MPI_Allgather', 'MPI_Allgatherv', 'MPI_Alltoall', 'MPI_Alltoallv', \
                      'MPI_Alltoallw', 'MPI_Reduce_scatter', 'MPI_Reduce_scatter_block'))) \
                WINDOW of_one AS (PARTITION BY run, rank, name, process_group)) \
                WINDOW all_ranks AS (PARTITION BY run, name, process_group)) \
                WINDOW same AS (PARTITION BY run, name, process_group, number)) \
              WHERE ranks > 1 AND ((are_as_many AND NOT is_one_clock AND slice_from() IS NULL AND slice_to() IS NULL) OR last_start < first_finish \
                OR (are_as_many AND last_start = first_finish))",
        columns: &[
            ("run", "The recording."),
            ("task", "The task of this rank."),
            ("rank", "The process of its location, or of the rank that its device belongs to; else the location."),
            ("name", "Its name."),
            ("start", "When this rank began it."),
            ("finish", "When it ended here."),
            ("on_device", "Whether it is a kernel."),
            ("last_start", "When the last rank began it: until then the others waited."),
            ("last_task", "The task of that rank."),
            ("ranks", "How many ranks took part, two or more."),
            ("wait_time", "How long this rank waited in it for the last one."),
            ("transfer_time", "How long it went on from then on."),
        ],
    },
    ViewSpec {
        name: "path_tasks",
        description: "The tasks of an executed path: `program_tasks`, where a rank that waits in a collective begins it one tick after the \
                      last one did. Until then it has a task of role wait with a number below 0, and by `path_links` the path goes on where \
                      the rank was that all waited for. Steps of PyTorch's profiler (`ProfilerStep#…`), which hold all that runs \
                      meanwhile, are left out.",
        sql: "SELECT t.run, t.task, t.name, t.kind, t.role, t.location, \
                CASE WHEN c.last_start > t.start AND c.last_start < t.finish THEN c.last_start + 1 ELSE t.start END AS start, t.finish \
              FROM program_tasks t LEFT JOIN collectives c ON c.task = t.task \
              WHERE (t.kind = 'gpu_user_annotation' OR (t.kind = 'user_annotation' AND t.name LIKE 'ProfilerStep#%')) IS NOT TRUE UNION ALL \
              SELECT c.run, -1 - c.task, c.name, t.kind, 'wait', t.location, c.start, c.last_start + 1 \
              FROM collectives c JOIN program_tasks t ON t.task = c.task WHERE c.last_start > c.start AND c.last_start < c.finish",
        columns: &[
            ("run", "The recording."),
            ("task", "The task; -1 - task for its wait."),
            ("name", "Its name."),
            ("kind", "As in `tasks`."),
            ("role", "As in `tasks`."),
            ("location", "Where it ran."),
            ("start", "When it began, in a collective when all had begun."),
            ("finish", "First tick after it; NULL when it never ended."),
        ],
    },
    ViewSpec {
        name: "path_links",
        description: "What released the tasks of an executed path: `links`; kind collective from the rank that began a collective last to \
                      the others; kind device from the work that ended last on a device to what begins there next on another \
                      stream. The last are guesses: recordings of devices seldom name the events for which streams wait.",
        sql: "SELECT run, source, target, kind FROM links UNION ALL \
              SELECT run, last_task, task, 'collective' FROM collectives WHERE last_task <> task AND last_start < finish UNION ALL \
              SELECT s.run, e.task, s.task, 'device' FROM ( \
                SELECT run, device, location, task, count(ended) OVER (PARTITION BY run, device ORDER BY time, turn, ended, task \
                  ROWS UNBOUNDED PRECEDING) AS number \
                FROM (SELECT run, device, location, finish AS time, 0 AS turn, task AS ended, CAST(NULL AS BIGINT) AS task \
                  FROM gpu.device_tasks UNION ALL SELECT run, device, location, start, 1, NULL, task FROM gpu.device_tasks)) s \
              JOIN (SELECT run, device, location, task, row_number() OVER (PARTITION BY run, device ORDER BY finish, task) AS number \
                FROM gpu.device_tasks) e ON e.run = s.run AND e.device = s.device AND e.number = s.number \
              WHERE s.task IS NOT NULL AND e.location <> s.location",
        columns: &[
            ("run", "The recording."),
            ("source", "The task that came before."),
            ("target", "The task that it released."),
            ("kind", "As in `links`; collective or device."),
        ],
    },
    ViewSpec {
        name: "name_families",
        description: "What a name of task is called where runs are compared. Where nine of ten names occur once in a run (`blur_3_2`), \
                      names that differ in numbers alone are one, `blur_*_*`, if that leaves more than one, and at most a quarter; \
                      else each is its own. Tasks without name are not in it.",
        sql: "SELECT name, CASE WHEN 10 * sum(once) OVER () >= 9 * sum(runs) OVER () \
                AND max(number) OVER () > 1 AND 4 * max(number) OVER () <= count(*) OVER () THEN family ELSE name END AS family \
              FROM (SELECT name, family, runs, once, dense_rank() OVER (ORDER BY family) AS number \
                FROM (SELECT name, regexp_replace(name, '[0-9]+', '*', 'g') AS family, count(*) AS runs, count(*) FILTER (WHERE tasks = 1) AS once \
                  FROM (SELECT run, CAST(name AS VARCHAR) AS name, count(*) AS tasks FROM program_tasks WHERE name <> '' GROUP BY run, name) \
                  GROUP BY name))",
        columns: &[("name", "The name."), ("family", "What stands for it.")],
    },
    ViewSpec {
        name: "parent_links",
        description: "The parents of tasks: declared by the trace, or by nesting on a lane; a task can have both.",
        sql: "SELECT run, task, parent, 'declared' AS kind FROM tasks WHERE (parent IS DISTINCT FROM stack_parent) AND parent IS NOT NULL \
              UNION ALL SELECT run, task, stack_parent AS parent, 'stack' AS kind FROM tasks WHERE stack_parent IS NOT NULL",
        columns: &[
            ("run", "The recording."),
            ("task", "The child."),
            ("parent", "The task above it."),
            ("kind", "declared or stack."),
        ],
    },
    ViewSpec {
        name: "lost_dependencies",
        description: "How many dependencies a recording names that are no `links`, since a task at their end is not known: chains \
                      through them are cut. Only runs that lost some have a row.",
        sql: "SELECT run, sum(count) AS dependencies FROM import_stats WHERE what IN ('dot_edges_not_joined', \
              'dot_edges_partly_joined', 'dot_name_cut', 'missing_end', 'unknown_reference', 'ambiguous_reference') GROUP BY run",
        columns: &[("run", "The recording."), ("dependencies", "How many could not be joined to tasks.")],
    },
    ViewSpec {
        name: "messages_by_pair",
        description: "How many messages and bytes each location sent to each other one, each message once: where a run has messages as they \
                      are sent (kind logical), as they are handled (handled) and the buffers that carry them (local_send, nonblock_send), \
                      only the first of these count.",
        // Summed before layers are compared: pairs are few, messages are many.
        sql: "SELECT run, source, target, sum(count) AS messages, sum(bytes) AS bytes FROM ( \
                SELECT run, source, target, CASE kind WHEN 'logical' THEN 1 WHEN 'handled' THEN 2 WHEN 'local_send' THEN 3 \
                  WHEN 'nonblock_send' THEN 3 END AS layer, sum(count) AS count, sum(bytes) AS bytes \
                FROM messages GROUP BY run, source, target, layer \
                QUALIFY layer IS NULL OR layer = min(layer) OVER (PARTITION BY run)) \
              GROUP BY run, source, target",
        columns: &[
            ("run", "The recording."),
            ("source", "Who sent."),
            ("target", "Who received."),
            ("messages", "How many messages."),
            ("bytes", "Their bytes; NULL where none says its size."),
        ],
    },
    ViewSpec {
        name: "executions",
        description: "Scalability studies: one row per run, region and repetition.",
        // Thousands of runs: their numbers and plain text are grouped and joined far faster than words.
        sql: "SELECT r.run, t.region, p.name AS parent_region, r.argument, r.size_order, r.cores, r.repetition, t.time, r.study \
              FROM (SELECT task >> 40 AS run_number, arrow_cast(name, 'Utf8View') AS region, min(parent) AS parent, \
              sum(duration) AS time FROM tasks WHERE kind = 'region' GROUP BY task >> 40, arrow_cast(name, 'Utf8View')) t \
              JOIN runs r ON r.run_number = t.run_number LEFT JOIN tasks p ON p.task = t.parent",
        columns: &[
            ("run", "The execution."),
            ("region", "The region's name; '' for the whole program."),
            ("parent_region", "The region around it."),
            ("argument", "The problem size as written."),
            ("size_order", "Rank of the problem size."),
            ("cores", "Cores used."),
            ("repetition", "Number of the repetition."),
            ("time", "How long the region ran, all of its occurrences together; NULL when that is not known."),
            ("study", "The study that the run belongs to: efficiencies are compared within one."),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_the_program_end_so_that_sessions_find_it() {
        let views = VIEWS.iter().filter(|view| view.name.starts_with("program_"));
        assert_eq!(views.filter(|view| view.sql.ends_with(OF_PROGRAM)).count(), 2);
        assert!(OF_PROGRAM.contains(&format!("'{PROFILER}'")));
        let (view, table) = (VIEWS.iter().find(|view| view.name == PROGRAM_TASKS).unwrap(), Table::Tasks.spec());
        assert!(view.columns.iter().map(|column| column.0).eq(table.columns.iter().map(|column| column.name)));
    }

    #[test]
    fn specs_stand_in_the_order_of_the_enum() {
        for (table, spec) in Table::ALL.iter().zip(&TABLES) {
            assert_eq!(*table, spec.table);
            assert_eq!(spec.columns[0].name, "run");
            assert_eq!(Table::from_name(spec.name), Some(*table));
        }
    }
}
