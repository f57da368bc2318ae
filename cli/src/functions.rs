//! The functions of a session with their documentation: what `tq functions`, `\f` and completion show.
//!
//! Everything comes from the session's registry. A function counts as `tq`'s own if DataFusion does not bring it; the
//! JSON functions come from another library and are listed separately.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::Documentation;
use tq_engine::session::Session;
use tq_udfs::relation::RelationFunction;

/// What kind of function it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Scalar,
    Aggregate,
    Window,
    Relation,
}

/// Who brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Tq,
    Json,
    DataFusion,
}

/// A function for people.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
    pub(crate) aliases: Vec<String>,
    /// `busy(start, finish)`; its name alone where nobody documented it.
    pub(crate) syntax: String,
    pub(crate) description: String,
    /// Name and meaning of each argument.
    pub(crate) arguments: Vec<(String, String)>,
    pub(crate) example: Option<String>,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Scalar => "scalar",
            Kind::Aggregate => "aggregate",
            Kind::Window => "window",
            Kind::Relation => "relation",
        }
    }
}

impl Function {
    /// The functions behind operators have names too, but nobody types them.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.name.starts_with("checked_")
    }

    /// The first sentence: what lists show.
    pub(crate) fn summary(&self) -> String {
        let text = self.description.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        match text.find(". ") {
            Some(end) => text[..=end].to_owned(),
            None => text,
        }
    }
}

/// All functions, ours first, by name.
pub(crate) fn all(session: &Session) -> Vec<Function> {
    let state = session.context().state();
    let theirs: HashSet<String> = SessionStateDefaults::default_scalar_functions()
        .iter()
        .map(|function| function.name().to_owned())
        .chain(SessionStateDefaults::default_aggregate_functions().iter().map(|function| function.name().to_owned()))
        .chain(SessionStateDefaults::default_window_functions().iter().map(|function| function.name().to_owned()))
        .collect();
    let mut functions = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |name: &str, aliases: &[String], kind, documentation: Option<&Documentation>| {
        // The registry has an entry per alias too.
        if seen.insert((name.to_owned(), kind == Kind::Window)) {
            let origin = match theirs.contains(name) {
                true => Origin::DataFusion,
                false if name.starts_with("json") => Origin::Json,
                false => Origin::Tq,
            };
            functions.push(function(name, aliases, kind, origin, documentation));
        }
    };
    for function in state.udfs().iter().filter_map(|name| state.udf(name).ok()) {
        add(function.name(), function.aliases(), Kind::Scalar, function.documentation());
    }
    for function in state.udafs().iter().filter_map(|name| state.udaf(name).ok()) {
        add(function.name(), function.aliases(), Kind::Aggregate, function.documentation());
    }
    for function in state.udwfs().iter().filter_map(|name| state.udwf(name).ok()) {
        add(function.name(), function.aliases(), Kind::Window, function.documentation());
    }
    functions.extend(session.relation_functions().iter().map(relation));
    functions.sort_by(|a, b| (a.origin, &a.name, a.kind).cmp(&(b.origin, &b.name, b.kind)));
    functions
}

/// A function that takes relations: the session knows them, DataFusion does not.
fn relation(relation: &Arc<dyn RelationFunction>) -> Function {
    let documented = function(relation.name(), &[], Kind::Relation, Origin::Tq, Some(relation.documentation()));
    Function { syntax: relation.signature(), ..documented }
}

fn function(
    name: &str,
    aliases: &[String],
    kind: Kind,
    origin: Origin,
    documentation: Option<&Documentation>,
) -> Function {
    let text = |text: Option<&String>| text.map(|text| text.trim().to_owned()).unwrap_or_default();
    let syntax = text(documentation.map(|documentation| &documentation.syntax_example));
    Function {
        name: name.to_owned(),
        kind,
        origin,
        aliases: aliases.iter().filter(|alias| *alias != name).cloned().collect(),
        syntax: if syntax.is_empty() { format!("{name}(…)") } else { syntax },
        description: text(documentation.map(|documentation| &documentation.description)),
        arguments: documentation.and_then(|documentation| documentation.arguments.clone()).unwrap_or_default(),
        example: documentation.and_then(|documentation| documentation.sql_example.clone()).map(|example| {
            // DataFusion's examples come as fenced blocks.
            example.lines().filter(|line| !line.trim_start().starts_with("```")).collect::<Vec<_>>().join("\n")
        }),
    }
}
