//! What `docs/security.md` promises, sentence by sentence: what a stranger's query, template, trace or file name may do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Answer, Place, TRACE};

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of all files of the folder, below it, too.
    fn files(&self) -> Vec<String> {
        fn collect(folder: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { collect(&path, names) } else { names.push(path.display().to_string()) }
            }
        }
        let mut names = Vec::new();
        collect(self.0.path(), &mut names);
        names.sort();
        names
    }

    /// Runs `tq` as a step of a job on GitHub does.
    fn on_github(&self, arguments: &[&str]) -> Answer {
        self.command(arguments).env("GITHUB_ACTIONS", "true").output().unwrap().into()
    }
}

impl Answer {
    fn refused(&self, words: &str) {
        assert_eq!(self.status, Some(2), "{}{}", self.stdout, self.stderr);
        let text = format!("{}{}", self.stdout, self.stderr);
        assert!(text.contains(words), "{words} is not in\n{text}");
    }

    fn is_fine(&self) {
        assert_eq!(self.status, Some(0), "{}{}", self.stdout, self.stderr);
    }
}

/// Statements that do more than ask.
const DOINGS: [&str; 14] = [
    "COPY tasks TO 'out.csv'",
    "COPY (SELECT 1) TO 'out.parquet' STORED AS PARQUET",
    "EXPLAIN COPY (SELECT * FROM tasks) TO 'out.csv'",
    "EXPLAIN ANALYZE COPY (SELECT * FROM tasks) TO 'out.csv'",
    "EXPLAIN ANALYZE VERBOSE COPY tasks TO 'out.csv'",
    "CREATE TABLE mine AS SELECT 1",
    "CREATE OR REPLACE VIEW mine AS SELECT 1",
    "CREATE EXTERNAL TABLE t (a TEXT) STORED AS CSV LOCATION 'secret.csv'",
    "INSERT INTO mine VALUES (1)",
    "DROP TABLE IF EXISTS mine",
    "SET datafusion.execution.batch_size = 1024",
    "PREPARE p AS COPY (SELECT 1) TO 'out.csv'",
    "EXECUTE p",
    "SELECT * INTO mine FROM tasks",
];

#[test]
fn saved_queries_templates_and_checks_only_ask() {
    let place = Place::new();
    place.write("secret.csv", "a\nsecret\n");
    fs::create_dir_all(place.path(".tq/queries")).unwrap();
    for statement in DOINGS {
        place.write("header.sql", &format!("-- title: t\n{statement}"));
        place.write(".tq/queries/plain.sql", statement);
        place.write("check.sql", &format!("-- expect no rows\n{statement}"));
        place.write("page.md", &format!("# x\n```sql\n{statement}\n```\n"));
        let before = place.files();
        for command in [
            "query run.json header.sql",
            "query run.json -f header.sql",
            "query run.json plain",
            "check run.json --query check.sql",
            "check run.json --query check.sql --bless",
            "report run.json --template page.md",
        ] {
            let answer = place.tq(command);
            assert_eq!(answer.status, Some(2), "{command}: {statement}\n{}{}", answer.stdout, answer.stderr);
            assert!(!answer.stdout.contains("secret"), "{statement}");
        }
        assert_eq!(place.files(), before, "{statement}");
    }
}

#[test]
fn conditions_of_checks_only_ask() {
    let place = Place::new();
    for condition in [
        "true) AS a FROM tasks; COPY tasks TO 'out.csv'; SELECT (true",
        "(SELECT count(*) FROM 'secret.csv') = 0",
        "tq_row = 0 OR (COPY tasks TO 'out.csv')",
    ] {
        place.write("a.sql", &format!("-- expect every row: {condition}\nSELECT name FROM tasks"));
        place.write("secret.csv", "a\nsecret\n");
        let answer = place.tq("check run.json --query a.sql");
        assert_eq!(answer.status, Some(2), "{condition}\n{}", answer.stdout);
        assert!(!place.path("out.csv").exists() && !answer.stdout.contains("secret\n"), "{condition}");
    }
}

#[test]
fn questions_read_no_files() {
    let place = Place::new();
    place.write("secret.csv", "a\nsecret\n");
    for from in
        ["'secret.csv'", "\"secret.csv\"", "read_csv('secret.csv')", "file('secret.csv')", "'file:///etc/passwd'"]
    {
        for option in ["", "--read-only "] {
            let answer = place.tq_args(
                &[
                    &["query", "run.json"][..],
                    &option.split_whitespace().collect::<Vec<_>>(),
                    &["-c", &format!("SELECT * FROM {from}")],
                ]
                .concat(),
            );
            assert_eq!(answer.status, Some(2), "{from}");
            assert!(!answer.stdout.contains("secret"), "{from}");
        }
    }
}

