//! What users see: stdout, stderr and exit status of `tq`, command by command.
//!
//! Each test writes the trace or the data it needs into a directory of its own and runs the binary there. `UPDATE_EXPECT=1`
//! rewrites the expectations; read the diff before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[path = "cli/browser.rs"]
mod browser;
#[path = "cli/checks.rs"]
mod checks;
mod chrome;
#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/copies.rs"]
mod copies;
#[path = "cli/diff.rs"]
mod diff;
#[path = "cli/ends.rs"]
mod ends;
#[path = "cli/facts.rs"]
mod facts;
#[cfg(unix)]
#[path = "cli/foreign.rs"]
mod foreign;
#[path = "cli/headings.rs"]
mod headings;
#[path = "cli/jobs.rs"]
mod jobs;
#[path = "cli/lists.rs"]
mod lists;
#[path = "cli/memory.rs"]
mod memory;
#[cfg(target_os = "linux")]
#[path = "cli/memory_of_formats.rs"]
mod memory_of_formats;
#[path = "cli/names.rs"]
mod names;
#[path = "cli/remote.rs"]
mod remote;
#[path = "cli/repeated_figures.rs"]
mod repeated_figures;
#[path = "cli/reports.rs"]
mod reports;
#[path = "cli/safety.rs"]
mod safety;
#[path = "cli/saved_queries.rs"]
mod saved_queries;
#[path = "cli/server.rs"]
mod server;
#[path = "cli/store.rs"]
mod store;
#[path = "cli/true_pages.rs"]
mod true_pages;
#[path = "cli/view.rs"]
mod view;
#[path = "cli/views.rs"]
mod views;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::{Expect, expect};
use tempfile::TempDir;

/// Two workers of Taskflow; `b` starts before `a` has ended.
///
/// ```text
/// worker 0  [a----------)  [c--)
/// worker 1        [b-----------------)
///           0     20    40 50  60    80 µs
/// ```
const TRACE: &str = r#"[{"executor":"0","data":[
{"worker":0,"level":0,"data":[{"span":[0,40],"name":"a","type":"static"},{"span":[50,60],"name":"c","type":"static"}]},
{"worker":1,"level":0,"data":[{"span":[20,80],"name":"b","type":"static"}]}]}]"#;

const DOT: &str = "digraph Taskflow {\nsubgraph cluster_p0x1 {\nlabel=\"Taskflow: t\";\np0x2[label=\"a\" ];\np0x2 -> p0x3;\np0x3[label=\"c\" ];\np0x4[label=\"b\" ];\n}\n}\n";

/// A directory with the trace of above.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(TempDir::new().unwrap());
        place.write("run.json", TRACE);
        place
    }

    fn with_links() -> Place {
        let place = Place::new();
        place.write("run.dot", DOT);
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.0.path().join(name)).unwrap()).unwrap()
    }

    /// Runs `tq` with arguments split at blanks, or quoted by `'`.
    fn tq(&self, arguments: &str) -> Answer {
        self.tq_with(arguments, "")
    }

    fn tq_with(&self, arguments: &str, stdin: &str) -> Answer {
        let arguments = split(arguments);
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), stdin)
    }

    fn tq_args(&self, arguments: &[&str]) -> Answer {
        self.run(arguments, "")
    }

    fn run(&self, arguments: &[&str], stdin: &str) -> Answer {
        self.run_with(arguments, stdin, &[])
    }

    fn run_with(&self, arguments: &[&str], stdin: &str, variables: &[(&str, &OsString)]) -> Answer {
        let mut child = self
            .command(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its stdin may be gone before all is written.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    /// `tq` in the directory, without what the user's own environment would add.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tq"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("RUST_BACKTRACE")
            .env_remove("GITHUB_ACTIONS")
            .env_remove("TQ_CLUSTER")
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .env("XDG_CONFIG_HOME", self.0.path().join("config"))
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .stdin(Stdio::null());
        command
    }
}

struct Answer {
    stdout: String,
    stderr: String,
    status: Option<i32>,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Answer {
        Answer {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status.code(),
        }
    }
}

