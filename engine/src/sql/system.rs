//! What the system or a library refused while a query ran: a full disk, a missing directory, a regular expression.

use std::error::Error;
use std::io;

use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;

/// Message and hint, for errors of that kind.
pub(super) fn worded(error: &DataFusionError, text: &str) -> Option<(String, Option<String>)> {
    if let Some(error) = io_error(error) {
        return Some(of_disk(error));
    }
    of_regular_expression(text)
}

fn io_error(error: &DataFusionError) -> Option<&io::Error> {
    match error {
        DataFusionError::IoError(error) => Some(innermost(error)),
        DataFusionError::ArrowError(error, _) => inside(error.as_ref()),
        DataFusionError::External(error) => inside(error.as_ref()),
        _ => None,
    }
}

/// The error of the system in one that other libraries have wrapped.
fn innermost(error: &io::Error) -> &io::Error {
    error.get_ref().and_then(|wrapped| inside(wrapped)).unwrap_or(error)
}

fn inside<'a>(mut error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    loop {
        if let Some(error) = error.downcast_ref() {
            return Some(innermost(error));
        }
        // Arrow does not tell what an error of its came from.
        if let Some(ArrowError::IoError(_, error)) = error.downcast_ref() {
            return Some(innermost(error));
        }
        error = error.source()?;
    }
}

fn of_disk(error: &io::Error) -> (String, Option<String>) {
    let folder = std::env::temp_dir();
    let folder = folder.display();
    let why = "a query that needs more memory than it may have writes there; `--memory` gives it more";
    let text = error.to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            "the disk is full".to_owned(),
            Some(format!("make room in `{folder}`, or `TMPDIR=DIRECTORY tq …` takes another: {why}")),
        ),
        io::ErrorKind::FileTooLarge => (
            format!("a temporary file in `{folder}` may not get as large (`ulimit -f`)"),
            Some(format!("raise that limit: {why}")),
        ),
        // The names of temporary files mean nothing to anyone.
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            if text.contains(&std::env::temp_dir().display().to_string()) =>
        {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "there is no such directory",
                io::ErrorKind::PermissionDenied => "permission denied",
                _ => "the disk is read-only",
            };
            (
                format!("cannot write temporary files to `{folder}`: {reason}"),
                Some(format!("`TMPDIR=DIRECTORY tq …` takes another: {why}")),
            )
        }
        _ => (format!("the system refused: {text}"), None),
    }
}

/// Characters of a pattern in a message.
const PATTERN_SHOWN: usize = 80;

/// What the crate `regex` and those who call it say.
fn of_regular_expression(text: &str) -> Option<(String, Option<String>)> {
    let too_large = || {
        let hint = "what a repetition repeats counts as often: `(a{1000}){1000}` are a million letters".to_owned();
        ("the regular expression is too large".to_owned(), Some(hint))
    };
    if text.contains("CompiledTooBig(") || text.contains("exceeds size limit of") {
        let is_like = text.contains("LIKE pattern");
        return Some(if is_like { ("the pattern of LIKE is too large".to_owned(), None) } else { too_large() });
    }
    let (_, rest) =
        text.split_once("egular expression did not compile: ").or_else(|| text.split_once("regex parse error:"))?;
    // regex parse error:
    //     (a
    //     ^
    // error: unclosed group
    let pattern = rest.lines().find(|line| line.starts_with("    ")).map(str::trim);
    let reason = rest.lines().find_map(|line| line.strip_prefix("error: "));
    let message = match (pattern, reason) {
        (Some(pattern), Some(reason)) => format!("`{}` is no regular expression: {reason}", short(pattern)),
        _ => {
            format!("`{}` is no regular expression, or too large a one", short(rest.lines().next().unwrap_or_default()))
        }
    };
    Some((message, None))
}

/// A pattern may have megabytes.
fn short(pattern: &str) -> String {
    match pattern.char_indices().nth(PATTERN_SHOWN) {
        Some((end, _)) => format!("{}…", &pattern[..end]),
        None => pattern.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_are_told_without_debug_output() {
        let message = |text: &str| of_regular_expression(text).map(|(message, _)| message);
        let syntax = "Regular expression did not compile: Syntax(\n~~~~\nregex parse error:\n    (a\n    ^\nerror: unclosed group\n~~~~\n)";
        assert_eq!(message(syntax).as_deref(), Some("`(a` is no regular expression: unclosed group"));
        let large = "Regular expression did not compile: CompiledTooBig(10485760)";
        assert_eq!(message(large).as_deref(), Some("the regular expression is too large"));
        assert_eq!(message("something else"), None);
    }

    #[test]
    fn a_full_disk_is_found_wherever_it_hides() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let arrow = ArrowError::IoError(String::new(), full());
        let wrapped = io::Error::other(ArrowError::IoError(String::new(), full()));
        let errors = [full(), wrapped].map(DataFusionError::IoError).into_iter();
        for error in errors.chain([arrow.into(), DataFusionError::External(Box::new(full()))]) {
            assert_eq!(worded(&error, "").map(|(message, _)| message).as_deref(), Some("the disk is full"));
        }
    }
}