#[test]
fn sql_of_the_command_line_may_write_unless_it_is_read_only() {
    let place = Place::new();
    place.write("plain.sql", "COPY (SELECT name FROM tasks) TO 'out.csv' STORED AS CSV;\nSELECT 1 AS one;\n");
    place.tq("query run.json -f plain.sql").is_fine();
    assert!(place.path("out.csv").exists());
    fs::remove_file(place.path("out.csv")).unwrap();
    place.tq("query run.json --read-only -f plain.sql").refused("COPY is no question");
    for statement in DOINGS {
        let before = place.files();
        let answer = place.tq_args(&["query", "run.json", "--read-only", "-c", statement]);
        answer.refused(if statement.contains("SELECT * INTO") { "" } else { "is no question" });
        let at_prompt = place.tq_with("run.json --read-only", &format!("{statement};\n"));
        assert_eq!(at_prompt.status, Some(2), "{statement}");
        assert_eq!(place.files(), before, "{statement}");
    }
    for question in
        ["SELECT 1", "SHOW TABLES", "DESCRIBE tasks", "EXPLAIN ANALYZE SELECT * FROM tasks", "SHOW tq.time_unit"]
    {
        place.tq_args(&["query", "run.json", "--read-only", "-c", question]).is_fine();
    }
    // Commands of the prompt that write files do not, either; the configuration file says the same as the flag.
    place.tq_with("run.json --read-only", "\\o out.csv\nSELECT 1;\n").refused("`\\o` writes a file");
    place.tq_with("run.json --read-only", "\\report out.md\n").refused("`\\report` writes a file");
    fs::create_dir_all(place.path("config/tq")).unwrap();
    place.write("config/tq/config.toml", "read_only = true\n");
    place.tq("query run.json -f plain.sql").refused("COPY is no question");
    assert!(!place.path("out.csv").exists() && !place.path("out.md").exists());
    // What the command line names is written.
    place.tq("query run.json -c 'SELECT 1 AS one' -o named.csv").is_fine();
    assert_eq!(place.read("named.csv"), "one\n1\n");
}

#[test]
fn settings_that_lift_limits_are_refused_to_everybody() {
    let place = Place::new();
    for name in ["memory_limit", "temp_directory", "max_temp_directory_size", "metadata_cache_limit"] {
        for statement in [
            format!("SET datafusion.runtime.{name} = '64G'"),
            format!("set DataFusion.Runtime.{name} = '64G'"),
            format!("SET datafusion.runtime.{name} TO '64G'"),
            format!("RESET datafusion.runtime.{name}"),
        ] {
            let answer = place.tq_args(&["query", "run.json", "-c", &statement]);
            answer.refused(&format!("`datafusion.runtime.{name}` cannot be changed by SQL"));
            assert!(answer.stderr.contains("hint: `--memory 8GB`") && answer.stderr.contains("\\set memory 8GB"));
        }
    }
    for statement in [
        "SET datafusion.sql_parser.dialect = 'mysql'",
        "SET datafusion.sql_parser.recursion_limit = 1000000",
        "SET datafusion.execution.batch_size = 0",
        "SET datafusion.execution.target_partitions = 100000000000",
        "SET datafusion.execution.parquet.write_batch_size = 0",
    ] {
        assert_eq!(place.tq_args(&["query", "run.json", "-c", statement]).status, Some(2), "{statement}");
    }
    place.tq("query run.json -c 'SET datafusion.execution.batch_size = 1024; SELECT 1'").is_fine();
}

