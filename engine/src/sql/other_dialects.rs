//! Names of other databases and tools, and how their question is asked here.
//!
//! A name that is not known is looked for here before the nearest of our own names is offered: `max_by` is not meant to be `max`, and
//! `tid` not `id`. What stands in back quotes is SQL; a test plans each of them.

/// Names, separated by spaces, and the hint for them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("arg_max argmax max_by maxby", "`first_value(name ORDER BY duration DESC)` is the name of the largest duration"),
    ("arg_min argmin min_by minby", "`first_value(name ORDER BY duration)` is the name of the smallest duration"),
    ("group_concat listagg wm_concat grouparray_concat", "write `string_agg(name, ',')`"),
    ("list collect_list grouparray array_collect", "write `array_agg(name)`"),
    ("collect_set groupuniqarray", "write `array_agg(DISTINCT name)`"),
    ("typeof pg_typeof totypename sqltype", "write `arrow_typeof(start)`"),
    (
        "json_extract json_extract_string json_extract_path json_extract_path_text json_extract_scalar json_value json_query \
         jsonb_extract_path jsonb_extract_path_text get_json_object jsonextractstring jsonextractint json_object_get",
        "`args->>'key'` is a member as text, `args->'key'` as JSON",
    ),
    (
        "regexp_extract regexp_substr regexp_extract_all extract_regexp",
        "`regexp_match(name, 'a(.*)')[1]` is what the group matched",
    ),
    (
        "regexp_matches rlike regexp_full_match regex_match",
        "`name ~ 'a.*'` says whether, `regexp_match(name, 'a.*')` what matches",
    ),
    (
        "string_split str_split split strsplit string_split_regex splitbychar",
        "write `string_to_array(name, ',')`, or `split_part(name, ',', 1)` for one part",
    ),
    ("printf format sprintf format_string", "put it together: `name || ': ' || round(0.123, 2)`"),
    (
        "strftime formatdatetime format_datetime date_to_string",
        "`time_text(start)` shows a time of the trace; a date is written by `to_char(now(), '%Y-%m-%d %H:%M')`",
    ),
    ("strptime str_to_date parse_datetime parse_timestamp", "write `to_timestamp('2026-01-31', '%Y-%m-%d')`"),
    (
        "percentile_disc quantile_disc",
        "`percentile_cont(duration, 0.95)` goes between the two nearest values; the first with `cume_dist() OVER (ORDER BY duration)` >= 0.95 is one that is there",
    ),
    (
        "quantile percentile quantiles quantileexact p25 p50 p75 p90 p95 p99 p999",
        "`percentile_cont(duration, 0.95)` goes between the two nearest values",
    ),
    (
        "approx_quantile approx_percentile percentile_approx quantiletdigest",
        "write `approx_percentile_cont(duration, 0.95)`",
    ),
    ("count_if countif", "write `count(*) FILTER (WHERE duration > 0)`"),
    ("sum_if sumif avg_if avgif", "write `sum(duration) FILTER (WHERE depth = 0)`"),
    (
        "approx_count_distinct uniq uniqexact hll ndv count_distinct",
        "write `count(DISTINCT name)` or `approx_distinct(name)`",
    ),
    ("if iff iif", "write `CASE WHEN duration > 0 THEN 'a' ELSE 'b' END`"),
    ("isnull is_null", "write `name IS NULL`"),
    ("notnull isnotnull is_not_null", "write `name IS NOT NULL`"),
    ("len strlen", "write `length(name)`"),
    ("locate charindex", "write `strpos(name, 'a')`"),
    ("string_concat strcat", "write `'a' || name`"),
    ("make_timestamp", "write `CAST(make_date(2024, 1, 2) AS TIMESTAMP) + 3 * INTERVAL '1 hour'`"),
    ("make_interval", "write `10 * INTERVAL '1 day'`"),
    ("logical_and booland_agg", "write `bool_and(duration > 0)`"),
    ("logical_or boolor_agg", "write `bool_or(duration > 0)`"),
    ("first arbitrary any", "`any_value(name)` takes any, `first_value(name ORDER BY start)` the first"),
    ("last", "write `last_value(name ORDER BY start)`"),
    ("explode", "write `unnest(string_to_array(name, ','))`"),
    ("size array_size", "write `cardinality(string_to_array(name, ','))`"),
    ("safe_divide div0 try_divide", "write `1.0 * duration / nullif(depth, 0)`"),
    ("zeroifnull", "write `coalesce(depth, 0)`"),
    ("to_number tonumber toint64 toint32 to_int to_integer", "write `TRY_CAST(id AS BIGINT)`"),
    ("tofloat64 to_double to_float", "write `TRY_CAST(id AS DOUBLE)`"),
    ("tostring to_string", "write `CAST(depth AS VARCHAR)`"),
    ("getdate sysdate current_datetime", "write `now()`"),
    ("year month day hour minute second", "write `date_part('year', now())`"),
    ("epoch unix_timestamp tounixtimestamp", "write `date_part('epoch', now())`"),
    ("date_add dateadd date_sub datesub timestampadd", "write `now() + INTERVAL '1 day'`"),
    ("date_diff datediff timestampdiff age", "subtract them: `finish - start`"),
    ("time_bucket date_bucket width_bucket tostartofinterval", "write `start / ms(10) * ms(10)`, and group by that"),
    ("histogram", "group by a width: `duration / ms(1) * ms(1)`, with `count(*)` beside it"),
    ("trace_start", "write `min(start)`"),
    ("trace_end", "write `max(finish)`"),
    ("trace_dur trace_duration", "write `max(finish) - min(start)`"),
    ("time_from_ns time_from_us time_from_ms time_from_s", "write `us(5)`, `ms(5)` or `s(5)`"),
    ("time_to_ns time_to_us time_to_ms time_to_s", "write `to_us(duration)`, `to_ms(duration)` or `to_s(duration)`"),
    ("format_duration human_readable_duration", "write `time_text(duration)`"),
    ("to_json parse_json json json_parse", "a text is JSON as it stands: `args->>'key'`"),
];

