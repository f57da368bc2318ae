//! ActorProf's directories: our fixtures in full, every matrix and sum computed independently.

use std::collections::BTreeMap;
use std::path::Path;

use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_tests::{ask_saved, cells, fixture, folder_of, records, rows, shared, text_of, try_open};

fn open(path: &Path) -> Session {
    let session = tq_tests::open(path);
    let unaccounted = rows(&session, "SELECT run, example FROM import_stats WHERE what = 'unaccounted'");
    assert!(unaccounted.is_empty(), "{}: {unaccounted:?}", path.display());
    session
}

/// The answer of a saved query.
fn saved(session: &Session, name: &str, given: &[(&str, &str)]) -> Vec<Vec<String>> {
    cells(&ask_saved(session, name, given), "-")
}

fn findings(session: &Session) -> String {
    let sql = "SELECT severity || ' ' || what || ' ' || times FROM (SELECT severity, what, sum(count) AS times FROM import_stats \
               WHERE what NOT IN ('records_read', 'relative_lines', 'overall_lines', 'main_lines') GROUP BY severity, what) ORDER BY 1";
    rows(session, sql).join(", ")
}

// Our fixtures.

#[test]
fn quirks_are_read_and_counted() {
    let session = open(&fixture("actorprof/quirks"));
    assert_eq!(
        rows(
            &session,
            "SELECT source, target, sum(count), sum(bytes) FROM messages WHERE kind = 'logical' GROUP BY source, target ORDER BY source, target"
        ),
        [
            "PE0|PE0|1|16",
            "PE0|PE2|2|32",
            "PE0|PE4|1|16",
            "PE0|PE5|1|24",
            "PE3|PE4|1|16",
            "PE3|PE5|1|16",
            "PE4|PE0|1|16",
            "PE4|PE1|1|16",
            "PE5|PE0|1|16"
        ]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT kind, source, target, sum(count), sum(bytes) FROM messages WHERE kind LIKE '%_send' GROUP BY kind, source, target ORDER BY kind, source, target"
        ),
        [
            "local_send|PE0|PE1|1|0",
            "local_send|PE0|PE2|2|4000",
            "local_send|PE4|PE4|1|400",
            "local_send|PE4|PE5|1|400",
            "nonblock_send|PE0|PE4|1|1600"
        ]
    );
    assert_eq!(
        rows(&session, "SELECT location, name, kind, time, args FROM events ORDER BY location"),
        [
            r#"PE0|nonblock_progress|nonblock_progress|-|{"bytes":8,"target":"PE4"}"#,
            r#"PE3|nonblock_progress|nonblock_progress|-|{"bytes":8,"target":"PE5"}"#
        ]
    );
    // A PE without a file and one with an empty file are there.
    assert_eq!(
        rows(
            &session,
            "SELECT location, parent, kind, name, process, clock FROM locations WHERE run = 'quirks' ORDER BY sort_index"
        ),
        [
            "node 0|-|node|0|-|node 0",
            "node 1|-|node|1|-|node 1",
            "node 2|-|node|2|-|node 2",
            "PE0|node 0|pe|PE0|0|node 0",
            "PE1|node 0|pe|PE1|1|node 0",
            "PE2|node 0|pe|PE2|2|node 0",
            "PE3|node 0|pe|PE3|3|node 0",
            "PE4|node 1|pe|PE4|4|node 1",
            "PE5|node 2|pe|PE5|5|node 2"
        ]
    );
    // Stamps count from the least one, exactly; a line without one has none.
    assert_eq!(
        rows(&session, "SELECT send_time FROM messages WHERE source = 'PE0' AND kind = 'logical' ORDER BY message"),
        ["0", "1000", "-", "2000", "3000"]
    );
    assert_eq!(
        rows(&session, "SELECT origin, started_at FROM runs WHERE run = 'quirks'"),
        ["1732150000000001000|2024-11-21T00:46:40.000001Z"]
    );
    assert_eq!(
        findings(&session),
        "info blank_lines 1, info crlf_lines 2, info empty_file 1, info lines_without_blanks 1, info messages_without_time 1, \
         info missing_file_for_known_pe 1, info other_lines 6, info time_steps_backwards 1, info total_differs_from_finish 1, \
         info trailing_comma_lines 1, lost torn_lines 1, lost torn_pieces 3, repaired negative_cycles 1, repaired node_conflicts 1"
    );
}