#[test]
fn the_prompt_changes_its_own_memory() {
    let place = Place::new();
    let join = "SELECT count(*) FROM range(0, 1000000) AS a JOIN range(0, 1000000) AS b USING (value);";
    let small = place.tq_with("run.json --memory 8MB", &format!("{join}\n"));
    small.refused("not enough memory");
    let raised = place.tq_with("run.json --memory 8MB", &format!("\\set memory 2GB\n{join}\n\\set\n"));
    raised.is_fine();
    assert!(raised.stdout.contains("1000000") && raised.stdout.contains("memory     2.0GB"), "{}", raised.stdout);
    let lowered = place.tq_with("run.json --memory 2GB", &format!("\\set memory 8MB\n{join}\n"));
    lowered.refused("not enough memory");
    place.tq_with("run.json", "\\set memory lots\n").refused("`memory` is not `lots`");
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder `in` with what a stranger made, and a secret beside it.
    fn place() -> Place {
        let place = Place::new();
        fs::create_dir_all(place.path("in")).unwrap();
        fs::create_dir_all(place.path("out")).unwrap();
        place.write("out/secret.csv", "begin,end,name\n1,2,secret\n");
        place.write("out/secret.sql", "-- title: secret\n-- expect no rows\nSELECT 'secret' AS secret");
        place
    }

    fn keeps_the_secret(answer: &Answer, words: &str) {
        answer.refused(words);
        assert!(!answer.stdout.contains("1,2,secret") && !answer.stderr.contains("begin,end"), "{}", answer.stdout);
    }

    #[test]
    fn what_a_check_names_stays_in_its_folder() {
        let place = place();
        symlink(place.path("out/secret.csv"), place.path("in/link.csv")).unwrap();
        symlink("/dev/zero", place.path("in/zero.csv")).unwrap();
        symlink(place.path("out/new.csv"), place.path("in/dangling.csv")).unwrap();
        symlink(place.path("out"), place.path("in/folder")).unwrap();
        Command::new("mkfifo").arg(place.path("in/pipe.csv")).status().unwrap();
        for name in ["link.csv", "zero.csv", "folder/secret.csv", "pipe.csv"] {
            place.write("in/a.sql", &format!("-- expect same as: {name}\nSELECT 1 AS one"));
            let before = place.read("out/secret.csv");
            for command in
                ["check run.json --query in/a.sql", "check run.json --query in", "check run.json --query in --bless"]
            {
                let answer = place.tq(command);
                let words = if name == "pipe.csv" { "which is not a regular file" } else { "outside of its folder" };
                keeps_the_secret(&answer, words);
                assert!(
                    answer.stdout.contains("a.sql` leads to") && answer.stdout.contains("--expected"),
                    "{}",
                    answer.stdout
                );
            }
            assert_eq!(place.read("out/secret.csv"), before, "{name}");
        }
        // A link to nothing is not written through, and the hint is not that `--bless` would.
        place.write("in/a.sql", "-- expect same as: dangling.csv\nSELECT 1 AS one");
        for command in ["check run.json --query in/a.sql", "check run.json --query in/a.sql --bless"] {
            let answer = place.tq(command);
            answer.refused("in/a.sql` leads to `in/dangling.csv`, which is a link to nothing");
            assert!(answer.stdout.contains("hint: remove the link"), "{}", answer.stdout);
        }
        for name in
            ["dangling.csv", "../new.csv", "folder/new.csv", "sub/../../new.csv", "../out/secret.csv", "/etc/passwd"]
        {
            place.write("in/a.sql", &format!("-- expect same as: {name}\nSELECT 1 AS one"));
            assert_eq!(place.tq("check run.json --query in/a.sql --bless").status, Some(2), "{name}");
        }
        assert!(!place.path("out/new.csv").exists() && !place.path("new.csv").exists());
        // What the command line names, it means; and below the folder all is as before.
        place.write("in/a.sql", "-- expect same as: link.csv\nSELECT 1 AS one");
        assert_eq!(place.tq("check run.json --query in/a.sql --expected out/secret.csv").status, Some(1));
        place.write("in/a.sql", "-- expect same as: expected/a.csv\nSELECT 1 AS one");
        place.tq("check run.json --query in/a.sql --bless").is_fine();
        place.tq("check run.json --query in/a.sql").is_fine();
    }

    #[test]
    fn folders_of_queries_hold_what_lies_in_them() {
        let place = place();
        place.write("out/passwd", "root:x:0:0:secret");
        symlink(place.path("out/passwd"), place.path("in/a.sql")).unwrap();
        let answer = place.tq("check run.json --query in");
        answer.refused("outside of its folder");
        assert!(!answer.stdout.contains("root:x"), "{}", answer.stdout);
        let answer = place.tq("query run.json --queries in a");
        answer.refused("outside of its folder");
        assert!(!answer.stderr.contains("root:x"), "{}", answer.stderr);
        // A file of the command line is followed.
        symlink(place.path("out/secret.sql"), place.path("named.sql")).unwrap();
        place.tq("query run.json named.sql").is_fine();
        // A page names queries beside itself or below.
        place.write("in/page.md", "# x\n```sql\n../out/secret.sql\n```\n");
        place.tq("report run.json --template in/page.md").refused("outside of its folder");
    }

    #[test]
    fn what_a_mapping_names_stays_in_its_folder() {
        let place = place();
        place.write("in/log.csv", "begin,end,name\n1,2,a\n");
        let columns = "start = \"begin:us\"\nfinish = \"end:us\"\nname = \"name\"\n";
        for file in ["../out/secret.csv", "/etc/passwd", "link.csv", "pipe.csv"] {
            place.write("in/log.csv.tq.toml", &format!("[[table]]\n{columns}[[table]]\nfile = \"{file}\"\n{columns}"));
            if file == "link.csv" {
                symlink(place.path("out/secret.csv"), place.path("in/link.csv")).unwrap();
            }
            if file == "pipe.csv" {
                Command::new("mkfifo").arg(place.path("in/pipe.csv")).status().unwrap();
            }
            for trace in ["in/log.csv", "in/log.csv.tq.toml"] {
                let answer = place.tq_args(&["query", trace, "-c", "SELECT name FROM tasks"]);
                keeps_the_secret(
                    &answer,
                    if file == "pipe.csv" { "which is not a regular file" } else { "outside of its folder" },
                );
                assert!(answer.stderr.contains("--option table.file=FILE"), "{}", answer.stderr);
            }
        }
        place.write("in/one.csv", "begin,end,name\n1,2,a\n");
        place.write("in/one.csv.tq.toml", &format!("file = \"../out/secret.csv\"\n{columns}"));
        assert_eq!(place.tq("query in/one.csv -c 'SELECT name FROM tasks'").status, Some(2));
        let given = place.tq("query in/one.csv --option table.file=out/secret.csv -c 'SELECT name FROM tasks'");
        assert_eq!(given.stdout, "name\nsecret\n", "{}", given.stderr);
        // Neither is a mapping, or the data of one, found behind a link.
        place.write("out/two.toml", columns);
        place.write("in/two.csv", "begin,end,name\n1,2,a\n");
        symlink(place.path("out/two.toml"), place.path("in/two.csv.tq.toml")).unwrap();
        place.tq("query in/two.csv -c 'SELECT 1'").refused("outside of its folder");
        symlink(place.path("out/secret.csv"), place.path("in/three.csv")).unwrap();
        place.write("in/three.csv.tq.toml", columns);
        keeps_the_secret(&place.tq("query in/three.csv.tq.toml -c 'SELECT name FROM tasks'"), "outside of its folder");
    }

    #[test]
    fn directories_of_traces_hold_what_lies_in_them() {
        let place = place();
        place.write("in/a.json", TRACE);
        place.write("out/b.json", TRACE);
        place.tq("query in -c 'SELECT count(*) FROM tasks'").is_fine();
        symlink(place.path("out/b.json"), place.path("in/b.json")).unwrap();
        place.tq("query in -c 'SELECT count(*) FROM tasks'").refused("outside of its folder");
        place.tq("query in/b.json -c 'SELECT count(*) FROM tasks'").is_fine();
        // A graph that lies elsewhere is not read, and the table of findings says so.
        fs::remove_file(place.path("in/b.json")).unwrap();
        place.write("out/a.dot", super::super::DOT);
        symlink(place.path("out/a.dot"), place.path("in/a.dot")).unwrap();
        let answer =
            place.tq("query in/a.json -c 'SELECT what, (SELECT count(*) FROM links) AS links FROM import_stats'");
        assert!(answer.stdout.contains("dot_beside_not_used,0"), "{}", answer.stdout);
        place.tq("query in/a.json --option tfprof.dot=out/a.dot -c 'SELECT 1'").is_fine();
    }

    #[test]
    fn an_output_is_no_input() {
        let place = Place::with_links();
        place.write("q.sql", "-- title: t\n-- expect rows: 0..\nSELECT name FROM tasks");
        place.write("page.md", "# {{runs}}\n");
        fs::create_dir_all(place.path("all")).unwrap();
        place.write("all/a.json", TRACE);
        place.write("all/notes.txt", "of mine");
        fs::hard_link(place.path("run.json"), place.path("hard.json")).unwrap();
        symlink("run.json", place.path("soft.json")).unwrap();
        let before: Vec<(String, Vec<u8>)> =
            place.files().into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
        for command in [
            "query run.json -c 'SELECT 1' -o run.json",
            "query run.json -c 'SELECT 1' -o ./run.json",
            "query run.json -c 'SELECT 1' -o all/../run.json",
            "query run.json -c 'SELECT 1' -o hard.json",
            "query soft.json -c 'SELECT 1' -o run.json",
            "query run.json -c 'SELECT 1' -o soft.json",
            "query x=run.json -c 'SELECT 1' -o run.json",
            "query run.json -c 'SELECT 1' --format csv -o run.dot",
            "query run.json -f q.sql --format csv -o q.sql",
            "query all -c 'SELECT 1' -o all/a.json",
            "query all -c 'SELECT 1' -o all/notes.txt",
            "report run.json -o run.json",
            "report run.json -o run.dot",
            "report run.json --template page.md -o page.md",
            "check run.json --query q.sql --junit run.json",
            "check run.json --query q.sql --junit q.sql",
            "check run.json --query q.sql --markdown=run.json",
            "check run.json --query q.sql --baseline all/a.json --junit all/a.json",
            "check run.json --query q.sql --junit x --markdown=./x",
        ] {
            let answer = place.tq(command);
            answer.refused(if command.contains("./x") { "are one file" } else { "that is read" });
            assert!(answer.stdout.is_empty(), "{command}: {}", answer.stdout);
            for (file, bytes) in &before {
                assert_eq!(fs::read(file).unwrap(), *bytes, "{command}: {file}");
            }
        }
        assert_eq!(place.files().len(), before.len());
        // Pictures, too: one of a page, and the second of a check, whose names the command line does not say.
        fs::hard_link(place.path("run.json"), place.path("p.timeline.svg")).unwrap();
        place.tq("report run.json -o p.md").refused("that is read");
        fs::hard_link(place.path("run.json"), place.path("offends-2.svg")).unwrap();
        place.tq("check run.json --query q.sql --picture offends.svg").refused("that is read");
        // Standard input and standard output are files as well.
        let stdin = fs::File::open(place.path("run.json")).unwrap();
        let output = place.command(&["query", "-", "-c", "SELECT 1", "-o", "run.json"]).stdin(stdin).output().unwrap();
        Answer::from(output).refused("standard input that is read");
        let stdout = fs::File::options().append(true).open(place.path("run.json")).unwrap();
        let output = place.command(&["query", "run.json", "-c", "SELECT 1"]).stdout(stdout).output().unwrap();
        Answer::from(output).refused("standard output is `run.json`");
        assert_eq!(place.read("run.json"), TRACE);
    }

    #[test]
    fn a_failed_command_leaves_the_old_file_and_links_are_not_written_through() {
        let place = place();
        place.write("old.csv", "old");
        assert_eq!(place.tq("query run.json -c 'SELECT 1 / (task - task) FROM tasks' -o old.csv").status, Some(2));
        assert_eq!(place.read("old.csv"), "old");
        symlink(place.path("out/secret.csv"), place.path("answer.csv")).unwrap();
        symlink(place.path("out/secret.csv"), place.path("answer.csv.partial")).unwrap();
        let before = place.read("out/secret.csv");
        place.tq("query run.json -c 'SELECT 1 AS one' -o answer.csv").is_fine();
        assert_eq!((place.read("answer.csv").as_str(), place.read("out/secret.csv")), ("one\n1\n", before));
        assert!(!place.files().iter().any(|file| file.contains(".tq-")), "{:?}", place.files());
    }

    #[test]
    fn history_is_for_its_owner() {
        // The prompt in a terminal writes it: `tests/terminal.rs` looks at its permissions.
        let place = Place::new();
        place.tq_with("run.json", "SELECT 1;\n").is_fine();
        assert!(!place.path("state").exists(), "a pipe leaves no history");
    }
}

