//! The configuration file with a user's defaults: `$XDG_CONFIG_HOME/tq/config.toml`, else `~/.config/tq/config.toml`.
//!
//! ```toml
//! memory = "8GB"        # as --memory
//! max-value = "64MB"    # as --max-value
//! threads = 4           # as --threads
//! quiet = true          # as --quiet
//! read_only = true      # as --read-only
//! cache = true          # as --cache
//! cache-size = "10GB"   # what it holds at most
//! cluster = "a:7070,b:7070"  # as --cluster, for stores
//! tls-ca = "/etc/tq/ca.pem"  # as --tls-ca
//!
//! [prompt]              # as \set
//! rows = 200            # or "all"
//! pager = false
//! times = "ticks"
//! timing = true
//! ```
//!
//! The command line takes precedence. An unknown key is an error: a typo must not switch a default off.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toml::{Table, Value};

use crate::errors::{Failure, Problem, did_you_mean};
use crate::settings::Settings;
use crate::text::words::bytes;

/// Defaults of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) memory: Option<usize>,
    pub(crate) max_value: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) quiet: bool,
    pub(crate) read_only: bool,
    pub(crate) cache: bool,
    pub(crate) cache_size: Option<usize>,
    /// Workers that help with stores.
    pub(crate) cluster: Option<String>,
    /// The file of certificates that vouch for them.
    pub(crate) tls_ca: Option<PathBuf>,
    /// Settings of the prompt.
    pub(crate) prompt: Settings,
}

/// The keys outside of tables, and the table.
const KEYS: [&str; 10] =
    ["memory", "max-value", "threads", "quiet", "read_only", "cache", "cache-size", "cluster", "tls-ca", "prompt"];

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Reads the file, if there is one.
pub(crate) fn load() -> Result<(), Failure> {
    let Some(path) = path().filter(|path| path.exists()) else { return Ok(()) };
    let text = std::fs::read_to_string(&path).map_err(|error| Problem::file("read", &path, &error))?;
    let config = parse(&text, &path)?;
    // Only `main` loads, once.
    let _ = CONFIG.set(config);
    Ok(())
}

/// The defaults.
pub(crate) fn get() -> &'static Config {
    CONFIG.get_or_init(Config::default)
}

/// Where the file would be.
pub(crate) fn path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("tq/config.toml"))
}

