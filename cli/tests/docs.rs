//! What the pages say is what `tq` does: generated pages are current, and every command that README and `docs/` show is
//! run again. `UPDATE_EXPECT=1` rewrites the pages; read the diff before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn generated_pages_are_current() {
    for (page, command) in
        [("docs/functions.md", "functions"), ("docs/formats.md", "formats"), ("docs/tables.md", "tables")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_tq")).args([command, "--markdown"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "tq {command} --markdown");
        expect_test::expect_file![root().join(page)].assert_eq(&String::from_utf8(output.stdout).unwrap());
    }
}

/// In a ```` ```text ```` block, `$ tq …` is a command and what follows, up to the next one, its answer.
#[test]
fn shown_commands_answer_as_shown() {
    let mut pages = vec![root().join("README.md")];
    pages.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    pages.sort();
    let mut commands = 0;
    for page in pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(page).unwrap();
        let mut current = String::new();
        let mut lines = text.lines().peekable();
        let mut in_block = false;
        while let Some(line) = lines.next() {
            writeln!(current, "{line}").unwrap();
            if line.starts_with("```") {
                in_block = line == "```text";
            }
            let Some(first) = line.strip_prefix("$ ").filter(|_| in_block) else { continue };
            let mut command = first.to_owned();
            while goes_on(&command) {
                let next = lines.next().unwrap();
                writeln!(current, "{next}").unwrap();
                write!(command, "\n{next}").unwrap();
            }
            while lines.peek().is_some_and(|line| !line.starts_with("```") && !line.starts_with("$ ")) {
                lines.next();
            }
            current.push_str(&answer(&command));
            commands += 1;
        }
        expect_test::expect_file![page].assert_eq(&current);
    }
    assert!(commands > 5, "{commands} commands found");
}

/// Whether a shell would want another line: a quotation is open, or a backslash ends the line.
fn goes_on(command: &str) -> bool {
    let mut quote = None;
    for c in command.chars() {
        quote = match quote {
            None if c == '"' || c == '\'' => Some(c),
            Some(open) if open == c => None,
            other => other,
        };
    }
    quote.is_some() || command.ends_with('\\')
}

/// Runs a shown command from the root of the project, and gives stdout, then stderr.
fn answer(command: &str) -> String {
    let tq = Path::new(env!("CARGO_BIN_EXE_tq")).parent().unwrap();
    let path = std::env::join_paths(
        [tq.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let output = Command::new("sh").args(["-c", command]).current_dir(root()).env("PATH", path).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}
