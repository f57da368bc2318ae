//! Scalability studies: our fixtures in full, every answer of PaScal Viewer and of independent computations, damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_tests::{ask, ask_saved, fixture, folder_of, lines, records, rows, shared, text_of};

fn open(path: &Path) -> Session {
    let session = tq_tests::open(path);
    let unaccounted = rows(&session, "SELECT run, example FROM import_stats WHERE what = 'unaccounted'");
    assert!(unaccounted.is_empty(), "{}: {unaccounted:?}", path.display());
    session
}

/// A study of this text, in a file of that name.
fn open_text(name: &str, text: &str) -> Session {
    open(&folder_of(&[(name, text)]).path().join(name))
}

/// The answer of a saved query.
fn saved(session: &Session, name: &str, given: &[(&str, &str)]) -> Vec<String> {
    lines(&ask_saved(session, name, given))
}

fn findings(session: &Session) -> String {
    let sql = "SELECT severity || ' ' || what || ' ' || times FROM (SELECT severity, what, sum(count) AS times FROM import_stats \
               WHERE what <> 'records_read' GROUP BY severity, what) ORDER BY 1";
    rows(session, sql).join(", ")
}

// Our fixtures.

#[test]
fn executions_are_runs_and_regions_are_tasks() {
    let session = open(&fixture("pascal/regions.json"));
    assert_eq!(
        rows(&session, "SELECT count(*), min(run), max(time_unit), max(program) FROM runs"),
        ["16|regions/100 p=1 r=0|s|solver.c"]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT run, argument, problem_size, size_order, cores, repetition, study, tasks, locations FROM runs WHERE argument = '200' AND cores = 4"
        ),
        ["regions/200 p=4 r=0|200|200.0|1|4|0|regions|5|1"]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT region, parent_region, time, run, study FROM executions WHERE argument = '100' AND cores = 2 ORDER BY region"
        ),
        [
            "|-|654000000|regions/100 p=2 r=0|regions",
            "output.c: 15-18||20000000|regions/100 p=2 r=0|regions",
            "solver.c: 10-40||614000000|regions/100 p=2 r=0|regions",
            "solver.c: 12-20|solver.c: 10-40|100000000|regions/100 p=2 r=0|regions",
            "solver.c: 22-38|solver.c: 10-40|504000000|regions/100 p=2 r=0|regions",
        ]
    );
    assert_eq!(
        rows(&session, "SELECT name, kind, args FROM tasks WHERE name = 'output.c: 15-18' LIMIT 1"),
        [r#"output.c: 15-18|region|{"file":"output.c","first_line":15,"last_line":18}"#]
    );
    assert_eq!(findings(&session), "");
}

#[test]
fn the_region_that_drags_the_program_down_is_named() {
    let session = open(&fixture("pascal/regions.json"));
    let answer = saved(&session, "pascal-weakest-region", &[]);
    let regions: Vec<&str> = answer.iter().map(|row| row.split('|').nth(1).unwrap()).collect();
    assert_eq!(regions, ["solver.c: 10-40", "solver.c: 12-20", "output.c: 15-18", "solver.c: 22-38"]);
    assert!(answer[1].starts_with("regions|solver.c: 12-20|solver.c: 10-40|800|8|"), "{}", answer[1]);
    // By hand: T1 = 64.992, T8 = 9.006, of which 0.8 s are the serial region, that could be 0.1 s.
    let cells: Vec<f64> = answer[1].split('|').skip(5).map(|cell| cell.parse().unwrap()).collect();
    let (t1, t8) = (64.0 + 0.002 + 0.8 + 0.01 + 0.16 + 0.02, 8.0 + 0.016 + 0.8 + 0.01 + 0.16 + 0.02);
    let gain = t1 / (8.0 * (t8 - 0.7)) - t1 / (8.0 * t8);
    assert!((cells[0] - t1 / (8.0 * t8)).abs() < 1e-6 && (cells[2] - gain).abs() < 1e-6, "{cells:?} {gain}");
}

#[test]
fn every_shape_is_read() {
    let shapes = [
        ("pascal/analyzer_shape_regions.json", 18, 90, "region_occurrences"),
        ("pascal/sperf_whole.json", 18, 54, "missing_configuration"),
        ("pascal/sperf_whole.xml", 18, 18, "missing_configuration"),
        ("pascal/csv/sperf_whole.csv", 18, 54, "missing_configuration"),
        ("pascal/theoretical_table1.json", 169, 169, "missing_configuration"),
    ];
    for (name, runs, tasks, absent) in shapes {
        let session = open(&fixture(name));
        assert_eq!(
            rows(&session, "SELECT count(*), (SELECT count(*) FROM tasks) AS tasks FROM runs"),
            [format!("{runs}|{tasks}")],
            "{name}"
        );
        assert!(!findings(&session).contains(absent), "{name}: {}", findings(&session));
    }
}

