//! The built-in queries: the files of `queries/`, which the build puts into the program.

/// `(name, text)` of every file of `queries/`, by name.
pub(super) static BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in_queries.rs"));

/// The text of a built-in query.
pub fn built_in(name: &str) -> Option<&'static str> {
    let at = BUILT_IN.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(BUILT_IN[at].1)
}

/// The names of the built-in queries, in order.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}