/// A trace whose names are commands, markup and placeholders.
fn hostile(names: &[&str]) -> String {
    let spans: Vec<String> = (names.iter().enumerate())
        .map(|(at, name)| {
            let name = name
                .chars()
                .map(|c| match c {
                    '"' | '\\' => format!("\\{c}"),
                    c if (c as u32) < 0x20 => format!("\\u{:04x}", c as u32),
                    c => c.to_string(),
                })
                .collect::<String>();
            format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":{},"dur":{},"name":"{name}"}}"#, at * 100, 90 - at)
        })
        .collect();
    format!("[{}]", spans.join(",\n"))
}

/// What the runner would take for a command: `ActionCommand.cs`.
fn commands(text: &str) -> Vec<&str> {
    text.split(['\n', '\r']).filter(|line| line.trim_start().starts_with("::") || line.contains("##[")).collect()
}

const COMMANDS: [&str; 5] = [
    "::add-mask::secret",
    "::error file=a.rs,line=1::forged",
    "##[add-mask]secret",
    "a\n::set-env name=x::y",
    "b\r::warning::z",
];

#[test]
fn no_name_commands_the_runner() {
    let place = Place::new();
    place.write("hostile.json", &hostile(&COMMANDS));
    place.write("::error::query.sql", "-- title: ::error::title\n-- expect no rows\nSELECT name, duration FROM tasks");
    place.write("held.sql", "-- expect same as: held.csv\nSELECT name FROM tasks");
    place.write("held.csv", "name\n::error::expected\n");
    fs::copy(place.path("hostile.json"), place.path("::error::run.json")).unwrap();
    let ask = "SELECT name, duration FROM tasks ORDER BY start";
    for arguments in [
        &["query", "hostile.json", "--format", "table", "-c", ask][..],
        &["query", "hostile.json", "--format", "json", "-c", ask],
        &["query", "hostile.json", "--format", "ndjson", "-c", ask],
        &["query", "hostile.json", "--format", "markdown", "-c", ask],
        &["query", "hostile.json", "--format", "chrome", "-c", "SELECT * FROM tasks"],
        &["query", "hostile.json", "--format", "svg", "-c", "SELECT * FROM tasks"],
        &["query", "::error::run.json", "-c", "SELECT 1; SELECT * FROM nothing"],
        &["query", "hostile.json", "-c", "SELECT CAST(name AS BIGINT) FROM tasks"],
        &["query", "hostile.json", "::error::query.sql", "--format", "table"],
        &["queries", "--queries", "."],
        &["report", "hostile.json"],
        &["report", "::error::run.json", "--tables"],
        &["report", "hostile.json", "--html"],
        &["check", "hostile.json", "--query", "::error::query.sql", "--markdown"],
        &["check", "hostile.json", "--query", "::error::query.sql", "held.sql"],
        &["::error::none.json"],
        &["query", "hostile.json", "--format", "::error::x"],
    ] {
        let answer = place.on_github(arguments);
        assert_eq!(commands(&answer.stdout), Vec::<&str>::new(), "{arguments:?}\n{}", answer.stdout);
        assert_eq!(commands(&answer.stderr), Vec::<&str>::new(), "{arguments:?}\n{}", answer.stderr);
    }
    // JSON says the same as ever.
    let json = place.on_github(&["query", "hostile.json", "--format", "json", "-c", ask]).stdout;
    let names: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(names[2]["name"], "##[add-mask]secret");
}