#[test]
fn sperf_is_held_together_by_names() {
    let folder = open(&fixture("pascal/csv"));
    assert_eq!(rows(&folder, "SELECT count(*), count(DISTINCT study) FROM runs"), ["18|1"]);
    assert_eq!(
        saved(&folder, "pascal-given-efficiency", &[])[..3],
        [
            "sperf_whole||1|1|3|1.0|sperf_whole: whole program",
            "sperf_whole||1|2|3|0.49979|sperf_whole: whole program",
            "sperf_whole||2|1|3|1.0|sperf_whole: whole program"
        ]
    );
    assert_eq!(rows(&folder, "SELECT count(*) FROM executions WHERE time IS NOT NULL"), ["0"]);
    let alone = open(&fixture("pascal/sperf_whole_parallel_region_2.json"));
    assert_eq!(rows(&alone, "SELECT DISTINCT region, parent_region FROM executions"), ["prog.cpp: 12-14|-"]);
}

#[test]
fn dotted_ids_are_a_hierarchy_and_sizes_are_put_in_order() {
    let session = open(&fixture("pascal/analyzer_shape_regions.json"));
    assert_eq!(
        rows(&session, "SELECT DISTINCT region, parent_region FROM executions ORDER BY 1"),
        ["|-", "1|", "1.1|1", "1.1.1|1.1", "1.2|1"]
    );
    assert_eq!(
        rows(&session, "SELECT DISTINCT argument, size_order FROM runs ORDER BY 2"),
        ["1000000|0", "2000000|1", "4000000|2"]
    );
    // Start and finish are those of the file: regions lie within their parents.
    let outside =
        "SELECT count(*) FROM tasks c JOIN tasks p ON p.task = c.parent WHERE c.start < p.start OR c.finish > p.finish";
    assert_eq!(rows(&session, outside), ["0"]);
    assert!(findings(&session).starts_with("info entries_merged 9"), "{}", findings(&session));
}

#[test]
fn two_studies_of_a_session_are_not_mixed() {
    let mut open = OpenOptions::new(1 << 30, 1);
    for (name, file) in [("a", "repetitions_3"), ("b", "repetitions_3"), ("c", "edge_unequal_ratios")] {
        let path = fixture(&format!("pascal/{file}.json"));
        open.traces.push(TraceSpec { name: Some(name.to_owned()), path });
    }
    let session = Session::open(&open).unwrap();
    let sql = "SELECT run, count(*), round(sum(efficiency), 6) FROM efficiency_diffs() GROUP BY run ORDER BY run";
    let answer = rows(&session, sql);
    assert_eq!(answer.len(), 3);
    assert_eq!(answer[0].strip_prefix('a'), answer[1].strip_prefix('b'));
    // A filter on the study goes into the executions and changes nothing.
    let filtered = rows(&session, "SELECT round(sum(efficiency), 6) FROM efficiency_diffs() WHERE run = 'c'");
    assert!(answer[2].ends_with(&filtered[0]));
}

#[test]
fn verdicts_are_said_in_words() {
    let session = open(&fixture("pascal/theoretical_table1.json"));
    let answer = saved(&session, "pascal-verdict", &[("method", "median_of_ratios")]);
    let words: Vec<&str> = answer.iter().map(|row| row.rsplit('|').next().unwrap()).collect();
    assert_eq!(
        words,
        [
            "Efficiency falls by no more than 0.005 in any step.",
            "Efficiency holds in all steps from size 5120 on; it falls first at size 10 on 4 cores.",
            "Efficiency falls by no more than 0.005 in any step."
        ]
    );
    assert_eq!(saved(&session, "pascal-contradictions", &[]).len(), 143 - 79);
    let one = open_text(
        "one.json",
        r#"[{"region":"0, 0","filename":"a","executions":[[{"argument":"1","runs":[{"threads":1,"time":1}]}]]}]"#,
    );
    let verdicts: Vec<String> =
        saved(&one, "pascal-verdict", &[]).iter().map(|row| row.split('|').nth(3).unwrap().to_owned()).collect();
    assert_eq!(verdicts, ["unknown"; 3]);
}

