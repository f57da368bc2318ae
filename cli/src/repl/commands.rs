//! The commands of the prompt that are not SQL: one table for parsing, completion and help.

use tq_engine::nearest::nearest;

use crate::errors::{Failure, Problem};
use crate::terminal;
use crate::text::words::listed;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Tables,
    Functions,
    Include,
    Output,
    Run,
    Plot,
    Report,
    Open,
    Cluster,
    Timing,
    Expanded,
    Explain,
    Watch,
    Set,
    Quit,
    Help,
}

/// What stands behind a command; completion goes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    Nothing,
    /// `on`, `off`, or nothing for the other one.
    Switch,
    Table,
    Function,
    File,
    Query,
    Chart,
    Setting,
    Workers,
    Sql,
}

/// A line of the table.
#[derive(Debug)]
pub(super) struct Command {
    /// The usual name and others.
    pub(super) names: &'static [&'static str],
    pub(super) action: Action,
    pub(super) argument: Argument,
    /// How it is typed.
    pub(super) usage: &'static str,
    pub(super) help: &'static str,
}

const fn command(
    names: &'static [&'static str],
    action: Action,
    argument: Argument,
    usage: &'static str,
    help: &'static str,
) -> Command {
    Command { names, action, argument, usage, help }
}

/// All commands.
pub(super) const COMMANDS: &[Command] = &[
    command(&["\\d", "\\dt"], Action::Tables, Argument::Table, "\\d [TABLE]", "the tables, or the columns of one"),
    command(
        &["\\f", "\\df"],
        Action::Functions,
        Argument::Function,
        "\\f [FUNCTION]",
        "the functions, or the documentation of one with an example",
    ),
    command(
        &["\\run"],
        Action::Run,
        Argument::Query,
        "\\run [NAME [key=value …]]",
        "the saved queries, or the answer of one",
    ),
    command(&["\\i", "\\include"], Action::Include, Argument::File, "\\i FILE", "run the statements of a file"),
    command(
        &["\\o", "\\out"],
        Action::Output,
        Argument::File,
        "\\o [FILE]",
        "write the next answer to a file (its extension tells the format), or print again",
    ),
    command(
        &["\\plot"],
        Action::Plot,
        Argument::Chart,
        "\\plot [bar|line] [x=…] [y=…]",
        "the last answer as bars or a line",
    ),
    command(&["\\report"], Action::Report, Argument::File, "\\report [FILE]", "write the report of the open traces"),
    command(
        &["\\open"],
        Action::Open,
        Argument::File,
        "\\open TRACE…",
        "open other traces instead; `\\open example` a small one",
    ),
    command(
        &["\\cluster"],
        Action::Cluster,
        Argument::Workers,
        "\\cluster [WORKERS]",
        "let workers do parts of queries about the open stores, `off` for none, or say who does",
    ),
    command(&["\\explain"], Action::Explain, Argument::Sql, "\\explain SQL;", "how a statement would be answered"),
    command(
        &["\\watch"],
        Action::Watch,
        Argument::Nothing,
        "\\watch [SECONDS]",
        "ask the last statement again and again, until Ctrl-C",
    ),
    command(
        &["\\timing"],
        Action::Timing,
        Argument::Switch,
        "\\timing [on|off]",
        "show how long each statement takes, or stop",
    ),
    command(
        &["\\x"],
        Action::Expanded,
        Argument::Switch,
        "\\x [on|off]",
        "show each row as a list of its columns, or as a table again",
    ),
    command(
        &["\\set"],
        Action::Set,
        Argument::Setting,
        "\\set [NAME VALUE]",
        "the settings of the prompt, or change one",
    ),
    command(&["\\q", "\\quit"], Action::Quit, Argument::Nothing, "\\q", "leave (so does Ctrl-D)"),
    command(&["\\?", "\\h", "\\help"], Action::Help, Argument::Nothing, "\\?", "this"),
];

