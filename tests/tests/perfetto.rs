//! PerfettoSQL as people write it, on Perfetto's own golden cases and on our fixtures.

use tq_engine::session::Session;
use tq_engine::sql;
use tq_tests::{fixture, lines, open, shared, wait};

/// The rows of the last statement, cells separated by `|`; NULL is `-`.
fn rows(session: &Session, text: &str) -> Vec<String> {
    try_rows(session, text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn try_rows(session: &Session, text: &str) -> Result<Vec<String>, String> {
    let mut rows = Vec::new();
    for statement in sql::parse(text).map_err(|error| error.message)? {
        let batches = wait(async {
            let frame = session.execute(&statement, None).await.map_err(|error| format!("{error:?}"))?;
            frame.collect().await.map_err(|error| error.to_string())
        })?;
        rows = lines(&batches);
    }
    Ok(rows)
}

/// The rows of a golden table, and the session of its trace. No golden cell holds a comma.
fn golden(name: &str) -> Option<(Session, Vec<String>)> {
    let trace = shared(&format!("traces/chrome/perfetto-cases/{name}.json"))?;
    let table = shared(&format!("expected/perfetto/{name}.csv"))?;
    let text = std::fs::read_to_string(&table).expect("readable");
    let row = |line: &str| line.replace("[NULL]", "-").replace("\",\"", "|").replace(",\"", "|").replace("\",", "|");
    let rows = text.lines().skip(1).filter(|line| !line.is_empty());
    Some((open(&trace), rows.map(|line| row(line).replace(',', "|").replace('"', "")).collect()))
}

/// The answer equals the golden table, in any order.
fn check(name: &str, sql: &str) {
    let Some((session, mut expected)) = golden(name) else { return };
    let mut actual = rows(&session, sql);
    // An `X` without `dur` is no slice there, and a task without an end here.
    actual.retain(|row| !row.contains("CompleteNoDur"));
    actual.sort();
    expected.sort();
    assert_eq!(actual, expected, "{name}: {sql}");
}

#[test]
fn slices_of_the_golden_cases() {
    for name in
        ["decimal_timestamp_slices", "display_time_unit_slices", "string_ts_and_dur", "invalid_string_ts_and_dur"]
    {
        check(name, "select ts, dur, name from slice");
    }
    for name in ["json_trailing_comma", "string_ts_trailing_chars", "json_pid_tid_zero"] {
        check(name, "SELECT name, ts, dur FROM slice");
    }
    check("json_incomplete", "SELECT ts FROM slice");
    check("x_event_order", "SELECT ts, dur, name, depth FROM slice ORDER BY depth");
    for name in [
        "same_ts_duration_slice_then_zero_duration_slice_unnesting",
        "same_ts_two_duration_slice_unnesting",
        "same_ts_two_zero_duration_slice_nesting",
        "same_ts_zero_duration_slice_then_begin_end_slice_unnesting",
        "same_ts_zero_duration_slice_then_duration_slice_unnesting",
    ] {
        check(name, "SELECT name, depth FROM slice ORDER BY depth");
    }
    check("thread_time_in_thread_slice", "SELECT name, thread_ts, thread_dur FROM slice");
    check("string_tts_and_tdur", "SELECT ts, dur, name, thread_ts, thread_dur FROM slice");
}

#[test]
fn tracks_threads_and_processes_of_the_golden_cases() {
    check(
        "string_pid_tid",
        "select slice.ts, slice.dur, slice.name, process.name as process_name, thread.name as thread_name \
         from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)",
    );
    let with_threads = "SELECT s.ts, s.dur, s.name, t.name AS thread_name, t.tid, p.name AS process_name, p.pid, \
                          a.flat_key, a.key, a.string_value, a.int_value \
                        FROM slice s JOIN thread_track tt ON s.track_id = tt.id JOIN thread t USING (utid) \
                        LEFT JOIN process p ON p.upid = t.upid LEFT JOIN args a ON a.arg_set_id = s.arg_set_id";
    for name in ["json_metadata", "json_async"] {
        check(name, with_threads);
    }
    // A thread time without a thread duration is kept among the arguments; Perfetto drops it.
    check("json_extreme_vals", &format!("{with_threads} AND a.flat_key <> 'args.tts'"));
    for name in ["json_id2_global_int_id", "json_id2_local_int_id"] {
        let Some((session, expected)) = golden(name) else { return };
        let expected: Vec<_> =
            expected.iter().map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|")).collect();
        let sql = "SELECT slice.name, ts, dur FROM slice JOIN process_track ON slice.track_id = process_track.id";
        assert_eq!(rows(&session, sql), expected);
    }
    check("json_metadata_missing_or_invalid_ts", "select pid, name from process");
}

#[test]
fn counters_flows_arguments_and_states_of_the_golden_cases() {
    check(
        "counters_json_counters",
        "SELECT counter_track.name, counter.ts, cast(counter.value as decimal(20, 6)) FROM counter \
         JOIN counter_track ON counter_track.id = counter.track_id ORDER BY counter.ts",
    );
    check(
        "json_counter_args",
        "SELECT p.pid, p.name, t.name, cast(c.value as decimal(20, 6)) FROM counter c \
         JOIN process_counter_track t ON c.track_id = t.id JOIN process p USING (upid)",
    );
    for name in ["flow_events_json_v1", "flow_events_json_v2"] {
        check(
            name,
            "SELECT t1.name AS slice_out, t2.name AS slice_in FROM flow t \
             JOIN slice t1 ON t.slice_out = t1.id JOIN slice t2 ON t.slice_in = t2.id",
        );
    }
    check("args_ordered", "SELECT slice.name, args.key, args.int_value FROM slice JOIN args USING (arg_set_id)");
    check(
        "json_thread_state_sched",
        "SELECT ts, dur, cpu, thread.tid, process.pid FROM thread_state JOIN thread USING (utid) JOIN process USING (upid) \
         WHERE state = 'Running'",
    );
}

/// The statements of `docs/coming-from-perfetto.md` and their like: nothing but PerfettoSQL.
#[test]
fn common_statements_run_as_they_are() {
    let session = open(&fixture("chrome/kineto_tiny.json"));
    for (sql, expected) in [
        ("SELECT count(*) FROM slice WHERE name GLOB 'cuda*'", &["2"][..]),
        ("select name, dur from slice where name glob '*gemm*' or name not glob '*[a-zA-Z]*'", &["gemm|90123"]),
        ("SELECT count(*) FROM slice WHERE dur = -1", &["0"]),
        (
            "SELECT name, EXTRACT_ARG(arg_set_id, 'args.correlation') AS correlation FROM slice WHERE name = 'gemm'",
            &["gemm|42"],
        ),
        ("SELECT sum(EXTRACT_ARG(arg_set_id, 'args.correlation')) > 40 FROM slice WHERE cat = 'kernel'", &["true"]),
        (
            "SELECT a.name FROM slice JOIN ancestor_slice(slice.id) AS a WHERE slice.name = 'cudaLaunchKernel' ORDER BY a.depth",
            &["train.py(1): step", "train.py(2): forward", "aten::mm"],
        ),
        (
            "SELECT name FROM ancestor_slice((SELECT id FROM slice WHERE name = 'cudaLaunchKernel')) ORDER BY depth DESC LIMIT 1",
            &["aten::mm"],
        ),
        (
            "SELECT d.name FROM slice s, descendant_slice(s.id) d WHERE s.name = 'train.py(1): step' AND d.depth = 1",
            &["train.py(2): forward"],
        ),
        (
            "SELECT parent.name, child.name FROM slice AS child JOIN slice AS parent ON child.parent_id = parent.id \
             WHERE child.name = 'cudaLaunchKernel'",
            &["aten::mm|cudaLaunchKernel"],
        ),
        (
            "SELECT o.name, i.name FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in WHERE i.name = 'gemm'",
            &["cudaLaunchKernel|gemm"],
        ),
        (
            "SELECT string_value FROM args JOIN slice USING (arg_set_id) WHERE cat = 'kernel' AND flat_key = 'args.Comms Id'",
            &["18446744073709551617"],
        ),
        (
            "INCLUDE PERFETTO MODULE slices.with_context; SELECT thread_name, count(*) FROM thread_slice WHERE tid = 7 GROUP BY 1",
            &["stream 7 |2"],
        ),
        (
            "CREATE PERFETTO VIEW big AS SELECT * FROM slice WHERE dur > 29000; SELECT count(*) FROM big WHERE cat = 'kernel'",
            &["2"],
        ),
        ("SELECT (end_ts - start_ts) > 0 FROM trace_bounds", &["true"]),
    ] {
        assert_eq!(rows(&session, sql), expected, "{sql}");
    }
}

#[test]
fn unfinished_slices_last_minus_one() {
    let session = open(&fixture("chrome/phases.json"));
    assert_eq!(rows(&session, "SELECT name FROM slice WHERE dur = -1 ORDER BY name"), ["forever", "no duration"]);
    assert_eq!(rows(&session, "SELECT name, dur FROM slice WHERE dur = 0 AND name = 'tick'"), ["tick|0"]);
    assert_eq!(rows(&session, "SELECT min(ts) FROM slice"), rows(&session, "SELECT origin FROM runs"));
    let states = "SELECT state, cpu, tid FROM thread_state JOIN thread USING (utid)";
    assert_eq!(rows(&session, states), ["Running|0|2"]);
}

#[test]
fn own_names_come_first_and_views_are_listed_in_their_schema() {
    let session = open(&fixture("chrome/kineto_tiny.json"));
    let other = "WITH slice AS (SELECT 7 AS seven) SELECT * FROM slice";
    assert_eq!(rows(&session, other), ["7"]);
    assert_eq!(rows(&session, "CREATE OR REPLACE VIEW slice AS SELECT 8 AS eight; SELECT * FROM slice"), ["8"]);
    assert_eq!(rows(&session, "SELECT count(*) > 8 FROM perfetto.slice"), ["true"]);
    let listed = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'main' AND table_name = 'thread'";
    assert_eq!(rows(&session, listed), ["0"]);
    let error = try_rows(&session, "SELECT * FROM slise").unwrap_err();
    assert!(error.contains("slise"), "{error}");
}

/// Every view answers, with the columns that its documentation names.
#[test]
fn views_are_as_documented() {
    let session = open(&fixture("chrome/phases.json"));
    for view in &tq_engine::perfetto::VIEWS {
        let sql = format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'perfetto' AND table_name = '{}' ORDER BY ordinal_position",
            view.name
        );
        let documented: Vec<_> = view.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(rows(&session, &sql), documented, "{}", view.name);
        rows(&session, &format!("SELECT * FROM {}", view.name));
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let session = open(&fixture("chrome/phases.json"));
    for (sql, word) in [
        ("SELECT * FROM ancestor_slice()", "takes the id of a slice"),
        ("SELECT * FROM slice JOIN ancestor_slice(slice.id) USING (id)", "cannot take a slice relation"),
        ("SELECT glob('x')", "glob"),
        ("SELECT 5 GLOB name FROM slice", "glob"),
    ] {
        let error = try_rows(&session, sql).unwrap_err();
        assert!(error.contains(word), "{sql}: {error}");
    }
}