#[test]
fn what_the_viewer_crashes_on_is_counted() {
    let ragged = open(&fixture("pascal/invalid_ragged_missing_configuration.json"));
    assert_eq!(findings(&ragged), "info missing_configuration 1");
    let holes = "SELECT argument, cores, time, diff_size, diff_cores FROM efficiency_diffs() WHERE diff_size IS NULL AND size_order > 0";
    assert_eq!(rows(&ragged, holes), ["2|4|-|-|-", "4|4|12000000000|-|-0.11904761904761896"]);
    let run = |threads: &str, time: &str| {
        format!(
            r#"[{{"region":"0, 0","filename":"a.c","executions":[[{{"argument":"1","runs":[{{"threads":1,"time":10}},{{"threads":{threads},"time":{time}}}]}}]]}}]"#
        )
    };
    for (threads, time, expected) in [
        ("2", "0", "lost bad_time 1"),
        ("2", "-1", "lost bad_time 1"),
        ("2", "NaN", "lost bad_time 1"),
        ("2", "1e400", "lost bad_time 1"),
        ("2", "null", "lost bad_time 1"),
        ("2", "\"fast\"", "lost bad_time 1"),
        ("0", "5", "lost bad_cores 1"),
        ("\"x\"", "5", "lost bad_cores 1"),
        ("\"2\"", "\"5.5\"", ""),
        ("1", "11", "repaired repeated_configuration 1"),
    ] {
        assert_eq!(findings(&open_text("study.json", &run(threads, time))), expected, "{threads} {time}");
    }
    let empty = open_text("empty.json", r#"[{"region":"0, 0","filename":"a.c","executions":[]}]"#);
    assert_eq!(findings(&empty), "lost no_executions 1");
    assert_eq!(rows(&empty, "SELECT count(*) FROM efficiency_diffs()"), ["0"]);
    let flat =
        r#"[{"region":"0-0","filename":"a.c","executions":[{"argument":"1","runs":[{"threads":1,"time":10}]}]}]"#;
    assert_eq!(findings(&open_text("flat.json", flat)), "repaired region_lines 1");
}

#[test]
fn short_times_are_read_in_picoseconds() {
    let text = r#"[{"region":"0, 0","filename":"a.c","executions":[[{"argument":"1","runs":[{"threads":1,"time":5.00679e-06},{"threads":2,"time":2.503395e-06}]}]]}]"#;
    let session = open_text("short.json", text);
    assert_eq!(rows(&session, "SELECT time FROM executions ORDER BY time"), ["2503395", "5006790"]);
    assert_eq!(rows(&session, "SELECT efficiency FROM efficiency_diffs() WHERE cores = 2"), ["1.0"]);
    // Times beyond what picoseconds count stay in nanoseconds.
    let long = text.replace("5.00679e-06", "104857600.5");
    assert_eq!(rows(&open_text("long.json", &long), "SELECT max(time) FROM executions"), ["104857600500000000"]);
}

#[test]
fn documents_one_after_the_other_are_repetitions() {
    let one = std::fs::read_to_string(fixture("pascal/sperf_whole.json")).unwrap();
    let twice = open_text("r.json", &format!("{one}\n{one}"));
    assert_eq!(rows(&twice, "SELECT count(*), max(repetition) FROM runs"), ["36|5"]);
    assert_eq!(findings(&twice), "info several_documents 1");
    let torn = open_text("r.json", &format!("{one}\n{}", &one[..one.len() / 2]));
    assert_eq!(rows(&torn, "SELECT count(*) FROM runs"), ["18"]);
    assert_eq!(findings(&torn), "lost truncated 1");
    let xml = std::fs::read_to_string(fixture("pascal/sperf_whole.xml")).unwrap();
    assert_eq!(rows(&open_text("r.xml", &format!("{xml}{xml}")), "SELECT count(*) FROM runs"), ["36"]);
}

#[test]
fn keys_of_the_analyzer_are_read_as_described() {
    let text = r#"{"config":{"pkg":"p","command":"x -i b,a","data_descriptor":{"keys":["frequency","cores","input","repetitions"],
        "values":["total_time"],"extras":{"sensors":{"values":["time","info"]},"rapl":{"values":["region_energy"]}}},"arguments":"['a', 'b']"},
        "data":{"1300;1;1;1":{"total_time":8,"sensors":{"ipmi":[[0.5,215],[1,"x"]]},"rapl":{"1":-3}},"1300;2;1;1":{"total_time":5},
        "2300;1;2;1":{"total_time":4},"2300;2;2;1":{"total_time":0},"2300;2":{}}}"#;
    let session = open_text("a.json", text);
    assert_eq!(
        rows(&session, "SELECT run, argument, size_order, study, args->>'frequency' FROM runs ORDER BY run_number"),
        [
            "a/a p=1 f=1300 r=0|a|1|a/f=1300|1300",
            "a/a p=2 f=1300 r=0|a|1|a/f=1300|1300",
            "a/b p=1 f=2300 r=0|b|0|a/f=2300|2300",
        ]
    );
    assert_eq!(
        rows(&session, "SELECT name, kind, time, value, unit FROM counters ORDER BY name"),
        ["ipmi|level|500000000|215.0|W", "rapl 1|total|-|-3.0|J"]
    );
    let expected = "info suspicious_value 1, lost bad_key 1, lost bad_run 1, lost bad_time 1";
    assert_eq!(findings(&session), expected);
    // Neither 0 nor the number of arguments occurs: 0 is a guess.
    let guessed = text.replace("2300;1;2;1", "2300;1;9;1").replace("2300;2;2;1", "2300;2;9;1");
    assert!(
        findings(&open_text("a.json", &guessed)).contains("repaired input_base_guessed 1, repaired unknown_input 2")
    );
}

