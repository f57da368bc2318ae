//! Messages for what can go wrong between a path and its tables.

use std::path::Path;

use tq_engine::error::ImportError;
use tq_engine::nearest::nearest;
use tq_engine::open::TraceSpec;
use tq_engine::queries::Library;

use super::{Failure, Problem, did_you_mean};
use crate::args::command_names;
use crate::commands::formats::that_reads;

/// How many names a hint lists.
const NAMES_SHOWN: usize = 6;

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        word(&error, &[]).into()
    }
}

/// What went wrong with those traces.
pub(crate) fn word(error: &ImportError, traces: &[String]) -> Problem {
    let problem = Problem::new(error.to_string());
    match error {
        ImportError::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => not_found(problem, path),
        ImportError::Io { .. } => problem,
        ImportError::Empty { .. } => problem.hint("it has 0 bytes: was the recording stopped before it was written?"),
        ImportError::Unrecognised { .. } => problem
            .hint("`tq formats` lists what is recognised; `--from-format F` reads it as F and says where it differs"),
        ImportError::NothingInDirectory { .. } => {
            problem.hint("`tq formats` lists what is recognised; a directory is searched without its subdirectories")
        }
        ImportError::Damaged { format, path, .. } => {
            let problem = problem.hint(format!("`tq formats {format}` says which versions are read"));
            let is_parent = |trace: &&String| path.parent() == Some(TraceSpec::parse(trace).path.as_path());
            match traces.iter().find(is_parent) {
                Some(directory) => problem.hint(format!("a directory is read whole or not at all: name the other files of `{directory}`, or move this one away")),
                None => problem,
            }
        }
        ImportError::UnknownOption { option, known } => {
            let keys = known.iter().map(String::as_str);
            let problem = Problem::new(format!("no import option `{option}`{}", did_you_mean(option, keys)));
            problem.hint("`tq formats NAME` lists the options of a format")
        }
        ImportError::BadOption { option, .. } => {
            let format = option.split('.').next().unwrap_or(option);
            problem.hint(format!("`tq formats {format}` lists its options and their values"))
        }
        ImportError::UnknownFormat { name, known } => {
            let problem = Problem::new(format!("no format `{name}`{}", did_you_mean(name, known.iter().copied())));
            match that_reads(name) {
                Some(format) => problem.hint(format!("`{format}` reads it")),
                None => problem.hint(format!("the formats are {}", known.join(", "))),
            }
        }
        ImportError::Unusable { hint, .. } | ImportError::Session { hint, .. } => match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        },
        ImportError::Memory { .. } => {
            Problem { is_beyond_limit: true, ..problem.hint("give it more with `--memory 8GB`") }
        }
        ImportError::Late { path, limit } => super::timeout::late_reading(path, *limit),
        ImportError::TooLong { .. } => {
            problem.hint("if records really are that long, raise the limit, e.g. `--max-value 1GB`: a record may be four times as long")
        }
        ImportError::Internal { path, what } => {
            Problem::internal(&format!("building the tables of `{}`: {what}", path.display()))
        }
    }
}

/// Commands of other tools, and ours for the same.
const OF_OTHER_TOOLS: [(&str, &str); 7] = [
    ("compare", "tq diff BASE NEW"),
    ("stats", "tq report TRACE"),
    ("summary", "tq report TRACE"),
    ("analyze", "tq report TRACE"),
    ("export", "tq query TRACE -c 'SELECT …' -o FILE"),
    ("convert", "tq import TRACE --into STORE"),
    ("open", "tq TRACE"),
];

/// A path that does not exist: a misspelt command, a near file name, or what its directory holds.
fn not_found(problem: Problem, path: &Path) -> Problem {
    let text = path.to_string_lossy();
    let commands = command_names();
    if let Some((_, command)) = OF_OTHER_TOOLS.iter().find(|(word, _)| *word == text) {
        return problem.hint(format!("did you mean `{command}`?"));
    }
    if !text.contains(['/', '.'])
        && let Some(command) = nearest(&text, commands.iter().map(String::as_str))
    {
        return problem.hint(format!("did you mean the command `tq {command}`?"));
    }
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let problem = match is_word {
        true if Library::default().names().contains(&text.as_ref()) => {
            problem.hint(format!("`{text}` is a saved query: `tq query TRACE {text}`"))
        }
        true => problem.hint("`tq --help` lists the commands, `tq queries` the saved queries"),
        false => problem,
    };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return problem.hint(format!("there is no directory `{}` either", directory.display()));
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let spelt = |name: &str| {
        if directory == Path::new(".") { name.to_owned() } else { directory.join(name).display().to_string() }
    };
    if let Some(near) = nearest(&own, names.iter().map(String::as_str)) {
        return problem.hint(format!("did you mean `{}`?", spelt(near)));
    }
    if names.is_empty() {
        return problem.hint(format!("`{}` is an empty directory", directory.display()));
    }
    let shown: Vec<String> = names.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
    let more =
        if names.len() > NAMES_SHOWN { format!(" and {} more", names.len() - NAMES_SHOWN) } else { String::new() };
    problem.hint(format!("`{}` holds {}{more}", directory.display(), shown.join(", ")))
}