impl Answer {
    fn check(&self, expected: &Expect) -> &Answer {
        let mut text = self.stdout.clone();
        if !self.stderr.is_empty() {
            let _ = write!(text, "--- stderr\n{}", self.stderr);
        }
        let _ =
            writeln!(text, "--- exit {}", self.status.map_or("by a signal".to_owned(), |status| status.to_string()));
        expected.assert_eq(&text);
        self
    }
}

fn split(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in arguments.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn a_query_in_a_pipe_is_csv_with_exact_times() {
    Place::new()
        .tq("query run.json -c 'SELECT name, location, start, finish, duration FROM tasks ORDER BY start'")
        .check(&expect![[r#"
            name,location,start,finish,duration
            a,E0/W0,0,40000,40000
            b,E0/W1,20000,80000,60000
            c,E0/W0,50000,60000,10000
            --- exit 0
        "#]]);
}

#[test]
fn every_text_format_shows_the_same_rows() {
    let place = Place::new();
    let sql = "'SELECT name, duration, 1.5 AS x, NULL AS n FROM tasks ORDER BY start LIMIT 2'";
    for (format, expected) in [
        (
            "table",
            expect![[r#"
                 name │ duration │   x │ n
                ──────┼──────────┼─────┼──────
                 a    │  40.0 µs │ 1.5 │ NULL
                 b    │  60.0 µs │ 1.5 │ NULL
                (2 rows)
                --- exit 0
            "#]],
        ),
        (
            "tsv",
            expect![[r#"
                name	duration	x	n
                a	40000	1.5	
                b	60000	1.5	
                --- exit 0
            "#]],
        ),
        (
            "json",
            expect![[r#"
            [
             {"name":"a","duration":40000,"x":1.5,"n":null},
             {"name":"b","duration":60000,"x":1.5,"n":null}
            ]
            --- exit 0
        "#]],
        ),
        (
            "ndjson",
            expect![[r#"
            {"name":"a","duration":40000,"x":1.5,"n":null}
            {"name":"b","duration":60000,"x":1.5,"n":null}
            --- exit 0
        "#]],
        ),
        (
            "markdown",
            expect![[r#"
                | name | duration | x | n |
                | --- | ---: | ---: | --- |
                | a | 40.0 µs | 1.5 | *NULL* |
                | b | 60.0 µs | 1.5 | *NULL* |
                --- exit 0
            "#]],
        ),
    ] {
        place.tq(&format!("query run.json -c {sql} --format {format}")).check(&expected);
    }
}

#[test]
fn a_file_gets_the_format_of_its_extension_and_appears_when_complete() {
    let place = Place::new();
    place.tq("query run.json -c 'SELECT count(*) AS n FROM tasks' -o n.md").check(&expect![[r#"
        --- exit 0
    "#]]);
    assert_eq!(place.read("n.md"), "| n |\n| ---: |\n| 3 |\n");
    place.tq("query run.json -c 'SELECT 1 / 0' -o broken.csv").check(&expect![[r#"
        --- stderr
        error: division by zero
          |
        1 | SELECT 1 / 0
          |          ^
        hint: `x / nullif(y, 0)` is NULL there
        --- exit 2
    "#]]);
    place.tq("query run.json -c 'SELECT 1' -o answer").check(&expect![[r#"
        --- stderr
        error: the extension of `answer` names no format
        hint: name one: `--format csv` (or table, tsv, json, ndjson, markdown, parquet, arrow, svg, chrome)
        --- exit 2
    "#]]);
    let left: Vec<String> = std::fs::read_dir(place.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("broken") || name.contains("answer"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn parquet_and_arrow_read_back_as_tables() {
    let place = Place::new();
    for file in ["t.parquet", "t.arrow"] {
        let answer = place.tq(&format!("query run.json -c 'SELECT * FROM tasks' -o {file}"));
        assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""), "{file}");
        assert!(std::fs::metadata(place.0.path().join(file)).unwrap().len() > 500);
    }
}

#[test]
fn statements_of_a_file_run_in_order_and_the_first_failure_stops() {
    let place = Place::new();
    place.write(
        "two.sql",
        "-- how many\nSELECT count(*) AS n FROM tasks;\n\nSELECT name\nFROM taks;\nSELECT 'never';\n",
    );
    place.tq("query run.json -f two.sql").check(&expect![[r#"
        n
        3
        --- stderr
        error: two.sql:5: no table `taks`
          |
        5 | FROM taks;
          |      ^^^^
        hint: did you mean `tasks`?
        --- exit 2
    "#]]);
    place.write("syntax.sql", "SELECT 1;\nSELECT FROM WHERE;\n");
    place.tq("query run.json -f syntax.sql").check(&expect![[r#"
        1
        1
        --- stderr
        error: syntax.sql:2: no table `where`
          |
        2 | SELECT FROM WHERE;
          |             ^^^^^
        hint: there is counters, events, import_stats, links, locations, messages, runs, tasks, busy_lanes, collectives, executions, idle_stretches, … (65 in all)
        --- exit 2
    "#]]);
    place.tq("query run.json -f none.sql").check(&expect![[r#"
        --- stderr
        error: cannot read `none.sql`: no such file or directory
        --- exit 2
    "#]]);
    place.tq_with("query run.json -f -", "CREATE VIEW v AS SELECT 5 AS five; SELECT five FROM v").check(&expect![[
        r#"
            five
            5
            --- exit 0
        "#
    ]]);
    place.tq_with("query - -f -", "SELECT 1").check(&expect![[r#"
        --- stderr
        error: standard input cannot be both the trace and the SQL
        hint: give the SQL with `-c` or in a file
        --- exit 2
    "#]]);
}

#[test]
fn values_of_placeholders_have_types() {
    let place = Place::new();
    place
        .tq("query run.json -c 'SELECT name FROM tasks WHERE duration > $limit AND name <> $name ORDER BY name' --param limit=20000 --param name=a")
        .check(&expect![[r#"
            name
            b
            --- exit 0
        "#]]);
    place.tq("query run.json -c 'SELECT $limit'").check(&expect![[r#"
        --- stderr
        error: no value for `$limit`
          |
        1 | SELECT $limit
          |        ^^^^^^
        hint: `tq query --param limit=…` gives it one
        --- exit 2
    "#]]);
    place.tq("query run.json -c 'SELECT $limit' --param limti=1").check(&expect![[r#"
        --- stderr
        error: no statement has `$limti`; did you mean `limit`?
        hint: `--param limti=…` is the value of `$limti` in the SQL
        --- exit 2
    "#]]);
    place.tq("query run.json -c 'SELECT 1' --param limit").check(&expect![[r#"
        --- stderr
        error: invalid value 'limit' for '--param <KEY=VALUE>': write it like `key=value`

        For more information, try '--help'.
        --- exit 2
    "#]]);
}

#[test]
fn traces_that_cannot_be_read() {
    let place = Place::new();
    place.write("empty.json", "");
    place.write("words.xyz", "\u{1}\u{2}three\n");
    std::fs::create_dir(place.0.path().join("nothing")).unwrap();
    for (trace, expected) in [
        (
            "rnu.json",
            expect![[r#"
                --- stderr
                error: cannot read trace `rnu.json`: no such file or directory
                hint: did you mean `run.json`?
                --- exit 2
            "#]],
        ),
        (
            "none/run.json",
            expect![[r#"
                --- stderr
                error: cannot read trace `none/run.json`: no such file or directory
                hint: there is no directory `none` either
                --- exit 2
            "#]],
        ),
        (
            "empty.json",
            expect![[r#"
            --- stderr
            error: trace `empty.json` is empty
            hint: it has 0 bytes: was the recording stopped before it was written?
            --- exit 2
        "#]],
        ),
        (
            "words.xyz",
            expect![[r#"
            --- stderr
            error: no format recognises `words.xyz`; it begins with `\x01\x02three\n`
            hint: `tq formats` lists what is recognised; `--from-format F` reads it as F and says where it differs
            --- exit 2
        "#]],
        ),
        (
            "nothing",
            expect![[r#"
            --- stderr
            error: no trace in directory `nothing`: none of its 0 files is recognised
            hint: `tq formats` lists what is recognised; a directory is searched without its subdirectories
            --- exit 2
        "#]],
        ),
        (
            "run.json --from-format tfprofe",
            expect![[r#"
                --- stderr
                error: no format `tfprofe`; did you mean `tfprof`?
                hint: the formats are parsec, tfprof, pascal, actorprof, chrome, daisen, nsys, folded, table
                --- exit 2
            "#]],
        ),
        (
            "run.json --option tfprof.typse=1",
            expect![[r#"
            --- stderr
            error: no import option `tfprof.typse`; did you mean `tfprof.types`?
            hint: `tq formats NAME` lists the options of a format
            --- exit 2
        "#]],
        ),
        (
            "run.json --from 2ms --to 1ms",
            expect![[r#"
                --- stderr
                error: --to lies before --from: the slice is empty
                hint: --to is the first tick behind the slice, so that `--from 20 --to 21` is one tick
                --- exit 2
            "#]],
        ),
        (
            "run.json --from 'tomorrow'",
            expect![[r#"
            --- stderr
            error: invalid value 'tomorrow' for '--from <TIME>': `tomorrow` is no time; write it like `1.5ms`, `300us`, `2s`, or as bare ticks

            For more information, try '--help'.
            --- exit 2
        "#]],
        ),
        (
            "run.json --memory lots",
            expect![[r#"
            --- stderr
            error: invalid value 'lots' for '--memory <BYTES>': write it like `8GB` or `512MiB`

            For more information, try '--help'.
            --- exit 2
        "#]],
        ),
    ] {
        place.tq(&format!("query {trace} -c 'SELECT 1'")).check(&expected);
    }
}

#[test]
fn what_is_missing_is_said() {
    let place = Place::new();
    for (command, expected) in [
        (
            "query longest-tasks",
            expect![[r#"
            --- stderr
            error: `longest-tasks` asks about a trace, and none is given
            hint: `tq query TRACE longest-tasks`
            --- exit 2
        "#]],
        ),
        (
            "query base=run.json base=run.json -c 'SELECT run FROM runs'",
            expect![[r#"
            run
            base
            base_2
            --- stderr
            note: several traces are called `base`: `run.json` becomes run `base_2`
            --- exit 0
        "#]],
        ),
        (
            "query run.json --from 100s -c 'SELECT count(*) FROM tasks'",
            expect![[r#"
                count(*)
                0
                --- stderr
                note: nothing of run `run` lies within --from/--to; it lasts from 0 s to 80.0 µs
                --- exit 0
            "#]],
        ),
        (
            "query run.json -c 'SELECT 1 AS one' --format svg",
            expect![[r#"
            --- stderr
            error: svg draws tasks: it needs the columns start and finish (or duration), and uses run, location, name and kind; this result has one; `--chart` draws other results, e.g. `--chart 'bar x=duration y=name'`
            --- exit 2
        "#]],
        ),
        (
            "run.json -c 'SELECT 1'",
            expect![[r#"
            --- stderr
            error: unexpected argument '-c' found

            Usage: tq [OPTIONS] [TRACE]...
                   tq <COMMAND>

            For more information, try '--help'.
            hint: `tq query TRACE…` takes `-c`
            --- exit 2
        "#]],
        ),
        (
            "-q query run.json -c 'SELECT 1'",
            expect![[r#"
            --- stderr
            error: unexpected argument '-c' found

            Usage: tq [OPTIONS] [TRACE]...
                   tq <COMMAND>

            For more information, try '--help'.
            hint: a command comes first: `tq query -q …`
            --- exit 2
        "#]],
        ),
        (
            "list run.json",
            expect![[r#"
                --- stderr
                error: cannot read trace `list`: no such file or directory
                hint: `tq --help` lists the commands, `tq queries` the saved queries
                hint: `.` holds `run.json`
                --- exit 2
            "#]],
        ),
        (
            "query run.json -c 'SELECT 1 AS one; SELECT start + 9223372036854775807 FROM tasks WHERE start > 0'",
            expect![[r#"
                one
                1
                --- stderr
                error: integer overflow in start + 9223372036854775807: 50000 + 9223372036854775807
                  |
                1 | SELECT 1 AS one; SELECT start + 9223372036854775807 FROM tasks WHERE start > 0
                  |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
                --- exit 2
            "#]],
        ),
    ] {
        place.tq(command).check(&expected);
    }
}

#[test]
fn a_trace_called_like_a_command_and_a_misspelt_command() {
    let place = Place::new();
    place.write("query", TRACE);
    place.tq_with("./query", "SELECT count(*) AS n FROM tasks;").check(&expect![[r#"
        n
        3
        --- exit 0
    "#]]);
    place.tq("reprot run.json").check(&expect![[r#"
        --- stderr
        error: cannot read trace `reprot`: no such file or directory
        hint: did you mean the command `tq report`?
        --- exit 2
    "#]]);
}

#[test]
fn runs_get_names() {
    Place::new()
        .tq("query base=run.json new=run.json run.json -c 'SELECT run, run_number, tasks FROM runs ORDER BY 2'")
        .check(&expect![[r#"
            run,run_number,tasks
            base,0,3
            new,1,3
            run,2,3
            --- exit 0
        "#]]);
}

#[test]
fn damage_is_told_and_strict_refuses_it() {
    let place = Place::new();
    place.write("cut.json", &TRACE[..TRACE.len() - 60]);
    place.tq("query cut.json -c 'SELECT count(*) AS n FROM tasks'").check(&expect![[r#"
        n
        2
        --- stderr
        warning: cut.json: 1 lost in 2 records (truncated: byte 164: the file ends inside of executor 0, worker 1, level 0); see import_stats
        --- exit 0
    "#]]);
    place.tq("query cut.json --strict -c 'SELECT count(*) AS n FROM tasks'").check(&expect![[r#"
        --- stderr
        warning: cut.json: 1 lost in 2 records (truncated: byte 164: the file ends inside of executor 0, worker 1, level 0); see import_stats
        error: --strict: records of run `cut` were lost while reading
        hint: without --strict, `SELECT * FROM import_stats` says what
        --- exit 2
    "#]]);
}

#[test]
fn the_prompt_offers_no_queries_of_other_formats() {
    let offered = Place::with_links().tq_with("run.json", "\\run").stdout;
    assert!(
        offered.contains("time-by-name") && !offered.contains("parsec-") && !offered.contains("daisen-"),
        "{offered}"
    );
}

#[test]
fn the_prompt_reads_a_pipe_without_prompting() {
    let place = Place::with_links();
    place
        .tq_with(
            "run.json",
            "\\d\nSELECT name,\n duration -- ;\nFROM tasks ORDER BY name;\nSELECT 1 AS one; SELECT 2 AS two",
        )
        .check(&expect![[r#"
            Tables, with their rows:
              counters      0  Values over time, or totals.
              events        0  Instants: milestones, marks, tags.
              import_stats  2  What was skipped, repaired, rounded or guessed while reading: nothing is dropped
                               silently.
              links         1  Directed links between tasks.
              locations     3  What executes: nodes, processes, threads, workers, streams, components; also
                               those that never ran.
              messages      0  Messages between locations.
              runs          1  One row per recording that the session opened.
              tasks         3  Executed units of work, each a half-open span [start, finish) on a location.
            Views of them (`\d NAME` says more):
              busy_lanes         How long each of the `working_lanes` was busy, those that never ran included.
              collectives        Tasks in which ranks work together and none is done before the last one has
                                 begun.
              executions         Scalability studies.
              idle_stretches     When locations ran nothing.
              lost_dependencies  How many dependencies a recording names that are no `links`, since a task at
                                 their end is not known.
              messages_by_pair   How many messages and bytes each location sent to each other one, each message
                                 once.
              name_families      What a name of task is called where runs are compared.
              parent_links       The parents of tasks.
              path_links         What released the tasks of an executed path.
              path_tasks         The tasks of an executed path.
              program_locations  The locations of the program.
              program_tasks      The tasks of the program.
              spans_and_ends     The `working_spans`, and for each run two without task and length, at its first
                                 start and its last finish on one of its locations.
              work_by_name       The work of each name of task.
              working_lanes      Locations that run tasks themselves.
              working_locations  The locations that execute tasks.
              working_spans      The spans in which tasks worked.
              working_tasks      Tasks that kept a location busy.
            name,duration
            a,40000
            b,60000
            c,10000
            one
            1
            two
            2
            --- exit 0
        "#]]);
    place.tq_with("run.json", "SELECT 1 AS one;\nSELECT x;\nSELECT 3;").check(&expect![[r#"
        one
        1
        --- stderr
        error: no column `x`
          |
        2 | SELECT x;
          |        ^
        --- exit 2
    "#]]);
    place.tq_with("run.json", "\\frob").check(&expect![[r#"
        --- stderr
        error: no command `\frob`
        hint: `\?` lists the commands
        --- exit 2
    "#]]);
    place.tq_with("run.json", "\\q\nSELECT 1;").check(&expect![[r#"
        --- exit 0
    "#]]);
}

#[test]
fn pictures_need_times_and_are_one_svg() {
    let place = Place::with_links();
    place.tq("query run.json -c 'SELECT name FROM tasks' --format svg").check(&expect![[r#"
        --- stderr
        error: svg draws tasks: it needs the columns start and finish (or duration), and uses run, location, name and kind; this result has name; `--chart` draws other results, e.g. `--chart 'bar x=duration y=name'`
        --- exit 2
    "#]]);
    let answer = place.tq("query run.json -c 'SELECT * FROM tasks' --format svg");
    assert_eq!(answer.status, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.starts_with("<svg ") && answer.stdout.ends_with("</svg>\n"));
    assert_eq!(answer.stdout, place.tq("query run.json -c 'SELECT * FROM tasks' --format svg").stdout);
    place.tq("query run.json -c 'SELECT 1 AS start, 2 AS finish; SELECT 1 AS start, 2 AS finish' -o two.svg").check(
        &expect![[r#"
            --- stderr
            error: svg holds one result, and this is the second
            hint: keep one SELECT, or write each into a file of its own
            --- exit 2
        "#]],
    );
}

#[test]
fn usage_is_exit_2_and_help_is_not() {
    let place = Place::new();
    place.tq("query run.json").check(&expect![[r#"
        --- stderr
        error: there is no question after the trace `run.json`
        hint: give SQL with `-c`, a file with `-f`, or the name of a saved query; `tq queries` lists them
        --- exit 2
    "#]]);
    place.tq("query run.json -c 'SELECT 1' --format xml").check(&expect![[r#"
        --- stderr
        error: invalid value 'xml' for '--format <FORMAT>'
          [possible values: table, csv, tsv, json, ndjson, markdown, parquet, arrow, svg, chrome]

        For more information, try '--help'.
        --- exit 2
    "#]]);
    for command in ["--help", "query --help", "report --help", "--version", "completions bash"] {
        let answer = place.tq(command);
        assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""), "{command}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let script = format!(
        "'{}' query run.json -c 'SELECT * FROM range(0, 1000000)' --format csv | head -1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_tq")
    );
    let output = Command::new("bash").arg("-c").arg(script).current_dir(place.0.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

/// A pipe gives its bytes once: more than what recognition looks at must not be lost.
#[test]
#[cfg(unix)]
fn a_named_pipe_is_read_once_and_whole() {
    let place = Place::new();
    let pipe = place.0.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let lines: String =
        (0..20_000).map(|at| format!("{{\"start\":{at},\"finish\":{},\"name\":\"n\"}}\n", at + 1)).collect();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, lines)
    });
    let sql = "SELECT count(*) AS tasks, min(start) AS first FROM tasks";
    let answer = Command::new(env!("CARGO_BIN_EXE_tq"))
        .args(["query", "--format", "csv", "-c", sql])
        .arg(&pipe)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "tasks,first\n20000,0\n");
    writer.join().unwrap().unwrap();
}

/// Keeps the helper honest.
#[test]
fn arguments_split_at_blanks_and_quotes() {
    assert_eq!(split("query a -c 'SELECT 1' -o x"), ["query", "a", "-c", "SELECT 1", "-o", "x"]);
    assert!(Path::new(env!("CARGO_BIN_EXE_tq")).exists());
}

#[test]
fn show_tells_the_tick() {
    Place::new().tq("query run.json -c 'SHOW tq.time_unit; SHOW tq.time_unti'").check(&expect![[r#"
        name,value
        tq.time_unit,ns
        --- stderr
        error: no setting `tq.time_unti`
          |
        1 | SHOW tq.time_unit; SHOW tq.time_unti
          |                            ^^^^^^^^^
        hint: did you mean `tq.time_unit`?
        --- exit 2
    "#]]);
    Place::new().tq("query run.json -c 'SHOW tq.colour'").check(&expect![[r#"
        --- stderr
        error: no setting `tq.colour`
          |
        1 | SHOW tq.colour
          |         ^^^^^^
        hint: there is `tq.time_unit`
        --- exit 2
    "#]]);
}