// The original tools.

fn csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    records(&text_of(path).unwrap())
}

/// A figure by region, argument and cores.
type Figures = BTreeMap<(String, String, String), f64>;

/// Column of the figures by region name, argument and cores.
fn figures(session: &Session, method: &str, column: &str) -> Figures {
    let sql = format!(
        "SELECT region, argument, cores, {column} FROM efficiency_diffs(executions, method => '{method}') WHERE {column} IS NOT NULL"
    );
    let rows = rows(session, &sql);
    let key = |row: &str| {
        let cells: Vec<&str> = row.split('|').collect();
        ((cells[0].to_owned(), cells[1].to_owned(), cells[2].to_owned()), cells[3].parse().unwrap())
    };
    rows.iter().map(|row| key(row)).collect()
}

fn trace(name: &str) -> Option<PathBuf> {
    [format!("traces/pascal/{name}"), format!("traces/pascal/{name}.zst")]
        .iter()
        .find_map(|name| shared(name).filter(|path| path.exists()))
}

/// The expected answers number regions in the order of the file, which is that of their first tasks.
fn regions_in_order(session: &Session) -> Vec<String> {
    rows(session, "SELECT name FROM (SELECT name, min(task) AS first FROM tasks GROUP BY name) ORDER BY first")
}

#[test]
fn every_matrix_of_the_viewer_is_ours() {
    let Some(folder) = shared("expected/pascal") else { return };
    // What its defects answer: a base that is not first, or that is missing, or text.
    let defects = ["edge_base_not_first", "edge_no_one_thread_run", "edge_threads_as_strings"];
    let (mut cells, mut differing) = (0, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Some((trace_name, rest)) = name.split_once("__r") else { continue };
        let Some((region, figure)) = rest.split_once("__") else { continue };
        let session = open(&trace(&format!("{trace_name}.json")).unwrap());
        let region_name = match region {
            "0" => String::new(),
            _ => "fp_tree.cpp: 720-815".to_owned(),
        };
        let ours = figures(&session, "median_of_ratios", figure);
        for line in csv(&path) {
            for (cores, value) in line.iter().filter(|(key, value)| *key != "argument" && !value.is_empty()) {
                let expected: f64 = value.parse().unwrap();
                let key = (region_name.clone(), line["argument"].clone(), cores.clone());
                cells += 1;
                let our = ours.get(&key).copied();
                // Efficiencies are float32, so a difference is as exact as its efficiencies: 1e-6 of 1.
                let is_ours = our.is_some_and(|our| (our - expected).abs() <= 1e-6 * expected.abs().max(1.0));
                if !is_ours {
                    differing += 1;
                    assert!(defects.contains(&trace_name), "{name} {key:?}: {expected}, ours {our:?}");
                }
            }
        }
    }
    assert!(cells > 1500, "{cells} cells");
    assert!(differing < 40, "{differing} cells of the defects");
}

