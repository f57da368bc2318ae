//! Errors that bring their place and a hint along, and what is at the bottom of the engine's own.

use datafusion::common::{DataFusionError, Diagnostic, Span as PlanSpan};
use datafusion::sql::sqlparser::tokenizer::Span;

/// An error of ours, with its place and a hint (none when empty).
pub(super) fn error_at(span: Span, message: impl Into<String>, hint: &str) -> DataFusionError {
    let message = message.into();
    let mut diagnostic = Diagnostic::new_error(message.clone(), PlanSpan::try_from_sqlparser_span(span));
    if !hint.is_empty() {
        diagnostic.add_help(hint, None);
    }
    DataFusionError::Plan(message).with_diagnostic(diagnostic)
}

/// Adds a place and a hint to an error that does not have them.
pub(super) fn help_if_none(error: DataFusionError, span: Span, hint: Option<String>) -> DataFusionError {
    let known = error.diagnostic();
    let known_span = known.and_then(|known| known.span);
    let has_help = known.is_some_and(|known| !known.helps.is_empty());
    if known_span.is_some() && (has_help || hint.is_none()) {
        return error;
    }
    let message = known.map_or_else(|| text_of(root_of(&error)), |known| known.message.clone());
    let mut diagnostic = Diagnostic::new_error(message, known_span.or_else(|| PlanSpan::try_from_sqlparser_span(span)));
    match hint {
        Some(hint) if !has_help => diagnostic.add_help(hint, None),
        _ => diagnostic.helps = error.diagnostic().map(|known| known.helps.clone()).unwrap_or_default(),
    }
    error.with_diagnostic(diagnostic)
}

/// The error at the bottom of contexts, diagnostics and wrappers.
pub(super) fn root_of(error: &DataFusionError) -> &DataFusionError {
    match error.find_root() {
        DataFusionError::Collection(errors) => errors.first().map_or(error, root_of),
        root => root,
    }
}

/// The text of an error without its kind in front and a backtrace behind.
pub(super) fn text_of(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Configuration(text)
        | DataFusionError::NotImplemented(text)
        | DataFusionError::ResourcesExhausted(text)
        | DataFusionError::Internal(text) => text.clone(),
        DataFusionError::SchemaError(error, _) => error.to_string(),
        DataFusionError::ArrowError(error, _) => error.to_string(),
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::IoError(error) => error.to_string(),
        other => other.strip_backtrace(),
    };
    let text = text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or_default();
    text.trim().to_owned()
}