#[test]
fn csv_for_a_log_stops_the_runner_and_a_file_never_changes() {
    let place = Place::new();
    place.write("hostile.json", &hostile(&COMMANDS));
    let csv = &["query", "hostile.json", "--format", "csv", "-c", "SELECT name FROM tasks ORDER BY start"];
    let plain = place.tq_args(csv).stdout;
    let guarded = place.on_github(csv).stdout;
    let token = guarded.lines().find_map(|line| line.strip_prefix("::stop-commands::")).unwrap();
    assert!(token.len() >= 32);
    assert_eq!(
        guarded.replace(&format!("::stop-commands::{token}\n"), "").replace(&format!("::{token}::\n"), ""),
        plain
    );
    assert!(guarded.ends_with(&format!("::{token}::\n")));
    let before = guarded.split("::stop-commands::").next().unwrap();
    assert!(commands(before).is_empty());
    let other = place.on_github(csv).stdout;
    assert!(!other.contains(token), "a token is used once");
    // A file is no log.
    for name in ["answer.csv", "answer.json"] {
        place
            .on_github(&["query", "hostile.json", "-c", "SELECT name FROM tasks ORDER BY start", "-o", name])
            .is_fine();
    }
    assert_eq!(place.read("answer.csv"), plain);
    assert!(place.read("answer.json").contains("##[add-mask]secret"));
    let redirected = fs::File::create(place.path("redirected.csv")).unwrap();
    place.command(csv).env("GITHUB_ACTIONS", "true").stdout(redirected).status().unwrap();
    assert_eq!(place.read("redirected.csv"), plain);
    // What is for people may be printed later.
    let table: &[&str] = &["query", "hostile.json", "--format", "table", "-c", "SELECT name FROM tasks"];
    let redirected = fs::File::create(place.path("table.txt")).unwrap();
    place.command(table).env("GITHUB_ACTIONS", "true").stdout(redirected).status().unwrap();
    assert!(commands(&place.read("table.txt")).is_empty(), "{}", place.read("table.txt"));
    // Where nothing is a command, nothing is added.
    let harmless = &["query", "run.json", "--format", "csv", "-c", "SELECT name FROM tasks"];
    assert_eq!(place.on_github(harmless).stdout, place.tq_args(harmless).stdout);
}