#[test]
fn both_definitions_of_efficiency_agree_with_independent_ones() {
    let Some(path) = shared("expected/pascal/efficiency_definitions.csv") else { return };
    let mut sessions: BTreeMap<String, (Vec<String>, [Figures; 2])> = BTreeMap::new();
    let mut compared = 0;
    for line in csv(&path) {
        let (regions, ours) = sessions.entry(line["file"].clone()).or_insert_with(|| {
            let session = open(&trace(&line["file"]).unwrap());
            (
                regions_in_order(&session),
                ["ratio_of_medians", "median_of_ratios"].map(|method| figures(&session, method, "efficiency")),
            )
        });
        let region = regions[line["region"].parse::<usize>().unwrap()].clone();
        let key = (region, line["argument"].clone(), line["threads"].clone());
        for (method, column) in [(0, "ratio_of_medians"), (1, "median_of_ratios")] {
            let Ok(expected) = line[column].parse::<f64>() else { continue };
            let our = ours[method].get(&key).copied();
            assert!(our.is_some_and(|our| (our - expected).abs() <= 1e-6), "{line:?}: {our:?}");
            compared += 1;
        }
    }
    assert!(compared > 900, "{compared}");
}

#[test]
fn the_analyzers_recordings_agree_with_independent_answers() {
    let Some(path) = shared("expected/pascal/analyzer_efficiency.csv") else { return };
    let mut sessions: BTreeMap<String, (bool, BTreeMap<String, f64>)> = BTreeMap::new();
    let mut compared = 0;
    for line in csv(&path) {
        let (has_studies, ours) = sessions.entry(line["file"].clone()).or_insert_with(|| {
            let session = open(&trace(&line["file"]).unwrap());
            let has_studies = rows(&session, "SELECT count(DISTINCT study) > 1 FROM runs") == ["true"];
            let sql =
                "SELECT run, region, argument, cores, efficiency FROM efficiency_diffs() WHERE efficiency IS NOT NULL";
            let split = |row: String| {
                let (key, value) = row.rsplit_once('|').unwrap();
                (key.to_owned(), value.parse().unwrap())
            };
            (has_studies, rows(&session, sql).into_iter().map(split).collect())
        });
        let stem = line["file"].split(".json").next().unwrap();
        let frequency = &line["frequency_khz"];
        let study = if *has_studies { format!("{stem}/f={frequency}") } else { stem.to_owned() };
        let region = if line["region"] == "whole" { "" } else { &line["region"] };
        let key = format!("{study}|{region}|{}|{}", line["argument"], line["cores"]);
        let expected: f64 = line["efficiency_of_medians"].parse().unwrap();
        let our = ours.get(&key).copied();
        assert!(our.is_some_and(|our| (our - expected).abs() <= 2e-6), "{line:?}: {our:?}");
        compared += 1;
    }
    assert!(compared > 1300, "{compared}");
}

#[test]
fn sperf_agrees_with_independent_answers() {
    let Some(path) = shared("expected/pascal/sperf_efficiency.csv") else { return };
    for line in csv(&path) {
        let session = open(&trace(&line["file"]).unwrap());
        // Regions of the result come with the whole program; the first one is the file's own.
        let region = rows(&session, "SELECT min(name) FROM tasks").remove(0);
        let key = (region, line["arguments"].clone(), line["threads"].clone());
        for column in ["ratio_of_medians", "median_of_ratios"] {
            let (expected, our): (f64, _) =
                (line[column].parse().unwrap(), figures(&session, column, "efficiency")[&key]);
            assert!((our - expected).abs() <= 1e-6, "{line:?}: {our}");
        }
    }
}

#[test]
fn table_one_of_the_paper_comes_out() {
    let Some(path) = shared("expected/pascal/table1_as_printed.csv") else { return };
    let ours = figures(&open(&fixture("pascal/theoretical_table1.json")), "ratio_of_medians", "efficiency");
    let (mut same, mut all) = (0, 0);
    for line in csv(&path) {
        let size = line.iter().find(|(key, _)| key.parse::<u64>().is_err()).unwrap().1;
        for (cores, printed) in line.iter().filter(|(key, _)| key.parse::<u64>().is_ok()) {
            let our = ours[&(String::new(), size.clone(), cores.clone())];
            same += u64::from((our - printed.parse::<f64>().unwrap()).abs() <= 0.0005 + 1e-9);
            all += 1;
        }
    }
    // Two entries of the printed table are not the formula's.
    assert_eq!((same, all), (167, 169));
}