fn parse(text: &str, path: &Path) -> Result<Config, Failure> {
    let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        let problem = Problem { place: Some(format!("{}:{line}", path.display())), ..Problem::new(message) };
        let value = text
            .lines()
            .nth(line - 1)
            .and_then(|line| line.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim()));
        match value {
            Some((key, value)) if value.starts_with(char::is_alphanumeric) => {
                problem.hint(format!("texts stand in quotes: `{key} = \"{value}\"`"))
            }
            _ => problem,
        }
    })?;
    let place = |key: &str| {
        let is_key = |line: &str| {
            let rest = line.trim_start().trim_start_matches(['[', '"', '\'']).strip_prefix(key);
            // `cache` is not `cache-size`.
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || "-_".contains(next)))
        };
        let line = text.lines().position(is_key).map_or(1, |line| line + 1);
        Some(format!("{}:{line}", path.display()))
    };
    let wrong = |key: &str, message: String| Failure::from(Problem { place: place(key), ..Problem::new(message) });
    let mut config = Config::default();
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("memory", Value::String(text)) => {
                config.memory = Some(bytes(text).map_err(|why| wrong(key, format!("`memory`: {why}")))?);
            }
            ("max-value", Value::String(text)) => {
                config.max_value = Some(bytes(text).map_err(|why| wrong(key, format!("`max-value`: {why}")))?);
            }
            ("cache-size", Value::String(text)) => {
                config.cache_size = Some(bytes(text).map_err(|why| wrong(key, format!("`cache-size`: {why}")))?);
            }
            ("cluster", Value::String(workers)) => config.cluster = Some(workers.clone()),
            ("tls-ca", Value::String(file)) => config.tls_ca = Some(PathBuf::from(file)),
            ("cache", Value::Boolean(cache)) => config.cache = *cache,
            ("threads", Value::Integer(threads @ 1..=1024)) => config.threads = usize::try_from(*threads).ok(),
            ("quiet", Value::Boolean(quiet)) => config.quiet = *quiet,
            ("read_only", Value::Boolean(read_only)) => config.read_only = *read_only,
            ("prompt", Value::Table(settings)) => {
                for (name, value) in settings {
                    if KEYS.contains(&name.as_str()) {
                        let problem = Problem::new(format!("`{name}` is no setting of the prompt"));
                        let problem = Problem { place: place(name), ..problem };
                        return Err(problem.hint(format!("`{name} = …` stands above `[prompt]`")).into());
                    }
                    let placed = |failure: Failure| failure.at(place(name));
                    config.prompt.set(name, &spelt(value)).map_err(placed)?;
                }
            }
            ("memory", _) => return Err(wrong(key, "`memory` is a text like \"8GB\"".to_owned())),
            ("max-value", _) => return Err(wrong(key, "`max-value` is a text like \"64MB\"".to_owned())),
            ("cache-size", _) => return Err(wrong(key, "`cache-size` is a text like \"10GB\"".to_owned())),
            ("cluster", _) => return Err(wrong(key, "`cluster` is a text like \"node1:7070,node2:7070\"".to_owned())),
            ("tls-ca", _) => return Err(wrong(key, "`tls-ca` is a path like \"/etc/tq/ca.pem\"".to_owned())),
            ("threads", _) => return Err(wrong(key, "`threads` is a whole number from 1 to 1024".to_owned())),
            ("quiet" | "read_only" | "cache", _) => return Err(wrong(key, format!("`{key}` is true or false"))),
            ("prompt", _) => return Err(wrong(key, "`prompt` is a table: write `[prompt]`".to_owned())),
            _ => {
                let near = did_you_mean(key, KEYS);
                return Err(wrong(key, format!("`{key}` is no key of the configuration{near}")));
            }
        }
    }
    Ok(config)
}

/// A value as `\set` spells it.
fn spelt(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        parse(text, Path::new("config.toml")).map_err(|failure| match failure {
            Failure::Told(problem) => format!("{}: {}", problem.place.unwrap_or_default(), problem.message),
            _ => String::new(),
        })
    }

    #[test]
    fn defaults_are_read() {
        let config =
            read("memory = \"2GB\"\nthreads = 3\nread_only = true\ncache = true\ncache-size = \"1MB\"\n[prompt]\nrows = 20\npager = false\n").unwrap();
        assert_eq!((config.memory, config.threads, config.read_only), (Some(2_000_000_000), Some(3), true));
        assert_eq!((config.cache, config.cache_size), (true, Some(1_000_000)));
        assert_eq!(config.prompt, Settings { rows: Some(20), pager: false, ..Settings::default() });
        assert_eq!(read(""), Ok(Config::default()));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [
            (
                "threads = 2\nmemroy = 1",
                "config.toml:2: `memroy` is no key of the configuration; did you mean `memory`?",
            ),
            ("cache-size = 5", "config.toml:1: `cache-size` is a text like \"10GB\""),
            ("cache-size = \"1MB\"\ncache = 5", "config.toml:2: `cache` is true or false"),
            ("threads = 0", "config.toml:1: `threads` is a whole number from 1 to 1024"),
            ("[prompt]\nrow = 5", "config.toml:2: no setting `row`; did you mean `rows`?"),
            ("[prompt]\npager = true\nrows = -5", "config.toml:3: `rows` is a number, or all, not `-5`"),
            ("\nmemory = \"lots\"", "config.toml:2: `memory`: write it like `8GB` or `512MiB`"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
        assert!(read("threads = ").unwrap_err().starts_with("config.toml:1: "));
    }
}