#[test]
fn papi_lines_are_handled_messages_with_counters() {
    let session = open(&fixture("actorprof/quirks"));
    assert_eq!(
        rows(
            &session,
            "SELECT m.source, m.target, m.receive_time, m.args, c.location, c.name, c.value, c.kind, c.time FROM messages m \
             JOIN counters c ON c.message = m.message WHERE m.kind = 'handled' AND m.source = 'PE4' ORDER BY c.name"
        ),
        [
            r#"PE4|PE0|500019000|{"mailbox":0,"num_sends":1}|PE0|PAPI_LST_INS|22.0|delta|500019000"#,
            r#"PE4|PE0|500019000|{"mailbox":0,"num_sends":1}|PE0|PAPI_TOT_INS|75.0|delta|500019000"#
        ]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT location, name, value FROM counters WHERE message IS NULL AND kind = 'delta' ORDER BY location, name"
        ),
        [
            "PE0|NUM_SENDS|5.0",
            "PE0|PAPI_LST_INS|130.0",
            "PE0|PAPI_TOT_INS|400.0",
            "PE4|NUM_SENDS|2.0",
            "PE4|PAPI_LST_INS|66.0",
            "PE4|PAPI_TOT_INS|210.0"
        ]
    );
    let mailboxes: Vec<String> =
        saved(&session, "actorprof-by-mailbox", &[]).iter().map(|row| row[1..].join(" ")).collect();
    assert_eq!(mailboxes, ["PE0 mailbox 0 2 1", "PE0 mailbox 1 1 0", "PE4 mailbox 0 2 0"]);
}

#[test]
fn sub_runs_of_overall_are_runs() {
    let session = open(&fixture("actorprof/quirks"));
    assert_eq!(
        rows(
            &session,
            "SELECT run, location, CAST(max(value) FILTER (WHERE name = 'T_MAIN') AS BIGINT), CAST(max(value) FILTER (WHERE name = 'T_COMM') AS BIGINT), \
             CAST(max(value) FILTER (WHERE name = 'T_PROC') AS BIGINT), CAST(max(value) FILTER (WHERE name = 'T_TOTAL') AS BIGINT), max(unit) \
             FROM counters WHERE kind = 'total' AND name IN ('T_MAIN', 'T_COMM', 'T_PROC', 'T_TOTAL') GROUP BY run, location ORDER BY run, location"
        ),
        [
            "quirks/Run 1|PE0|200|850|150|1200|cycles",
            "quirks/Run 1|PE1|100|700|200|1000|cycles",
            "quirks/Run 2|PE0|210|-50|300|460|cycles",
            "quirks/Run 2|PE1|110|690|210|1010|cycles",
            "quirks/overall|PE2|0|0|0|0|cycles",
            "quirks/overall #2|PE2|5|90|5|100|cycles"
        ]
    );
    let relative = saved(&session, "actorprof-cycles-relative", &[]);
    let comm = relative.iter().find(|row| row[0] == "quirks/Run 2" && row[1] == "PE0" && row[2] == "T_COMM").unwrap();
    assert_eq!(comm[5], "-0.108696");
    let nothing = relative.iter().find(|row| row[0] == "quirks/overall").unwrap();
    assert_eq!(nothing[5], "-");
}

#[test]
fn any_subset_of_files_is_a_run() {
    let send = "0, 0, 0, 1, 16, 100.5\n0, 0, 0, 1, 16, 100.25\n";
    let physical = "hello\nlocal_send, 40, 0, 3\n";
    let overall = "x [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 1, 2, 3, 6\n";
    for (files, expected) in [
        (vec![("PE0_send.csv", send)], "2|2"),
        (vec![("physical.txt", physical)], "1|4"),
        (vec![("Overall.txt", overall)], "0|1"),
        (vec![("PE0_my_phase_send.csv", send), ("PE5_my_phase_send.csv", "")], "2|6"),
        (
            vec![("PE0_send.csv", send), ("physical.txt", physical), ("overall.txt", overall), ("notes.md", "hello")],
            "3|4",
        ),
    ] {
        let folder = folder_of(&files);
        let session = open(folder.path());
        let sql = "SELECT (SELECT count(*) FROM messages) AS messages, count(*) FROM locations WHERE kind = 'pe'";
        assert_eq!(rows(&session, sql), [expected], "{files:?}");
        let run = folder.path().file_name().unwrap().to_string_lossy().trim_start_matches('.').to_owned();
        assert!(rows(&session, "SELECT run FROM runs")[0].contains(&run), "{files:?}");
    }
    let folder = folder_of(&[("PE3_my_phase_send.csv", send)]);
    let alone = open(&folder.path().join("PE3_my_phase_send.csv"));
    assert_eq!(rows(&alone, "SELECT DISTINCT source, tag FROM messages"), ["PE0|my_phase"]);
    // The lines of a stranger's CSV are not taken for sends.
    std::fs::write(folder.path().join("numbers.csv"), send).unwrap();
    assert!(try_open(&folder.path().join("numbers.csv"), &[]).is_err());
}