/// What does to ticks what a function of this name does to dates.
pub(super) fn of_ticks(function: &str) -> Option<&'static str> {
    matches!(function, "date_bin" | "date_trunc")
        .then_some("times are ticks: write `start / ms(10) * ms(10)`, and group by that")
}

/// What tools call one thing, in the order in which our own names are offered. Perfetto's are names of ours in its schema.
const COLUMNS: &[&str] = &[
    "duration dur elapsed length latency runtime time_taken",
    "start time send_time ts begin timestamp start_time begin_time start_ts start_us start_ns t0",
    "finish receive_time end stop end_time finish_time stop_time end_ts finish_ts end_us end_ns t1",
    "location track_id utid tid pid thread thread_id thread_name process process_id rank worker executor core cpu gpu device stream lane track node \
     resource pe",
    "kind category cat type",
    "name cname label function func op event task_name slice_name",
    "source src sender from_rank",
    "target dst dest receiver to_rank",
    "bytes size size_bytes message_size",
    "args arg_set_id arguments metadata attributes",
    "parent parent_id",
    "depth level stack_depth",
    "run trace experiment file",
];

/// What tools call one table.
const TABLES: &[&str] = &[
    "tasks spans span regions activities functions intervals cupti_activity_kind_memset cupti_activity_kind_synchronization osrt_api",
    "locations threads processes ranks workers devices streams cores nodes lanes pes resources tracks",
    "links edges dependencies deps flows arrows",
    "messages comms communications communication sends packets",
    "counters metrics samples gauges",
    "events instants markers marks points",
    "runs traces recordings experiments files",
];

/// The first of the names that are there that means the same as the name of another tool.
fn same<'a>(groups: &[&'static str], name: &str, there: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let group = groups.iter().find(|group| group.split_whitespace().any(|known| known == name))?;
    group.split_whitespace().find_map(|ours| there.iter().copied().find(|there| *there == ours))
}

/// The column that another tool calls so.
pub(super) fn column_like<'a>(name: &str, there: &[&'a str]) -> Option<&'a str> {
    same(COLUMNS, name, there)
}

/// The table that another tool calls so.
pub(super) fn table_like<'a>(name: &str, there: &[&'a str]) -> Option<&'a str> {
    same(TABLES, name, there)
}

/// What to write instead of a function that other databases have.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    ELSEWHERE.iter().find(|(names, _)| names.split_whitespace().any(|known| known == name)).map(|(_, hint)| *hint)
}

/// Tables and relation functions of other tools that are another question here.
const RELATIONS_ELSEWHERE: &[(&str, &str)] = &[
    (
        "span_join span_left_join span_outer_join interval_intersect",
        "write `FROM intersect((SELECT … FROM a), (SELECT … FROM b))`; what one has and the other has not is `subtract`",
    ),
    ("kernel kernels cupti_activity_kind_kernel", "kernels are tasks: `FROM tasks WHERE kind = 'kernel'`"),
    ("cupti_activity_kind_memcpy memcpys", "copies are tasks: `FROM tasks WHERE kind = 'gpu_memcpy'`"),
    (
        "cupti_activity_kind_runtime cuda_calls",
        "calls are tasks: `FROM tasks WHERE kind IN ('cuda_runtime', 'cuda_driver')`",
    ),
    ("nvtx nvtx_events", "ranges are tasks: `FROM tasks WHERE kind = 'nvtx'`"),
    ("stringids strings", "names are texts: `SELECT name FROM tasks`"),
    (
        "sched thread_state sched_slice",
        "what the system scheduled is not read; waits of the program have `role = 'wait'` in `tasks`",
    ),
];

/// What to write instead of a table or a relation function that other tools have.
pub(super) fn table_elsewhere(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    RELATIONS_ELSEWHERE
        .iter()
        .find(|(names, _)| names.split_whitespace().any(|known| known == name))
        .map(|(_, hint)| *hint)
}

/// Whether a relation function of other databases reads a file.
pub(super) fn reads_files(name: &str) -> bool {
    let name = name.to_lowercase();
    ["read_", "scan_"].iter().any(|begin| name.starts_with(begin))
        || ["_scan", "_scan_auto"].iter().any(|end| name.ends_with(end))
}

/// How a file is opened.
pub(super) const FILES_ARE_OPENED: &str =
    "files are opened on the command line, `tq query FILE -c 'SELECT …'`, and are tables like `tasks`";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::open::OpenOptions;
    use crate::session::Session;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_offered_is_there_and_what_is_named_is_not() {
        let session = Session::open(&OpenOptions::new(1 << 28, 1)).unwrap();
        let mut seen = HashSet::new();
        for (names, hint) in ELSEWHERE {
            for sql in hint.split('`').skip(1).step_by(2) {
                let text = format!("SELECT {sql} FROM tasks GROUP BY name, start, finish, duration, depth, id, args");
                let planned = session.sql(&text).await;
                assert!(planned.is_ok(), "{text}: {:?}", planned.err());
            }
            for name in names.split_whitespace() {
                assert!(seen.insert(name), "{name} twice");
                let known = session.sql(&format!("SELECT {name}(1)")).await.err().map(|error| error.to_string());
                let is_unknown = known.as_ref().is_some_and(|error| error.contains("no function"));
                assert!(is_unknown, "{name} is there: {known:?}");
            }
        }
    }
}
