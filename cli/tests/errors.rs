//! What each wrong input is answered with: a table of commands and their exact messages, `errors.txt`.
//!
//! Each entry is a command and below it what it says on stderr and its exit status; commands run in a directory with the
//! files below. `UPDATE_EXPECT=1` rewrites the table: read each message as a user would before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const TRACE: &str = r#"[{"executor":"0","data":[
{"worker":0,"level":0,"data":[{"span":[0,40],"name":"a","type":"static"},{"span":[50,60],"name":"c","type":"static"}]},
{"worker":1,"level":0,"data":[{"span":[20,80],"name":"b","type":"static"}]}]}]"#;

/// Files that the commands of the table name.
const FILES: &[(&str, &str)] = &[
    ("run.json", TRACE),
    ("empty.json", ""),
    ("notes.txt", "nothing of interest\n"),
    ("cut.json", "[{\"executor\":\"0\",\"data\":[{\"worker\":0,\"le"),
    ("bad.sql", "SELECT 1;\nSELECT strat\nFROM tasks;\n"),
    ("typo.sql", "-- title: A title\n-- topik: tasks\n--\nSELECT 1\n"),
    ("kind.sql", "-- title: A title\n-- topic: tasks\n-- chart: baar x=duration y=name\n--\nSELECT * FROM tasks\n"),
    ("needs.sql", "-- title: A title\n-- topic: tasks\n-- needs: messages\n--\nSELECT * FROM messages\n"),
    ("two.sql", "-- title: A title\n-- topic: tasks\n--\nSELECT 1;\nSELECT 2;\n"),
    (
        "limit.sql",
        "-- title: A title\n-- topic: tasks\n-- param limit: BIGINT = 3 -- how many\n--\nSELECT * FROM tasks LIMIT $limit\n",
    ),
    (
        "kinds.json",
        "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":5},\
         {\"ph\":\"s\",\"id\":1,\"name\":\"f\",\"cat\":\"f\",\"pid\":1,\"tid\":1,\"ts\":1},\
         {\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":5,\"dur\":5},\
         {\"ph\":\"f\",\"id\":1,\"name\":\"f\",\"cat\":\"f\",\"pid\":1,\"tid\":2,\"ts\":6,\"bp\":\"e\"}]",
    ),
    ("marks.csv", "timestamp,name,thread\n1700000000123,a,t1\n1700000000140,b,t1\n"),
    ("bare.csv", "1,2,a\n3,4,b\n"),
    ("titles.csv", "Start Time (ms),\"Elapsed, µs\",Op Name,Thread#,select,from\n1.5,200,read,0,1,2\n"),
    ("config/tq/config.toml", "# the defaults\n"),
    ("wrong/tq/config.toml", "threads = 2\nmemroy = \"2GB\"\n"),
];

#[test]
fn every_wrong_input_gets_its_message() {
    let place = TempDir::new().unwrap();
    for (name, text) in FILES {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors.txt");
    let expected = std::fs::read_to_string(&table).unwrap();
    let mut answered = String::new();
    let mut commands = 0;
    for line in expected.lines() {
        if line.starts_with('#') {
            let _ = writeln!(answered, "{}{line}\n", if answered.is_empty() { "" } else { "\n" });
        } else if let Some(command) = line.strip_prefix("$ ") {
            commands += 1;
            let _ = write!(answered, "{line}\n{}", run(command, place.path()));
        }
    }
    assert!(commands >= 60, "{commands} wrong inputs");
    // None of these belongs into a message, whatever the table says.
    for internal in
        ["Utf8", "Int64(", "Dictionary", "panicked", "RUST_BACKTRACE", "DataFusionError", "Error during", "Some("]
    {
        assert!(!answered.contains(internal), "`{internal}` in a message:\n{answered}");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&table, answered).unwrap();
        return;
    }
    let difference = answered.lines().zip(expected.lines()).find(|(now, then)| now != then);
    assert!(answered == expected, "first difference: {difference:?}\nUPDATE_EXPECT=1 rewrites {}", table.display());
}

/// Stderr and exit status of a command.
fn run(command: &str, place: &Path) -> String {
    let mut words = split(command).into_iter();
    let mut config = "config";
    let mut program = words.next().unwrap();
    if let Some(other) = program.strip_prefix("XDG_CONFIG_HOME=") {
        config = if other == "wrong" { "wrong" } else { "config" };
        program = words.next().unwrap();
    }
    assert_eq!(program, "tq");
    let output = Command::new(env!("CARGO_BIN_EXE_tq"))
        .args(words)
        .current_dir(place)
        .env_remove("RUST_BACKTRACE")
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join(config))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).replace(&place.display().to_string(), "PLACE");
    let mut text = String::new();
    for line in stderr.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(text, "[{}]\n", output.status.code().unwrap_or(-1));
    text
}

/// Words as a shell splits them: at blanks, but not inside of quotes.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut begun) = (String::new(), None, false);
    for c in command.chars() {
        match (quote, c) {
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (Some(open), c) if open == c => quote = None,
            (None, ' ') if begun => {
                words.push(std::mem::take(&mut word));
                begun = false;
            }
            (None, ' ') => {}
            _ => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}