#[test]
fn files_of_two_runs_are_noticed() {
    let lines = |pe: usize, second: usize| {
        (0..50).map(|line| format!("0, {pe}, 0, 1, 16, {second}.{line:06}\n")).collect::<String>()
    };
    let mixed = folder_of(&[
        ("PE0_send.csv", &lines(0, 5000)),
        ("PE1_send.csv", &lines(1, 5000)),
        ("PE2_send.csv", &lines(2, 100)),
    ]);
    let session = open(mixed.path());
    assert!(findings(&session).contains("repaired mixed_runs 1"), "{}", findings(&session));
    assert_eq!(
        rows(&session, "SELECT example FROM import_stats WHERE what = 'mixed_runs'"),
        ["PE2_send.csv ends 4900.000 s before PE0_send.csv begins: one may be left over from another run"]
    );
    let one = folder_of(&[("PE0_send.csv", &lines(0, 5000)), ("PE1_send.csv", &lines(1, 5000))]);
    assert_eq!(findings(&open(one.path())), "");
    // Phases of one run follow each other.
    let phases = folder_of(&[
        ("PE0_setup_send.csv", &lines(0, 5000)),
        ("PE1_setup_send.csv", &lines(1, 5000)),
        ("PE0_main_send.csv", &lines(0, 6000)),
        ("PE1_main_send.csv", &lines(1, 6000)),
    ]);
    assert_eq!(findings(&open(phases.path())), "");
    let other = folder_of(&[("PE0_send.csv", &lines(1, 5000)), ("PE1_send.csv", &lines(1, 5000))]);
    assert_eq!(findings(&open(other.path())), "repaired other_pe_than_the_files 50");
}

// Files that were cut off, and other damage of whole directories.

/// Compressed, and cut to so many bytes.
fn cut_zst(text: &str, bytes: usize) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 0).unwrap()[..bytes].to_vec()
}

/// Lines that compress badly, so that a cut file still holds blocks.
fn many_sends(pe: usize) -> String {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 44) % 1_000_000
    };
    (0..20_000).map(|_| format!("0, {pe}, 0, 1, 16, 100.{:06}\n", random())).collect()
}