#[test]
fn the_only_commands_are_annotations_of_ours() {
    let place = Place::new();
    place.write("hostile.json", &hostile(&COMMANDS));
    place.write("a,b:c%.sql", "-- expect every row: name = '::error::x'\nSELECT name, duration FROM tasks");
    // With the flag alone, wherever it runs.
    let answer = place.tq_args(&["check", "hostile.json", "--query", "a,b:c%.sql", "--github"]);
    assert_eq!(answer.status, Some(1));
    let found = commands(&answer.stdout);
    assert_eq!(found.len(), 1, "{}", answer.stdout);
    assert!(
        found[0].starts_with("::error file=a%2Cb%3Ac%25.sql,line=1,title=tq check%3A a%2Cb%3Ac%25::"),
        "{}",
        found[0]
    );
    let summary = place.tq_args(&["check", "hostile.json", "--query", "a,b:c%.sql", "--github", "--markdown"]);
    assert_eq!((commands(&summary.stdout).len(), commands(&summary.stderr).len()), (0, 1));
}

/// Files for people are printed some day. (A column may be called like a command, line end included.)
#[test]
fn files_for_people_command_nobody() {
    let place = Place::new();
    place.write("hostile.json", &hostile(&COMMANDS));
    place.write(
        "q.sql",
        "-- title: q\n-- expect no rows\nSELECT name, start, duration, location AS \"\n::error::column\" FROM tasks",
    );
    let ask = "SELECT * FROM tasks";
    for (line, status) in [
        (
            &[
                "check",
                "hostile.json",
                "--query",
                "q.sql",
                "--markdown=summary.md",
                "--junit",
                "q.xml",
                "--picture",
                "q.svg",
            ][..],
            1,
        ),
        (&["report", "hostile.json", "-o", "page.md"], 0),
        (&["report", "hostile.json", "-o", "page.html"], 0),
        (&["query", "hostile.json", "-c", ask, "--format", "table", "-o", "rows.txt"], 0),
        (&["query", "hostile.json", "-c", ask, "-o", "rows.md"], 0),
        (&["query", "hostile.json", "-c", ask, "-o", "rows.svg"], 0),
    ] {
        let told = place.on_github(line);
        assert_eq!(told.status, Some(status), "{line:?}\n{}", told.stderr);
    }
    let files: Vec<_> = std::fs::read_dir(place.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|file| {
            ["md", "xml", "svg", "html", "txt"].iter().any(|known| file.extension().is_some_and(|own| own == *known))
        })
        .collect();
    let mut quote = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        quote += usize::from(text.contains("add-mask"));
        assert_eq!(commands(&text), [""; 0], "{}", file.display());
    }
    assert!(quote >= 8, "only {quote} files hold a name");
}

#[test]
fn no_message_is_longer_than_people_read() {
    let place = Place::new();
    let long = "x".repeat(500_000);
    place.write("name.sql", &format!("-- title: t\n-- expect no rows\nSELECT \"{long}\", {long}(1) FROM tasks"));
    for line in ["query run.json -f name.sql", "check run.json --query name.sql --junit q.xml --github"] {
        let answer = place.tq(line);
        assert_eq!(answer.status, Some(2), "{line}");
        assert!(answer.stdout.len() + answer.stderr.len() < 20_000, "{line}");
    }
    assert!(place.read("q.xml").len() < 20_000);
}

