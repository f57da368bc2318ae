//! The views: Perfetto's tables, from ours.
//!
//! Ids: a slice has the id of its task, an instant a number from 2^39 on; tracks, threads and processes are numbered over
//! all locations, counter tracks after them. Times are absolute, as Perfetto has them: ns since the trace's own zero (`runs.origin`).
//! Tables show them as plain numbers, since as times for people all rows would read `4370630 s`. In a session of picoseconds absolute
//! times would not fit; there they are ticks since the run's origin.

use crate::tables::ViewSpec;

const ID: (&str, &str) = ("id", "The identity of the row.");
const RUN: (&str, &str) = ("run", "The recording.");
const NAME: (&str, &str) = ("name", "Its name; NULL where the trace has none.");
const TS: (&str, &str) = ("ts", "Absolute time, in ns.");
const TRACK_ID: (&str, &str) = ("track_id", "Its track.");
const TYPE: (&str, &str) = ("type", "What the track shows: thread_execution, process_slice or counter.");
const PARENT_TRACK: (&str, &str) = ("parent_id", "The track above it.");
const NO_ARGS: (&str, &str) = ("arg_set_id", "NULL: there are none.");
const UTID: (&str, &str) = ("utid", "The thread, unique in the session.");
const UPID: (&str, &str) = ("upid", "The process, unique in the session.");

