//! The prompt in a terminal: what a person types and sees. Runs `tq` behind a pseudo-terminal of 80 columns.
//!
//! Every step waits for what it expects and for the next prompt, so a slow machine makes the test slow and not red.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::process::Command;

use rexpect::session::{PtySession, spawn_command};
use tempfile::TempDir;

const TRACE: &str = r#"[{"executor":"0","data":[
{"worker":0,"level":0,"data":[{"span":[0,40],"name":"a","type":"static"},{"span":[50,60],"name":"c","type":"static"}]},
{"worker":1,"level":0,"data":[{"span":[20,80],"name":"b","type":"static"}]}]}]"#;

const PATIENCE_MS: u64 = 120_000;

/// `tq run.json` in a terminal, after its greeting.
fn prompt(place: &TempDir) -> PtySession {
    std::fs::write(place.path().join("run.json"), TRACE).unwrap();
    let mut session = started(place, "run.json");
    session.exp_string("run (tfprof): 3 tasks on 3 locations, 2 of which execute, makespan 80.0 ").unwrap();
    session.exp_string("E0/W1 was busiest, 75 %").unwrap();
    session.exp_string("Worth asking:").unwrap();
    session.exp_string("\\run load-imbalance").unwrap();
    session.exp_string("tq> ").unwrap();
    session
}

/// Stacks are weighed: what needs times is not offered, and their weight is no makespan.
#[test]
fn folded_stacks_are_offered_what_fits_them() {
    let place = TempDir::new().unwrap();
    std::fs::write(place.path().join("a.folded"), "main;solve 60\nmain;read 30\nmain 10\n").unwrap();
    let mut session = started(&place, "a.folded");
    session.exp_string("a (folded): 3 tasks on 1 location, in all 100 weights").unwrap();
    session.exp_string("\\run weights-by-name").unwrap();
    session.exp_string("\\run flame-graph").unwrap();
    session.exp_string("\\run call-tree").unwrap();
    session.exp_string("tq> ").unwrap();
    enter(&mut session, "\\q");
    session.exp_eof().unwrap();
}

/// `tq` with arguments in a terminal.
fn started(place: &TempDir, arguments: &str) -> PtySession {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("stty cols 80 rows 24; exec '{}' {arguments}", env!("CARGO_BIN_EXE_tq")))
        .current_dir(place.path())
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("PAGER", "cat")
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"));
    spawn_command(command, Some(PATIENCE_MS)).unwrap()
}

/// Waits for an answer and for the prompt behind it.
fn expect(session: &mut PtySession, answer: &str) {
    session.exp_string(answer).unwrap();
    session.exp_string("tq> ").unwrap();
}

/// Types a line and Enter.
fn enter(session: &mut PtySession, line: &str) {
    session.send(line).unwrap();
    session.send("\r").unwrap();
    session.flush().unwrap();
}

/// Ctrl-C, after which the prompt still answers.
fn interrupt(mut session: PtySession) {
    session.send_control('c').unwrap();
    expect(&mut session, "interrupted");
    enter(&mut session, "SELECT 41 + 1;");
    expect(&mut session, "42");
    enter(&mut session, "\\q");
    session.exp_eof().unwrap();
}