#[test]
fn names_are_no_placeholders_and_no_addresses() {
    let place = Place::new();
    place.write("hostile.json", &hostile(&["{{runs}}", "{{queries}}", "(tq-picture:0)", "x](tq-picture:0)"]));
    place.write(
        "page.md",
        "# About {{runs}}\nAsked: {{queries}}\n\n```sql\nSELECT name FROM tasks ORDER BY start\n```\n\n```sql\nlongest-tasks limit=4\n```\n",
    );
    let page = place.tq("report hostile.json --template page.md").stdout;
    assert!(page.starts_with("# About hostile\n\nAsked: `longest-tasks`\n"), "{page}");
    for name in ["{{runs}}", "{{queries}}", "(tq-picture:0)", "x\\](tq-picture:0)"] {
        assert!(page.contains(&format!("| {name} |")), "{name}\n{page}");
    }
    let built_in = place.tq("report hostile.json").stdout;
    assert!(built_in.contains("{{runs}}") && !built_in.contains("\u{1}"), "{built_in}");
}

#[test]
fn names_are_no_markup() {
    let place = Place::new();
    let names = [
        "[click](https://evil.example)",
        "![x](https://evil.example/x.png)",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a | b | c",
        "```\n# heading",
        "https://evil.example",
        "<!-- x",
        "]]></title><script>alert(2)</script>",
    ];
    place.write("hostile.json", &hostile(&names));
    place.write("a.sql", "-- title: t\n-- expect no rows\nSELECT name, duration FROM tasks ORDER BY start");
    let markdown = place.tq("query hostile.json --format markdown -f a.sql").stdout;
    let report = place.tq("report hostile.json --tables").stdout;
    let summary = place.tq("check hostile.json --query a.sql --markdown").stdout;
    for text in [&markdown, &report, &summary] {
        assert!(
            !text.contains("[click]") && !text.contains("![x]") && !text.contains("<script") && !text.contains("<img"),
            "{text}"
        );
        assert!(!text.lines().any(|line| line.starts_with("# heading") || line == "```"), "{text}");
        assert!(!text.contains("https://evil") && !text.contains("| a | b"), "{text}");
    }
    let html = place.tq("report hostile.json --html --no-timeline").stdout;
    let svg = place.tq("query hostile.json --format svg -c 'SELECT * FROM tasks'").stdout;
    place.tq("check hostile.json --query a.sql --junit check.xml");
    for text in [&html, &svg, &place.read("check.xml")] {
        assert!(
            !text.contains("<script") && !text.contains("<img src=x") && !text.contains("href=\"https://evil"),
            "{text}"
        );
    }
    assert!(html.contains("script-src 'none'"));
    // The time line brings two scripts, known by their hashes; names come packed, and as text.
    let html = place.tq("report hostile.json --html").stdout;
    let policy = html.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    let scripts = policy.split("; ").find(|rule| rule.starts_with("script-src ")).unwrap();
    assert!(scripts.matches("'sha256-").count() == 2 && !scripts.contains("unsafe"), "{policy}");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("http"), "{policy}");
    assert_eq!(html.matches("<script").count(), 1, "that of the frame stands in its attribute, escaped");
    let frame = html.split("<iframe").nth(1).unwrap().split("</iframe>").next().unwrap();
    assert!(!frame.contains("alert(") && !frame.contains("evil"), "names are packed");
    // A page of a stranger's own.
    place.write(
        "page.md",
        "# x\n[a](java\tscript:alert(1)) ![b](data:image/svg+xml,\" onload=\"alert(1)) <script>alert(1)</script>\n",
    );
    let html = place.tq("report hostile.json --html --template page.md").stdout;
    assert!(!html.contains("<script") && !html.contains("onload=\""), "{html}");
    let tags = |text: &str| {
        text.split('<').filter_map(|rest| Some(rest.split_once('>')?.0.to_lowercase())).collect::<Vec<_>>()
    };
    assert!(!tags(&html).iter().any(|tag| tag.contains("script:") || tag.contains("onerror")), "{html}");
    // Whatever spells an address that runs code, or a tag.
    place.write(
        "page.md",
        "# x\n[a](javascript:alert(1)) <javascript:alert(2)> [b][r] [c](<java&#x73;cript:alert(3)>) [d](data:text/html,x)\n\n\
         <img src=x onerror=alert(4)>\n\n- <b onclick=alert(5)>\n\n![<i>](javascript:x)\n\n[r]: vbscript:alert(6)\n",
    );
    let html = place.tq("report hostile.json --html --template page.md").stdout;
    let written = tags(&html);
    assert_eq!(written.iter().filter(|tag| **tag == "a href=\"#\"").count(), 5, "{html}");
    assert!(
        !written.iter().any(|tag| tag.starts_with("b ") || tag.starts_with("i>") || tag.contains("onerror")),
        "{html}"
    );
}

const HIDDEN: [char; 13] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}',
    '\u{2067}', '\u{2068}', '\u{2069}', '\u{1b}',
];