#[test]
fn a_cut_file_takes_nothing_but_its_own_lines() {
    let folder = folder_of(&[("PE0_send.csv", "0, 0, 0, 1, 16, 100.5\n")]);
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let half = zstd::encode_all(many_sends(1).as_bytes(), 0).unwrap();
    // Nothing is left of the one, some of the other.
    write("PE1_send.csv.zst", &cut_zst(&many_sends(1), 10));
    write("PE2_PAPI.csv.zst", &cut_zst("0, 0, 0, 2, 16, 0, 1, 75, 22, 1.5\n", 6));
    let session = open(folder.path());
    assert_eq!(findings(&session), "info missing_file_for_known_pe 1, lost truncated 2");
    assert_eq!(rows(&session, "SELECT count(*) FROM messages"), ["1"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM locations WHERE kind = 'pe'"), ["3"]);
    std::fs::remove_file(folder.path().join("PE2_PAPI.csv.zst")).unwrap();
    write("PE1_send.csv.zst", &half[..half.len() / 2]);
    let session = open(folder.path());
    let kept: i64 = rows(&session, "SELECT count(*) FROM messages WHERE source = 'PE1'")[0].parse().unwrap();
    assert!((1_000..19_000).contains(&kept), "{kept}");
    assert!(findings(&session).contains("lost truncated 1"), "{}", findings(&session));
    // The same files alone: what holds nothing is an error.
    write("PE1_send.csv.zst", &half[..10]);
    let alone = |path: &Path| try_open(path, &[]).err().unwrap().to_string();
    assert!(alone(&folder.path().join("PE1_send.csv.zst")).contains("cannot read trace"));
    std::fs::remove_file(folder.path().join("PE0_send.csv")).unwrap();
    assert!(alone(folder.path()).contains("cannot read trace"));
}

#[test]
fn what_stands_before_the_cut_of_an_overall_is_kept() {
    let line =
        |pe: usize| format!("tc [PE{pe}] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), {pe}, 2, 3, {}\n", pe + 5);
    let text: String = (0..30).map(line).collect::<String>() + &many_sends(0).replace("0, 0, 0", "output of others ");
    let whole = zstd::encode_all(text.as_bytes(), 0).unwrap();
    let folder = folder_of(&[("PE0_send.csv", "0, 0, 0, 1, 16, 100.5\n")]);
    std::fs::write(folder.path().join("overall.txt.zst"), &whole[..whole.len() * 9 / 10]).unwrap();
    let session = open(folder.path());
    assert_eq!(rows(&session, "SELECT count(DISTINCT location) FROM counters WHERE name = 'T_TOTAL'"), ["30"]);
    assert!(findings(&session).contains("lost truncated 1"), "{}", findings(&session));
}

#[test]
fn a_cut_file_of_another_format_is_counted() {
    let sends = std::fs::read(fixture("actorprof/quirks/PE0_send.csv")).unwrap();
    let folder = folder_of(&[("PE0_send.csv", sends), ("trace.json.zst", cut_zst("{\"traceEvents\": []}", 6))]);
    let session = open(folder.path());
    assert_eq!(
        rows(
            &session,
            "SELECT severity, count, example LIKE '%trace.json.zst: %' FROM import_stats WHERE what = 'truncated'"
        ),
        ["lost|1|true"]
    );
}

#[test]
fn compressed_nothing_is_an_empty_file() {
    let folder = folder_of(&[("PE0_send.csv", "0, 0, 0, 1, 16, 100.5\n"), ("PE2_send.csv", "")]);
    std::fs::write(folder.path().join("PE1_send.csv.zst"), zstd::encode_all(&b""[..], 0).unwrap()).unwrap();
    assert_eq!(findings(&open(folder.path())), "info empty_file 2");
}

#[test]
fn an_empty_label_is_recognised() {
    let line = |pe: u32| format!(" [PE{pe}] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 200, 850, 150, 1200\n");
    let folder = folder_of(&[("output.txt", &(line(0) + &line(1)))]);
    let session = open(&folder.path().join("output.txt"));
    assert_eq!(rows(&session, "SELECT count(*) FROM counters WHERE name = 'T_TOTAL'"), ["2"]);
}

#[test]
fn a_torn_overall_is_counted() {
    let text = "tc [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 200, 850, 150, 1200\n\
                tc [PE1] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 200, 850, 150, 120";
    let session = open(folder_of(&[("overall.txt", text)]).path());
    assert_eq!(rows(&session, "SELECT location, value FROM counters WHERE name = 'T_TOTAL'"), ["PE0|1200.0"]);
    assert_eq!(findings(&session), "lost torn_lines 1");
}

#[test]
fn files_of_many_runs_and_phases_are_noticed() {
    let lines = |pe: usize, second: usize| {
        (0..50).map(|line| format!("0, {pe}, 0, 1, 16, {second}.{line:06}\n")).collect::<String>()
    };
    let three = folder_of(&[
        ("PE0_send.csv", &lines(0, 30_000)),
        ("PE1_send.csv", &lines(1, 20_000)),
        ("PE2_send.csv", &lines(2, 10_000)),
    ]);
    assert_eq!(findings(&open(three.path())), "repaired mixed_runs 2");
    // PEs that begin one after the other in steps are of one run.
    let steps = folder_of(&[
        ("PE0_send.csv", "0, 0, 0, 1, 16, 5.0\n"),
        ("PE1_send.csv", "0, 1, 0, 1, 16, 5.8\n"),
        ("PE2_send.csv", "0, 2, 0, 1, 16, 6.6\n"),
    ]);
    assert_eq!(findings(&open(steps.path())), "");
    for other in ["PE1_main_send.csv", "PE1_send.csv"] {
        let phases = folder_of(&[("PE0_setup_send.csv", &lines(0, 10_000)), (other, &lines(1, 110_000))]);
        let session = open(phases.path());
        assert_eq!(findings(&session), "info phases_far_apart 1", "{other}");
        let example = rows(&session, "SELECT example FROM import_stats WHERE what = 'phases_far_apart'");
        assert!(example[0].starts_with("phase `setup` ends 100000 s before "), "{example:?}");
    }
}

#[test]
fn shares_stand_for_cycles_where_nothing_else_was_printed() {
    let shares = |pe: u32| {
        format!("tc [PE{pe}] TCOMM_PROFILING (T_MAIN/T_TOTAL, T_COMM/T_TOTAL, T_PROC/T_TOTAL), 0.5, 0.25, 0.25\n")
    };
    let absolute = "tc [PE0] TCOMM_PROFILING (T_MAIN, T_COMM, T_PROC, T_TOTAL), 200, 850, 150, 1200\n";
    let folder = folder_of(&[("overall.txt", &format!("{absolute}{}{}", shares(0), shares(1)))]);
    let rows = saved(&open(folder.path()), "actorprof-cycles-relative", &[]);
    let rows: Vec<String> = rows.iter().map(|row| row[1..].join(" ")).collect();
    assert_eq!(
        rows,
        [
            "PE0 T_COMM 850.0 1200.0 0.708333",
            "PE0 T_MAIN 200.0 1200.0 0.166667",
            "PE0 T_PROC 150.0 1200.0 0.125",
            "PE1 T_COMM - - 0.25",
            "PE1 T_MAIN - - 0.5",
            "PE1 T_PROC - - 0.25",
        ]
    );
}

#[test]
fn matrices_count_with_and_without_self_sends() {
    let session = open(&fixture("actorprof/triangle_range"));
    let total = |given: &[(&str, &str)]| -> i64 {
        saved(&session, "actorprof-logical-matrix", given).iter().map(|row| row[3].parse::<i64>().unwrap()).sum()
    };
    let own: i64 =
        rows(&session, "SELECT count(*) FROM messages WHERE kind = 'logical' AND source = target")[0].parse().unwrap();
    assert_eq!((total(&[]), total(&[("self_sends", "false")])), (1663, 1663 - own));
    assert_eq!(total(&[("phase", "none")]), 0);
    assert_eq!(saved(&session, "actorprof-logical-matrix", &[]).len(), 256);
    assert!(saved(&session, "actorprof-soundness", &[]).is_empty());
}

// Independent answers.

fn csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    records(&text_of(path).unwrap())
}

/// Compares a matrix with totals; the number of its cells.
fn compare_matrix(path: &Path, ours: &[Vec<String>]) -> usize {
    let of: BTreeMap<(&str, &str), &Vec<String>> =
        ours.iter().map(|row| ((row[1].trim_start_matches("PE"), row[2].trim_start_matches("PE")), row)).collect();
    let mut cells = 0;
    for line in csv(path) {
        let source = line["src_pe"].as_str();
        for (column, value) in &line {
            let Some(target) = column.strip_prefix("dst_") else { continue };
            let is_total = source == "total_recv";
            let row = of[&(if is_total { "0" } else { source }, target)];
            assert_eq!(&row[if is_total { 6 } else { 3 }], value, "{} {source} {column}", path.display());
            if !is_total {
                assert_eq!(row[5], line["total_send"], "{} {source}", path.display());
            }
            cells += 1;
        }
    }
    cells
}

#[test]
fn every_matrix_and_sum_agrees() {
    let Some(folder) = shared("expected/actorprof") else { return };
    let (mut matrices, mut cells) = (0, 0);
    let summary = csv(&folder.join("summary.csv"));
    let quartiles = csv(&folder.join("quartiles.csv"));
    for entry in std::fs::read_dir(&folder).unwrap() {
        let expected = entry.unwrap().path();
        let name = expected.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("tc_") {
            continue;
        }
        let session = open(&shared(&format!("traces/actorprof/{name}")).unwrap());
        for entry in std::fs::read_dir(&expected).unwrap() {
            let path = entry.unwrap().path();
            let figure = path.file_stem().unwrap().to_string_lossy().into_owned();
            let matrix = match figure.as_str() {
                "logical_matrix" => saved(&session, "actorprof-logical-matrix", &[]),
                "physical_local_send_matrix" => saved(&session, "actorprof-physical-matrix", &[("type", "local_send")]),
                "physical_nonblock_send_matrix" => {
                    saved(&session, "actorprof-physical-matrix", &[("type", "nonblock_send")])
                }
                "physical_all_sends_matrix" => saved(&session, "actorprof-physical-matrix", &[("type", "")]),
                other => match other.strip_prefix("logical_matrix_") {
                    Some(phase) => saved(&session, "actorprof-logical-matrix", &[("phase", phase)]),
                    None => continue,
                },
            };
            cells += compare_matrix(&path, &matrix);
            matrices += 1;
        }
        compare_by_source(&expected, &session);
        compare_papi(&expected, &session);
        compare_cycles(&expected, &session);
        compare_summary(&summary, &name, &session);
        compare_quartiles(&quartiles, &name, &session);
        if rows(&session, "SELECT count(*) FROM messages WHERE kind = 'handled'") != ["0"] {
            assert!(saved(&session, "actorprof-soundness", &[]).is_empty(), "{name}");
        }
    }
    assert!(matrices > 25 && cells > 10_000, "{matrices} matrices, {cells} cells");
}

fn compare_by_source(expected: &Path, session: &Session) {
    let sql = "SELECT kind || ' ' || source, count(*), sum(bytes) FROM messages WHERE kind IN ('local_send', 'nonblock_send') GROUP BY kind, source \
               UNION ALL SELECT 'nonblock_progress ' || location, count(*), sum(CAST(args->>'bytes' AS BIGINT)) FROM events GROUP BY location";
    let mut ours = rows(session, sql);
    ours.sort();
    let mut expected: Vec<String> = csv(&expected.join("physical_by_src.csv"))
        .iter()
        .map(|line| format!("{} PE{}|{}|{}", line["type"], line["src_pe"], line["buffers"], line["bytes"]))
        .collect();
    expected.sort();
    assert_eq!(ours, expected);
}

fn compare_papi(expected: &Path, session: &Session) {
    let path = expected.join("papi_by_pe.csv");
    if !path.exists() {
        return;
    }
    let sums: BTreeMap<String, f64> = saved(session, "actorprof-papi", &[])
        .iter()
        .map(|row| (format!("{} {} {}", row[1], row[2], row[3]), row[4].parse().unwrap()))
        .collect();
    for line in csv(&path) {
        let of =
            |counter: &str, part: &str| sums.get(&format!("PE{} {counter} {part}", line["pe"])).copied().unwrap_or(0.0);
        for counter in ["PAPI_TOT_INS", "PAPI_LST_INS"] {
            let (main, handlers) = (of(counter, "main"), of(counter, "handlers"));
            let expected = |part: &str| line[&format!("{counter}_{part}")].parse::<f64>().unwrap();
            assert_eq!(
                (main, handlers, main + handlers),
                (expected("main"), expected("proc"), expected("total")),
                "{line:?}"
            );
        }
        let sends = format!(
            "SELECT CAST(sum(value) AS BIGINT) FROM counters WHERE name = 'NUM_SENDS' AND location = 'PE{}'",
            line["pe"]
        );
        assert_eq!(rows(session, &sends), [line["main_num_sends"].clone()]);
        let handled = format!("SELECT count(*) FROM messages WHERE kind = 'handled' AND target = 'PE{}'", line["pe"]);
        assert_eq!(rows(session, &handled), [line["handled_messages"].clone()]);
    }
}

fn compare_cycles(expected: &Path, session: &Session) {
    let ours: BTreeMap<String, Vec<String>> = saved(session, "actorprof-cycles-relative", &[])
        .into_iter()
        .map(|row| (format!("{} {}", row[1], row[2]), row))
        .collect();
    for line in csv(&expected.join("overall.csv")) {
        for (part, column, ratio) in
            [("T_MAIN", "t_main", "rel_main"), ("T_COMM", "t_comm", "rel_comm"), ("T_PROC", "t_proc", "rel_proc")]
        {
            let row = &ours[&format!("PE{} {part}", line["pe"])];
            let number = |text: &str| text.parse::<f64>().unwrap();
            assert_eq!(
                (number(&row[3]), number(&row[4])),
                (number(&line[column]), number(&line["t_total"])),
                "{line:?}"
            );
            assert!((number(&row[5]) - number(&line[ratio])).abs() <= 1e-6, "{line:?}");
        }
    }
}

fn compare_summary(summary: &[BTreeMap<String, String>], name: &str, session: &Session) {
    let line = summary.iter().find(|line| line["trace"] == name).unwrap();
    let ours = saved(session, "actorprof-summary", &[]).remove(0);
    let columns = [
        "pes",
        "messages",
        "bytes",
        "self_sends",
        "max_send_pe",
        "max_send",
        "max_recv_pe",
        "max_recv",
        "messages_above_diagonal",
        "pes_without_sends",
    ];
    for (place, column) in (1..).zip(columns) {
        assert_eq!(ours[place], line[column], "{name} {column}");
    }
}

fn compare_quartiles(quartiles: &[BTreeMap<String, String>], name: &str, session: &Session) {
    let ours = saved(session, "actorprof-quartiles", &[]);
    for line in quartiles.iter().filter(|line| line["trace"] == name) {
        let kind = line["level"].trim_start_matches("physical_");
        let Some(row) = ours.iter().find(|row| row[1] == kind && row[2] == line["direction"]) else {
            assert!(!["logical", "local_send", "nonblock_send"].contains(&kind), "{line:?}");
            continue;
        };
        for (place, column) in (3..).zip(["min", "q1", "median", "q3", "max", "mean", "sum", "max_over_mean"]) {
            let (our, expected): (f64, f64) = (row[place].parse().unwrap(), line[column].parse().unwrap());
            assert!((our - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{name} {line:?} {column}: {our}");
        }
    }
}

#[test]
fn recorded_outputs_agree() {
    let (Some(traces), Some(expected)) =
        (shared("traces/actorprof/recorded_overall"), shared("expected/actorprof/recorded_overall"))
    else {
        return;
    };
    let session = open(&traces);
    assert_eq!(rows(&session, "SELECT run FROM runs ORDER BY run"), ["histo_2pe", "ig_2pe", "triangle_8pe_excerpt"]);
    for run in ["histo_2pe", "ig_2pe", "triangle_8pe_excerpt"] {
        for line in csv(&expected.join(format!("{run}.csv"))) {
            for (name, column) in
                [("T_MAIN", "t_main"), ("T_COMM", "t_comm"), ("T_PROC", "t_proc"), ("T_TOTAL", "t_total")]
            {
                let sql = format!(
                    "SELECT CAST(value AS BIGINT) FROM counters WHERE run = '{run}' AND location = 'PE{}' AND name = '{name}'",
                    line["pe"]
                );
                assert_eq!(rows(&session, &sql), [line[column].clone()], "{run} {line:?}");
            }
        }
    }
}

#[test]
fn many_messages_have_their_identities_when_asked() {
    let lines: usize = 1 << 20;
    let text: String = (0..lines).map(|line| format!("0, 0, 0, {}, 16, 5.{line:07}\n", line % 3)).collect();
    let folder = folder_of(&[("PE0_send.csv", text.as_str()), ("PE1_send.csv", "0, 1, 0, 0, 8, 5.5\n")]);
    let session = open(folder.path());
    let identities = "SELECT count(DISTINCT message), min(message), max(message), sum(bytes) FROM messages";
    assert_eq!(rows(&session, identities), [format!("{}|0|{lines}|{}", lines + 1, 16 * lines + 8)]);
    assert_eq!(rows(&session, "SELECT message FROM messages WHERE source = 'PE1'"), [lines.to_string()]);
    assert_eq!(rows(&session, "SELECT message, target FROM messages WHERE message = 700001"), ["700001|PE2"]);
    let matrix: i64 =
        saved(&session, "actorprof-logical-matrix", &[]).iter().map(|row| row[3].parse::<i64>().unwrap()).sum();
    assert_eq!(matrix, lines as i64 + 1);
    // A time slice keeps identities, and those of a second run begin at its own base.
    let mut options = OpenOptions::new(1 << 30, 2);
    for name in ["a", "b"] {
        options.traces.push(TraceSpec { name: Some(name.to_owned()), path: folder.path().to_owned() });
    }
    options.to = Some("100ms".parse().unwrap());
    let slice = Session::open(&options).unwrap();
    let last = 999_999i64;
    assert_eq!(
        rows(&slice, "SELECT run, max(message) FROM messages GROUP BY run ORDER BY run"),
        [format!("a|{last}"), format!("b|{}", (1i64 << 40) + last)]
    );
}