/// What `\?` prints.
pub(super) fn help() -> String {
    let entries: Vec<(String, String)> =
        COMMANDS.iter().map(|command| (command.usage.to_owned(), command.help.to_owned())).collect();
    let mut text = listed(&entries, terminal::width());
    text.push_str(
        "\n\
SQL ends with `;` and may take several lines; Tab completes names, Up brings
back what you typed. Ctrl-C ends a query and keeps the prompt. Try:
  SELECT name, count(*) AS tasks, sum(duration) AS total FROM tasks
    GROUP BY name ORDER BY total DESC LIMIT 10;
  \\plot
",
    );
    text
}

/// What a command of psql or sqlite3 is here.
fn of_another(name: &str) -> Option<&'static str> {
    Some(match name {
        "\\l" | "\\list" | "\\dn" | "\\dv" | "\\dm" => "\\d",
        "\\c" | "\\connect" => "\\open",
        "\\g" | "\\e" | "\\r" | "\\s" => "\\?",
        "\\pset" => "\\set",
        "\\exit" => "\\q",
        _ => return None,
    })
}

/// What a word that stands alone means at the prompt, without `\` and `;`: no statement of SQL is one word of these.
pub(super) fn of_word(text: &str) -> Option<&'static str> {
    Some(match text.trim().trim_end_matches(';').trim_end().to_lowercase().as_str() {
        "exit" | "quit" => "\\q",
        "help" | "?" => "\\?",
        "tables" => "\\d",
        "functions" => "\\f",
        "queries" => "\\run",
        _ => return None,
    })
}

/// The command of a line and what stands behind it. A `;` out of habit is no part of it.
pub(super) fn parse(line: &str) -> Result<(&'static Command, &str), Failure> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let found = COMMANDS.iter().find(|command| command.names.contains(&name));
    let command = found.ok_or_else(|| {
        let names = COMMANDS.iter().flat_map(|command| command.names).copied();
        let near = of_another(name)
            .or_else(|| nearest(name, names))
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        Problem::new(format!("no command `{name}`{near}")).hint("`\\?` lists the commands")
    })?;
    let rest = rest.trim();
    if command.argument == Argument::Switch && !["", "on", "off"].contains(&rest) {
        return Err(Problem::new(format!("`{name}` takes `on` or `off`, but `{rest}` was given")).into());
    }
    if command.argument == Argument::Nothing && command.action != Action::Watch && !rest.is_empty() {
        return Err(Problem::new(format!("`{name}` takes no argument, but `{rest}` was given")).into());
    }
    Ok((command, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_what_stands_behind_them() {
        let parsed = |text| parse(text).ok().map(|(command, rest)| (command.action, rest));
        assert_eq!(parsed("\\d"), Some((Action::Tables, "")));
        assert_eq!(parsed("\\d tasks;"), Some((Action::Tables, "tasks")));
        assert_eq!(parsed("\\run longest-tasks  limit=5 "), Some((Action::Run, "longest-tasks  limit=5")));
        assert_eq!(parsed("\\frob"), None);
        assert_eq!(parsed("\\timing on"), Some((Action::Timing, "on")));
        assert_eq!(parsed("\\timing maybe"), None);
        let told = parse("\\l").err().map(|failure| match failure {
            Failure::Told(problem) => problem.message.clone(),
            _ => String::new(),
        });
        assert_eq!(told.as_deref(), Some("no command `\\l`; did you mean `\\d`?"));
        assert_eq!([" ?", "Tables;", "quit"].map(of_word), [Some("\\?"), Some("\\d"), Some("\\q")]);
        assert_eq!(["SELECT", "tables t", ""].map(of_word), [None; 3]);
    }

    #[test]
    fn every_command_is_in_the_help() {
        for command in COMMANDS {
            assert!(help().contains(command.usage), "{}", command.usage);
            assert!(command.usage.starts_with(command.names[0]));
        }
    }
}