/// All views; a view may refer to those before it.
pub static VIEWS: [ViewSpec; 17] = [
    ViewSpec {
        name: "place",
        description: "Every location with its number, and what Perfetto would call it.",
        sql: "SELECT l.run, r.run_number, CAST(row_number() OVER (ORDER BY r.run_number, l.location) AS BIGINT) AS id, \
                l.location, l.parent, l.args, \
                CASE WHEN l.kind IN ('process', 'node', 'executor') THEN 'process' \
                     WHEN l.kind IN ('rank', 'async', 'state') THEN l.kind ELSE 'thread' END AS kind, \
                CASE WHEN l.name IN ('pid ' || (l.args->>'pid'), 'tid ' || (l.args->>'tid'), l.args->>'labels') THEN NULL \
                     WHEN ends_with(l.name, ' (' || (l.args->>'labels') || ')') \
                     THEN left(l.name, character_length(l.name) - character_length(l.args->>'labels') - 3) ELSE l.name END AS name \
              FROM tq.main.locations l JOIN tq.main.runs r ON r.run = l.run",
        columns: &[
            RUN,
            ("run_number", "The number of the run."),
            ID,
            ("location", "The location."),
            ("parent", "The location above it."),
            ("args", "What the trace says of it."),
            ("kind", "process, thread, async, state or rank."),
            NAME,
        ],
    },
    ViewSpec {
        name: "process",
        description: "Processes.",
        sql: "SELECT id, id AS upid, TRY_CAST(args->>'pid' AS BIGINT) AS pid, name, CAST(NULL AS BIGINT) AS start_ts, \
                CAST(NULL AS BIGINT) AS end_ts, CAST(NULL AS BIGINT) AS parent_upid, CAST(NULL AS VARCHAR) AS cmdline, \
                CAST(NULL AS BIGINT) AS arg_set_id, run FROM tq.perfetto.place WHERE kind = 'process'",
        columns: &[
            ID,
            UPID,
            ("pid", "The trace's own id; NULL where it is no number."),
            NAME,
            ("start_ts", "NULL: not known."),
            ("end_ts", "NULL: not known."),
            ("parent_upid", "NULL: not known."),
            ("cmdline", "NULL: not known."),
            NO_ARGS,
            RUN,
        ],
    },
    ViewSpec {
        name: "thread",
        description: "Threads: locations that are neither processes nor asynchronous lanes.",
        sql: "SELECT t.id, t.id AS utid, TRY_CAST(t.args->>'tid' AS BIGINT) AS tid, t.name, CAST(NULL AS BIGINT) AS start_ts, \
                CAST(NULL AS BIGINT) AS end_ts, p.id AS upid, \
                CAST((t.args->>'tid') = (p.args->>'pid') AS BIGINT) AS is_main_thread, t.run \
              FROM tq.perfetto.place t LEFT JOIN tq.perfetto.place p \
                ON p.run = t.run AND p.location = t.parent AND p.kind = 'process' WHERE t.kind = 'thread'",
        columns: &[
            ID,
            UTID,
            ("tid", "The trace's own id; NULL where it is no number."),
            NAME,
            ("start_ts", "NULL: not known."),
            ("end_ts", "NULL: not known."),
            UPID,
            ("is_main_thread", "1 when its id is that of the process."),
            RUN,
        ],
    },
    ViewSpec {
        name: "thread_track",
        description: "The tracks of threads.",
        sql: "SELECT id, CAST(NULL AS VARCHAR) AS name, 'thread_execution' AS type, CAST(NULL AS BIGINT) AS parent_id, \
                CAST(NULL AS BIGINT) AS source_arg_set_id, id AS utid, run FROM tq.perfetto.place WHERE kind = 'thread'",
        columns: &[
            ID,
            ("name", "NULL, as in Perfetto: the thread has one."),
            TYPE,
            PARENT_TRACK,
            ("source_arg_set_id", "NULL: there are none."),
            UTID,
            RUN,
        ],
    },
    ViewSpec {
        name: "process_track",
        description: "The tracks of processes: what is bound to no thread, asynchronous slices among it.",
        sql: "SELECT a.id, CASE WHEN a.kind = 'async' THEN a.name END AS name, 'process_slice' AS type, \
                CAST(NULL AS BIGINT) AS parent_id, CAST(NULL AS BIGINT) AS source_arg_set_id, coalesce(p.id, a.id) AS upid, a.run \
              FROM tq.perfetto.place a LEFT JOIN tq.perfetto.place p ON p.run = a.run AND p.location = a.parent AND p.kind = 'process' \
              WHERE a.kind IN ('process', 'async')",
        columns: &[
            ID,
            ("name", "Category and name of an asynchronous track."),
            TYPE,
            PARENT_TRACK,
            ("source_arg_set_id", "NULL: there are none."),
            UPID,
            RUN,
        ],
    },
    ViewSpec {
        name: "counter_track",
        description: "The tracks of counters.",
        sql: "SELECT CAST(row_number() OVER (ORDER BY r.run_number, c.location, c.name, c.unit) AS BIGINT) \
                + (SELECT count(*) FROM tq.main.locations) AS id, c.name, 'counter' AS type, p.id AS parent_id, \
                CAST(NULL AS BIGINT) AS source_arg_set_id, c.unit, c.location, c.run \
              FROM (SELECT DISTINCT run, location, name, unit FROM tq.main.counters WHERE time IS NOT NULL) c \
              JOIN tq.main.runs r ON r.run = c.run LEFT JOIN tq.perfetto.place p ON p.run = c.run AND p.location = c.location",
        columns: &[
            ID,
            ("name", "The name of the counter and of its series."),
            TYPE,
            PARENT_TRACK,
            ("source_arg_set_id", "NULL: there are none."),
            ("unit", "The unit, where the trace has one."),
            ("location", "Where it was measured."),
            RUN,
        ],
    },
    ViewSpec {
        name: "process_counter_track",
        description: "The tracks of counters of processes.",
        sql: "SELECT c.id, c.name, c.type, c.parent_id, c.source_arg_set_id, c.unit, p.upid, c.run \
              FROM tq.perfetto.counter_track c JOIN tq.perfetto.process p ON p.id = c.parent_id",
        columns: &[
            ID,
            NAME,
            TYPE,
            PARENT_TRACK,
            ("source_arg_set_id", "NULL: there are none."),
            ("unit", "The unit."),
            UPID,
            RUN,
        ],
    },
    ViewSpec {
        name: "thread_counter_track",
        description: "The tracks of counters of threads.",
        sql: "SELECT c.id, c.name, c.type, c.parent_id, c.source_arg_set_id, c.unit, t.utid, c.run \
              FROM tq.perfetto.counter_track c JOIN tq.perfetto.thread t ON t.id = c.parent_id",
        columns: &[
            ID,
            NAME,
            TYPE,
            PARENT_TRACK,
            ("source_arg_set_id", "NULL: there are none."),
            ("unit", "The unit."),
            UTID,
            RUN,
        ],
    },
    ViewSpec {
        name: "track",
        description: "All tracks.",
        sql: "SELECT id, name, type, parent_id, source_arg_set_id, run FROM tq.perfetto.thread_track \
              UNION ALL SELECT id, name, type, parent_id, source_arg_set_id, run FROM tq.perfetto.process_track \
              UNION ALL SELECT id, name, type, parent_id, source_arg_set_id, run FROM tq.perfetto.counter_track",
        columns: &[ID, NAME, TYPE, PARENT_TRACK, ("source_arg_set_id", "NULL: there are none."), RUN],
    },
    ViewSpec {
        name: "slice",
        description: "Tasks, and instants as slices of no duration; states of threads are in thread_state.",
        sql: "SELECT t.task AS id, CASE WHEN t.start IS NOT NULL THEN t.start + coalesce(r.origin, 0) END AS ts, coalesce(t.duration, -1) AS dur, p.id AS track_id, \
                t.kind AS category, t.kind AS cat, t.name, coalesce(t.depth, 0) AS depth, t.stack_parent AS parent_id, \
                CASE WHEN t.args IS NOT NULL THEN t.task END AS arg_set_id, \
                CAST(TRY_CAST(t.args->>'tts' AS DECIMAL(30, 3)) * 1000 AS BIGINT) AS thread_ts, \
                CAST(TRY_CAST(t.args->>'tdur' AS DECIMAL(30, 3)) * 1000 AS BIGINT) AS thread_dur, t.run \
              FROM tq.main.tasks t JOIN tq.main.runs r ON r.run = t.run \
              LEFT JOIN tq.perfetto.place p ON p.run = t.run AND p.location = t.location \
              WHERE t.start IS NOT NULL AND p.kind IS DISTINCT FROM 'state' \
              UNION ALL \
              SELECT r.run_number * 1099511627776 + 549755813887 \
                + CAST(row_number() OVER (PARTITION BY e.run ORDER BY e.time, e.location, e.name, e.args) AS BIGINT) AS id, \
                CASE WHEN e.time IS NOT NULL THEN e.time + coalesce(r.origin, 0) END AS ts, 0 AS dur, p.id AS track_id, e.kind AS category, e.kind AS cat, e.name AS name, \
                coalesce(t.depth + 1, 0) AS depth, e.task AS parent_id, CAST(NULL AS BIGINT) AS arg_set_id, \
                CAST(TRY_CAST(e.args->>'tts' AS DECIMAL(30, 3)) * 1000 AS BIGINT) AS thread_ts, CAST(NULL AS BIGINT) AS thread_dur, e.run AS run \
              FROM tq.main.events e JOIN tq.main.runs r ON r.run = e.run \
              LEFT JOIN tq.perfetto.place p ON p.run = e.run AND p.location = e.location \
              LEFT JOIN tq.main.tasks t ON t.task = e.task WHERE e.time IS NOT NULL",
        columns: &[
            ("id", "The task."),
            TS,
            ("dur", "Duration in ns; -1 for a slice that never ended."),
            TRACK_ID,
            ("category", "The trace's category: the task's kind."),
            ("cat", "The same."),
            ("name", "Its name."),
            ("depth", "Nesting depth on its track; 0 where tasks do not nest."),
            ("parent_id", "The slice around it."),
            ("arg_set_id", "Its arguments, for extract_arg and the view args; NULL without any, and for instants."),
            ("thread_ts", "Time of the thread's own clock, where the trace has it."),
            ("thread_dur", "Duration on the thread's own clock."),
            RUN,
        ],
    },
    ViewSpec {
        name: "thread_slice",
        description: "Slices of threads, with thread and process.",
        sql: "SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id, t.utid, t.tid, t.name AS thread_name, p.upid, p.pid, \
                p.name AS process_name, s.depth, s.parent_id, s.arg_set_id, s.thread_ts, s.thread_dur, s.run \
              FROM tq.perfetto.slice s JOIN tq.perfetto.thread t ON t.id = s.track_id LEFT JOIN tq.perfetto.process p ON p.upid = t.upid",
        columns: &[
            ("id", "The task."),
            TS,
            ("dur", "Duration in ns; -1 for a slice that never ended."),
            ("category", "The trace's category."),
            ("name", "Its name."),
            TRACK_ID,
            UTID,
            ("tid", "The trace's own id of the thread."),
            ("thread_name", "The thread's name."),
            UPID,
            ("pid", "The trace's own id of the process."),
            ("process_name", "The process's name."),
            ("depth", "Nesting depth."),
            ("parent_id", "The slice around it."),
            ("arg_set_id", "Its arguments."),
            ("thread_ts", "Time of the thread's own clock."),
            ("thread_dur", "Duration on the thread's own clock."),
            RUN,
        ],
    },
    ViewSpec {
        name: "process_slice",
        description: "Slices of processes: the asynchronous ones.",
        sql: "SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id, t.name AS track_name, p.upid, p.pid, p.name AS process_name, \
                s.depth, s.parent_id, s.arg_set_id, s.run \
              FROM tq.perfetto.slice s JOIN tq.perfetto.process_track t ON t.id = s.track_id JOIN tq.perfetto.process p ON p.upid = t.upid",
        columns: &[
            ("id", "The task."),
            TS,
            ("dur", "Duration in ns; -1 for a slice that never ended."),
            ("category", "The trace's category."),
            ("name", "Its name."),
            TRACK_ID,
            ("track_name", "The track's name."),
            UPID,
            ("pid", "The trace's own id of the process."),
            ("process_name", "The process's name."),
            ("depth", "Nesting depth."),
            ("parent_id", "The slice around it."),
            ("arg_set_id", "Its arguments."),
            RUN,
        ],
    },
    ViewSpec {
        name: "thread_state",
        description: "States of threads (the extension with `\"ph\":\"T\"` and a duration).",
        sql: "SELECT s.task AS id, CASE WHEN s.start IS NOT NULL THEN s.start + coalesce(r.origin, 0) END AS ts, coalesce(s.duration, -1) AS dur, \
                TRY_CAST(s.args->>'cpu' AS BIGINT) AS cpu, t.id AS utid, s.name AS state, \
                CAST(TRY_CAST(s.args->>'io_wait' AS BOOLEAN) AS BIGINT) AS io_wait, s.args->>'blocked_function' AS blocked_function, s.run \
              FROM tq.main.tasks s JOIN tq.main.runs r ON r.run = s.run \
              JOIN tq.perfetto.place p ON p.run = s.run AND p.location = s.location AND p.kind = 'state' \
              JOIN tq.perfetto.place t ON t.run = p.run AND t.location = p.parent",
        columns: &[
            ("id", "The task."),
            TS,
            ("dur", "Duration in ns; -1 for a state that never ended."),
            ("cpu", "The processor."),
            UTID,
            ("state", "The state."),
            ("io_wait", "1 when it waits for input or output."),
            ("blocked_function", "The function that it waits in."),
            RUN,
        ],
    },
    ViewSpec {
        name: "flow",
        description: "Arrows between slices: flows, launches and dependencies.",
        sql: "SELECT CAST(row_number() OVER (ORDER BY source, target, name) AS BIGINT) AS id, source AS slice_out, target AS slice_in, \
                CAST(NULL AS BIGINT) AS trace_id, CAST(NULL AS BIGINT) AS arg_set_id, name, kind AS category, run \
              FROM tq.main.links WHERE kind NOT IN ('operator', 'sync', 'weak')",
        columns: &[
            ID,
            ("slice_out", "The slice it leaves."),
            ("slice_in", "The slice it enters."),
            ("trace_id", "NULL: not kept."),
            NO_ARGS,
            ("name", "Its name."),
            ("category", "The link's kind."),
            RUN,
        ],
    },
    ViewSpec {
        name: "counter",
        description: "Values of counters.",
        sql: "SELECT CAST(row_number() OVER (ORDER BY t.id, c.time) AS BIGINT) AS id, CASE WHEN c.time IS NOT NULL THEN c.time + coalesce(r.origin, 0) END AS ts, \
                t.id AS track_id, c.value, CAST(NULL AS BIGINT) AS arg_set_id, c.run \
              FROM tq.main.counters c JOIN tq.main.runs r ON r.run = c.run JOIN tq.perfetto.counter_track t ON t.run = c.run \
                AND t.name = c.name AND (t.location IS NOT DISTINCT FROM c.location) AND (t.unit IS NOT DISTINCT FROM c.unit) \
              WHERE c.time IS NOT NULL",
        columns: &[ID, TS, TRACK_ID, ("value", "The value."), NO_ARGS, RUN],
    },
    ViewSpec {
        name: "args",
        description: "Arguments of slices, one value a row.",
        sql: "SELECT id, id AS arg_set_id, regexp_replace(a['key'], '\\[[0-9]+\\]', '', 'g') AS flat_key, a['key'] AS key, \
                a['int_value'] AS int_value, a['string_value'] AS string_value, a['real_value'] AS real_value, \
                CASE WHEN a['int_value'] IS NOT NULL THEN 'int' WHEN a['real_value'] IS NOT NULL THEN 'real' ELSE 'string' END AS value_type, \
                a['display_value'] AS display_value, run \
              FROM (SELECT task AS id, run, unnest(perfetto_arguments(args)) AS a FROM tq.main.tasks WHERE args IS NOT NULL)",
        columns: &[
            ("id", "The slice."),
            ("arg_set_id", "The same: each slice has arguments of its own."),
            ("flat_key", "The path without the places of arrays."),
            ("key", "The path: args.grid[0]."),
            ("int_value", "A whole number, or a truth value as 0 or 1."),
            ("string_value", "A text."),
            ("real_value", "Any other number."),
            ("value_type", "int, real or string."),
            ("display_value", "The value as text."),
            RUN,
        ],
    },
    ViewSpec {
        name: "trace_bounds",
        description: "The first and the last time of the traces.",
        sql: "SELECT min(t.start + coalesce(r.origin, 0)) AS start_ts, max(coalesce(t.finish, t.start) + coalesce(r.origin, 0)) AS end_ts \
              FROM tq.main.tasks t JOIN tq.main.runs r ON r.run = t.run",
        columns: &[("start_ts", "The first start, in ns."), ("end_ts", "The last finish, in ns.")],
    },
];
