//! `tq queries [WORD…]`: without WORD, the saved queries by topic, with what they need; with the name of a query, its parameters and
//! SQL; else those whose name, title or SQL contain all the words.

use std::collections::BTreeMap;
use std::fmt::Write;

use tq_engine::queries::{Library, Origin, SavedQuery};
use tq_udfs::ticks::Tick;

use crate::args::QueriesArgs;
use crate::errors::{Failure, Problem};
use crate::output::print;
use crate::text::visible::{visible, visible_lines};
use crate::text::words::listed;
use crate::{library, terminal};

/// The topic of sentences that reports consist of.
const SENTENCES: &str = "facts";

/// Where queries without a topic are listed.
const NO_TOPIC: &str = "other";

pub(crate) fn run(args: &QueriesArgs) -> Result<(), Failure> {
    let library = library::open(&args.library)?;
    let asked = args.name.join(" ");
    if asked.trim().is_empty() {
        return print(&list(&library));
    }
    if library.names().contains(&asked.as_str()) {
        return print(&describe(&library::find(&library, &asked)?));
    }
    let asked_in_lowercase = asked.to_lowercase();
    let wanted: Vec<&str> = asked_in_lowercase.split_whitespace().collect();
    let has = |query: &SavedQuery| {
        let texts = [query.name.as_str(), query.title(), &query.statement.source].map(str::to_lowercase);
        wanted.iter().all(|word| texts.iter().any(|text| text.contains(word)))
    };
    let found = by_topic(&library, has);
    if found.is_empty() {
        // Says which name is near, or which word of a name.
        return library::find(&library, &asked).map(|_| ());
    }
    print(&format!("Saved queries with `{}`:\n{found}\n`tq queries NAME` describes one.\n", visible(&asked)))
}

/// All queries by topic. One that cannot be read is no obstacle to the others.
pub(crate) fn list(library: &Library) -> String {
    let found = by_topic(library, |_| true);
    format!(
        "Saved queries, by topic:\n{found}\n`tq query TRACE NAME` answers one, `tq queries NAME` describes it, `tq queries WORD` searches.\n"
    )
}

/// Those that are wanted, by topic.
fn by_topic(library: &Library, is_wanted: impl Fn(&SavedQuery) -> bool) -> String {
    // Sentences of reports are seldom looked for.
    let mut topics: BTreeMap<(bool, String), Vec<(String, String)>> = BTreeMap::new();
    for name in library.names() {
        match library.find(name) {
            Ok(Some(query)) if !is_wanted(&query) => {}
            Ok(Some(query)) => {
                let topic = if query.header.topic.is_empty() { NO_TOPIC } else { &query.header.topic };
                topics
                    .entry((topic == SENTENCES, topic.to_owned()))
                    .or_default()
                    .push((name.to_owned(), sentence(&query)));
            }
            Ok(None) => {}
            Err(error) => terminal::warning(&broken(name, error.into())),
        }
    }
    let mut text = String::new();
    for ((_, topic), entries) in topics {
        let _ = write!(text, "\n{}\n{}", visible(&topic), listed(&entries, terminal::width()));
    }
    text
}

fn broken(name: &str, failure: Failure) -> String {
    match failure {
        Failure::Told(problem) => {
            let Problem { message, place, .. } = *problem;
            format!("`{name}` cannot be used: {}{message}", place.map(|place| format!("{place}: ")).unwrap_or_default())
        }
        _ => format!("`{name}` cannot be used"),
    }
}

/// The title, what it needs, and the file of one that is not built in.
fn sentence(query: &SavedQuery) -> String {
    let mut sentence = query.title().to_owned();
    if !query.header.needs.is_empty() {
        let _ = write!(sentence, " (needs {})", needs(query));
    }
    if let Origin::File(path) = &query.origin {
        let _ = write!(sentence, " [{}]", path.display());
    }
    sentence
}

fn needs(query: &SavedQuery) -> String {
    query.header.needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// One query: its header in words, then its SQL.
pub(crate) fn describe(query: &SavedQuery) -> String {
    let header = &query.header;
    let mut text = format!("{}: {}\n\n", visible(&query.name), visible(query.title()));
    let mut facts = Vec::new();
    let mut fact = |key: &str, value: String| facts.push((key.to_owned(), value));
    if !header.topic.is_empty() {
        fact("topic", header.topic.clone());
    }
    if !header.needs.is_empty() {
        fact("needs", needs(query));
    }
    for param in &header.params {
        let default = match param.default_text(Tick::Nanosecond) {
            Some(default) => format!(" = {default}"),
            None if param.default.is_none() => ", to be given".to_owned(),
            None => String::new(),
        };
        let name = format!("--param {}=…", param.name);
        fact(&name, format!("{} ({}{default})", param.description, param.param_type.name()).trim_start().to_owned());
    }
    for chart in &header.charts {
        fact("chart", chart.kind.clone());
    }
    for metric in &header.metrics {
        let better = match metric.better {
            tq_engine::queries::Better::Lower => "lower",
            tq_engine::queries::Better::Higher => "higher",
        };
        let by = if metric.by.is_empty() { String::new() } else { format!(", by {}", metric.by.join(" and ")) };
        fact("metric", format!("{}: {better} is better, tolerance {}{by}", metric.column, metric.tolerance));
    }
    for expect in &header.expects {
        fact("expects", expect.what.to_string());
    }
    fact(
        "from",
        match &query.origin {
            Origin::BuiltIn => "built in".to_owned(),
            Origin::File(path) => path.display().to_string(),
        },
    );
    text.push_str(&listed(&facts, terminal::width()));
    let _ = write!(text, "\n{};\n", visible_lines(&query.statement.text));
    text
}
