//! `tq completions SHELL`, and what `tq` answers a shell that asks for completions.

use super::*;

/// What the last of these words could become, one candidate a line.
fn candidates(place: &Place, shell: &str, words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_tq"))
        .arg("--")
        .args(words)
        .current_dir(place.0.path())
        .env("TQ_COMPLETE", shell)
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("XDG_CONFIG_HOME", place.0.path().join("config"))
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap()),
        (Some(0), String::new()),
        "{words:?}"
    );
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn scripts_make_a_shell_ask() {
    let place = Place::new();
    for (shell, words) in [
        ("bash", ["complete -o", "TQ_COMPLETE=\"bash\"", "\"tq\" --"]),
        ("zsh", ["#compdef tq", "TQ_COMPLETE=\"zsh\"", "compdef _clap_dynamic_completer_tq tq"]),
    ] {
        let script = place.tq(&format!("completions {shell}"));
        assert_eq!((script.status, script.stderr.as_str()), (Some(0), ""));
        for word in words {
            assert!(script.stdout.contains(word), "{word}: {}", script.stdout);
        }
    }
}

#[test]
fn names_are_those_that_there_are() {
    let place = Place::new();
    place.write(".tq/queries/longest-of-ours.sql", "-- title: Ours\nSELECT 1");
    let bash = |words: &[&str]| candidates(&place, "bash", words);
    assert_eq!(bash(&["tq", "queries", "longest"]), ["longest-of-ours", "longest-own-times", "longest-tasks"]);
    assert_eq!(
        bash(&["tq", "query", "run.json", "longest"]),
        ["longest-of-ours", "longest-own-times", "longest-tasks"]
    );
    assert_eq!(bash(&["tq", "query", "ru"])[..1], ["runs-side-by-side"]);
    assert!(bash(&["tq", "query", "ru"]).contains(&"run.json".to_owned()));
    assert_eq!(bash(&["tq", "functions", "critical"]), ["critical_path"]);
    assert_eq!(bash(&["tq", "formats", "tf"]), ["tfprof"]);
    assert_eq!(bash(&["tq", "tables", "mess"]), ["messages", "messages_by_pair"]);
    assert_eq!(bash(&["tq", "report", "ru"]), ["run.json"]);
    assert!(bash(&["tq", "check", "run.json", "--query", "makes"]).contains(&"makespan".to_owned()));
    // Zsh shows what each is.
    assert_eq!(candidates(&place, "zsh", &["tq", "queries", "longest-of"]), ["longest-of-ours:Ours"]);
}

/// What is completed stands on the line as it is, and Enter runs it.
#[test]
fn names_that_a_shell_would_run_are_not_offered() {
    let place = Place::new();
    for name in ["x$(touch a)", "x`a`", "x;a", "x a", "x*", "x&a", "x\u{1b}]0;a", "x\na"] {
        place.write(&format!(".tq/queries/{name}.sql"), "-- title: Theirs\nSELECT 1");
        place.write(&format!("{name}.json"), "");
    }
    place.write("x-fine_1.json", "");
    for words in [
        &["tq", "queries", "x"][..],
        &["tq", "query", "x"],
        &["tq", "report", "x"],
        &["tq", "check", "--baseline", "x"],
        &["tq", "query", "-o", "x"],
        &["tq", "x"],
    ] {
        let found = candidates(&place, "bash", words);
        assert_eq!(found, if words[1] == "queries" { vec![] } else { vec!["x-fine_1.json"] }, "{words:?}");
    }
}