#[test]
fn verdicts_count_the_steps_of_the_rule() {
    let Some(path) = shared("expected/pascal/verdicts.csv") else { return };
    let mut compared = 0;
    // Of each file: its regions in order, and the answers without and with the column of the fewest cores.
    let mut files: BTreeMap<String, (Vec<String>, [Vec<String>; 2])> = BTreeMap::new();
    for line in csv(&path) {
        if line["file"].starts_with("edge_base")
            || line["file"].starts_with("edge_no_one")
            || line["file"].starts_with("edge_threads")
        {
            continue;
        }
        let (regions, answers) = files.entry(line["file"].clone()).or_insert_with(|| {
            let session = open(&trace(&line["file"]).unwrap());
            let answers = ["false", "true"].map(|base| saved(&session, "pascal-verdict", &[("with_base", base)]));
            (regions_in_order(&session), answers)
        });
        let answer = &answers[usize::from(line["columns"] == "all")];
        let region = &regions[line["region"].parse::<usize>().unwrap()];
        let property = line["verdict"].replace('_', " ");
        let row = answer.iter().find(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            cells[1] == region && cells[2] == property
        });
        let cells: Vec<&str> = row.unwrap().split('|').collect();
        let (pairs, below): (u64, u64) =
            (line["pairs"].parse().unwrap(), line["pairs_below_minus_0_005"].parse().unwrap());
        if pairs == 0 {
            assert_eq!(cells[3], "unknown");
            continue;
        }
        assert_eq!(
            (cells[4], cells[5]),
            (pairs.to_string().as_str(), (pairs - below).to_string().as_str()),
            "{line:?}"
        );
        assert_eq!(cells[3] == "yes", line["holds_tolerance_0_005"] == "yes", "{line:?}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

// Damage.

#[test]
fn ten_thousand_executions_are_a_few_batches() {
    let mut text = String::from("[");
    for region in 0..3 {
        let lines = if region == 0 { "0, 0".to_owned() } else { format!("{}, {}", region * 10, region * 10 + 5) };
        let repetitions: Vec<String> = (0..100)
            .map(|_| {
                let sizes: Vec<String> = (1..=10)
                    .map(|size| {
                        let runs: Vec<String> = (1..=10)
                            .map(|cores| format!(r#"{{"threads":{cores},"time":{}}}"#, size * 100 / cores))
                            .collect();
                        format!(r#"{{"argument":"{size}","runs":[{}]}}"#, runs.join(","))
                    })
                    .collect();
                format!("[{}]", sizes.join(","))
            })
            .collect();
        text.push_str(&format!(
            r#"{}{{"region":"{lines}","filename":"a.c","executions":[{}]}}"#,
            if region > 0 { "," } else { "" },
            repetitions.join(",")
        ));
    }
    text.push(']');
    let session = open_text("many.json", &text);
    assert_eq!(rows(&session, "SELECT count(*), count(DISTINCT run) FROM executions"), ["30000|10000"]);
    let batches = ask(&session, "SELECT * FROM tasks");
    assert!(batches.len() <= 8, "{} batches", batches.len());
    assert_eq!(
        rows(&session, "SELECT count(*) FROM tasks c JOIN tasks p ON p.task = c.parent AND p.run = c.run"),
        ["20000"]
    );
}

/// A file that was cut or edited says what is missing.
#[test]
fn damaged_sperf_files_say_what_is_lost() {
    const LOST: &str =
        "SELECT what, sum(count), (SELECT count(*) FROM runs) FROM import_stats WHERE severity = 'lost' GROUP BY what";
    let text = |path: &str| std::fs::read_to_string(fixture(path)).unwrap();
    let csv = text("pascal/csv/sperf_whole_parallel_region_2.csv");
    // Within the last number, where the line still reads as a whole one.
    let cut = open_text("cut.csv", &csv[..83]);
    assert_eq!(rows(&cut, LOST), ["truncated|1|7"]);
    let twice = format!("{csv}\n{}\n", csv.trim_end().lines().last().unwrap());
    assert_eq!(rows(&open_text("twice.csv", &twice), LOST), ["bad_run|2|18"]);
    let xml = text("pascal/sperf_whole.xml");
    let without = |tag: &str| xml.replacen(tag, "", 1);
    for (tag, expected) in [
        ("<item>", "bad_run|2|16"),
        ("<execucoes>", "bad_run|6|12"),
        ("</execucao>", "bad_run|1|17"),
        ("<execucao>", "bad_run|1|17"),
    ] {
        assert_eq!(rows(&open_text("damaged.xml", &without(tag)), LOST), [expected], "{tag}");
    }
}