#[test]
fn a_session_at_the_prompt() {
    let place = TempDir::new().unwrap();
    let mut session = prompt(&place);

    // A statement over two lines, then its picture.
    enter(&mut session, "SELECT name, duration");
    enter(&mut session, "FROM tasks ORDER BY name;");
    session.exp_string("40.0 ").unwrap();
    expect(&mut session, "(3 rows)");
    enter(&mut session, "\\plot");
    session.exp_string("duration by name").unwrap();
    // The reader takes bytes for letters, so bars are not looked for.
    expect(&mut session, "60.0 ");

    // An error keeps the prompt.
    enter(&mut session, "SELECT * FROM taks;");
    expect(&mut session, "did you mean `tasks`?");

    // Hints name the prompt's own commands, and lines end between words.
    enter(&mut session, "SELECT nosuchfunction(1) FROM tasks;");
    expect(&mut session, "hint: `\\f` lists the functions");
    enter(&mut session, "SELECT nothing FROM tasks;");
    expect(&mut session, "location,\r\nstart, finish");

    // Tab completes a column of the table in FROM.
    enter(&mut session, "SELECT name FROM tasks WHERE dura\t = 60000;");
    expect(&mut session, "(1 row)");

    // Settings: ticks, and rows with a count of the others.
    enter(&mut session, "\\set times ticks");
    expect(&mut session, "\\set times ticks");
    enter(&mut session, "\\set rows 2");
    expect(&mut session, "\\set rows 2");
    enter(&mut session, "SELECT duration FROM tasks;");
    session.exp_string("40000").unwrap();
    expect(&mut session, "(the first 2 of 3 rows)");

    // A command within a statement is answered at once, and the statement goes on.
    enter(&mut session, "SELECT count(*) AS counted");
    enter(&mut session, "\\x");
    session.exp_string("Rows are lists.").unwrap();
    session.exp_string("tq> SELECT count(*) AS counted").unwrap();
    enter(&mut session, "FROM tasks;");
    expect(&mut session, "(1 row)");
    enter(&mut session, "\\x");
    expect(&mut session, "Rows are lines of a table.");

    // A saved query, by its name.
    enter(&mut session, "\\run longest-tasks limit=1");
    expect(&mut session, "(1 row)");

    // Ctrl-D leaves, and the history is there.
    session.send_control('d').unwrap();
    session.exp_eof().unwrap();
    let file = place.path().join("state/tq/history");
    let history = std::fs::read_to_string(&file).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "what was typed is for its owner only");
    assert!(history.contains("SELECT * FROM taks;"), "{history}");
}

/// Lines that come while a statement runs wait for their turn.
#[test]
fn what_is_typed_ahead_is_answered_in_its_turn() {
    let place = TempDir::new().unwrap();
    let mut session = prompt(&place);
    session.send("SELECT 40 + 1 AS a;\rSELECT 50 + 2 AS b;\rSELECT 60 + 3 AS c;\r").unwrap();
    session.flush().unwrap();
    for answer in ["41", "52", "63"] {
        expect(&mut session, answer);
    }
    enter(&mut session, "\\q");
    session.exp_eof().unwrap();
}

#[test]
fn a_watched_statement_is_asked_until_ctrl_c() {
    let place = TempDir::new().unwrap();
    let mut session = prompt(&place);
    enter(&mut session, "SELECT count(*) AS watched FROM tasks;");
    expect(&mut session, "(1 row)");
    enter(&mut session, "\\watch 0.1");
    for _ in 0..3 {
        session.exp_string("until Ctrl-C").unwrap();
        session.exp_string("watched").unwrap();
    }
    interrupt(session);
}

#[test]
fn ctrl_c_ends_the_query_and_not_the_prompt() {
    let place = TempDir::new().unwrap();
    let mut session = prompt(&place);
    enter(&mut session, "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b;");
    // Only a query that runs shows this; earlier the editor would take the key.
    session.exp_string("Ctrl-C ends it").unwrap();
    interrupt(session);
}

#[test]
fn whoever_has_no_trace_gets_one_to_play_with() {
    let place = TempDir::new().unwrap();
    let mut session = started(&place, "");
    session.exp_string("No trace is open").unwrap();
    expect(&mut session, "`\\open example` opens a small one");
    enter(&mut session, "\\open example");
    session.exp_string("example (tfprof): 576 tasks on ").unwrap();
    expect(&mut session, "\\run critical-path-by-name");
    enter(&mut session, "SELECT count(*) AS tasks FROM tasks;");
    expect(&mut session, "576");
    enter(&mut session, "\\q");
    session.exp_eof().unwrap();
    // Quiet is quiet.
    let mut session = started(&place, "-q");
    let greeting = session.exp_string("tq> ").unwrap();
    assert!(greeting.contains("No trace is open") && !greeting.contains("example"), "{greeting}");
    enter(&mut session, "\\q");
    session.exp_eof().unwrap();
}