#[test]
fn what_cannot_be_seen_is_shown_to_people_and_kept_for_programs() {
    let place = Place::new();
    let name: String = HIDDEN.iter().collect::<String>() + "[31mred\u{9b}";
    place.write("hostile.json", &hostile(&[&name]));
    let file = format!("{name}.json");
    place.write(&file, &hostile(&[&name]));
    place.write("a.sql", &format!("-- title: {name}\n-- expect no rows\nSELECT name, duration FROM tasks"));
    place.write("b.sql", "-- expect same as: b.csv\nSELECT name FROM tasks");
    place.write("b.csv", &format!("name\nb{name}\n"));
    place.write("page.md", &format!("# {name}\n```sql\nSELECT name FROM tasks\n```\n"));
    let hidden = |c: char| HIDDEN.contains(&c) || (c.is_control() && !matches!(c, '\n' | '\t'));
    for arguments in [
        &["query", "hostile.json", "--format", "table", "-c", "SELECT name FROM tasks"][..],
        &["query", "hostile.json", "--format", "table", "-c", "SELECT name AS plan_type, name AS plan FROM tasks"],
        &["query", "hostile.json", "--format", "markdown", "-c", "SELECT name FROM tasks"],
        &["query", "hostile.json", "--format", "svg", "-c", "SELECT * FROM tasks"],
        &["query", "hostile.json", "--chart", "bar x=duration y=name", "-c", "SELECT name, duration FROM tasks"],
        &["query", "hostile.json", "-c", "SELECT CAST(name AS BIGINT) FROM tasks"],
        &["query", &file, "-c", &format!("SELECT '{name}' FROM nothing")],
        &["query", &format!("none{name}"), "-c", "SELECT 1"],
        &["query", &file, "--from", "1s", "-c", "SELECT 1 AS one"],
        &["check", "hostile.json", "--query", "a.sql", "b.sql", "--junit", "check.xml"],
        &["check", "hostile.json", "--query", "a.sql", "b.sql", "--github"],
        &["check", "hostile.json", "--query", "a.sql", "b.sql", "--markdown"],
        &["report", &file],
        &["report", &file, "--html"],
        &["report", &file, "--template", "page.md"],
        &["queries", "--queries", "."],
        &["queries", "--queries", ".", "a"],
    ] {
        let answer = place.tq_args(arguments);
        for text in [&answer.stdout, &answer.stderr] {
            assert!(!text.contains(hidden), "{arguments:?}\n{}", text.escape_debug());
        }
        let says = format!("{}{}", answer.stdout, answer.stderr);
        assert!(
            says.contains("\\u{202e}") || says.contains("base64") || says.contains("nothing of run"),
            "{arguments:?}\n{says}"
        );
    }
    assert!(!place.read("check.xml").contains(hidden) && place.read("check.xml").contains("\\u{202e}"));
    for format in ["csv", "json", "ndjson", "tsv"] {
        let text = place.tq_args(&["query", "hostile.json", "--format", format, "-c", "SELECT name FROM tasks"]).stdout;
        let kept = if format.contains("json") {
            text.contains('\u{202e}') || text.contains("\\u202e")
        } else {
            text.contains(&name)
        };
        assert!(kept, "{format}: {}", text.escape_debug());
    }
}

#[test]
fn two_outputs_are_never_one_file_though_one_is_numbered() {
    let place = Place::new();
    place.write("a.sql", "-- expect no rows\nSELECT 1 AS a\n");
    place.write("b.sql", "-- expect no rows\nSELECT 1 AS a\n");
    let check = |junit: &str| {
        place.tq_args(&["check", "run.json", "--query", "a.sql", "b.sql", "--junit", junit, "--picture", "q.svg"])
    };
    check("q-2.svg").refused("--junit `q-2.svg` may be a file of --picture");
    assert_eq!(check("q.xml").status, Some(1));
}

#[test]
fn names_and_types_without_end_are_refused_before_they_are_parsed() {
    let place = Place::new();
    place.write("name.sql", &format!("SELECT {}b FROM tasks", "a.".repeat(200_000)));
    place.tq("query run.json -f name.sql").refused("more than 64 parts of one name");
    let nested = format!("SELECT arrow_cast(1, '{}Int64{}')", "List(".repeat(50_000), ")".repeat(50_000));
    place.write("type.sql", &nested);
    place.tq("query run.json -f type.sql").refused("more than 64 types within each other");
    place.tq_args(&["query", "-c", "SELECT arrow_cast([1], 'List(Int32)')"]).is_fine();
    let many = format!("SELECT {} FROM tasks", vec!["tasks.start"; 100].join(" + "));
    place.tq_args(&["query", "run.json", "-c", &many]).is_fine();
}

/// A pull request brings its own queries; what is compared without `--query` is none of them.
#[test]
fn what_a_project_calls_makespan_is_no_gate() {
    let place = Place::new();
    place.write("slower.json", &super::TRACE.replace("[20,80]", "[20,180]"));
    let arguments = "check slower.json --baseline run.json";
    let before = place.tq(arguments);
    assert_eq!(before.status, Some(1), "{}{}", before.stdout, before.stderr);
    for (name, column) in [("makespan", "makespan"), ("busy-time", "busy_time"), ("critical-path-length", "path_time")]
    {
        let query = format!("-- title: a\n-- topic: b\n\nSELECT run, 1 AS {column} FROM runs");
        place.write(&format!(".tq/queries/{name}.sql"), &query);
    }
    let after = place.tq(arguments);
    assert_eq!((after.status, after.stdout), (before.status, before.stdout));
}
