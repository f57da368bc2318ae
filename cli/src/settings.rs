//! What `\set` changes: how the prompt shows answers.

use tq_engine::nearest::nearest;

use crate::errors::{Failure, Problem};
use crate::text::words::bytes_text;

/// How answers are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Rows that are shown of an answer; `None` = all.
    pub(crate) rows: Option<u64>,
    /// Whether what is longer than the terminal goes through a pager.
    pub(crate) pager: bool,
    /// Whether times have units; otherwise they are ticks.
    pub(crate) people: bool,
    /// Whether each statement is followed by how long it took.
    pub(crate) timing: bool,
    /// Whether a row is a list of its columns.
    pub(crate) expanded: bool,
}

/// Name, values and meaning of each setting. `memory` is one of the session, and no way to show answers.
pub(crate) const SETTINGS: [(&str, &str, &str); 6] = [
    ("rows", "a number, or all", "rows that are shown of an answer"),
    ("pager", "on or off", "show long answers with $PAGER, or less"),
    ("times", "people or ticks", "times with units, or as they are stored"),
    ("timing", "on or off", "how long each statement took"),
    ("expanded", "on or off", "each row as a list of its columns"),
    ("memory", "bytes, e.g. 8GB", "memory for tables and queries, as --memory"),
];

/// An entry of what `\set` lists: name and value, and what that is.
pub(crate) fn entry(name: &str, value: &str, values: &str, meaning: &str) -> (String, String) {
    (format!("{name:<11}{value}"), format!("{meaning} ({values})"))
}

impl Default for Settings {
    fn default() -> Self {
        Settings { rows: Some(500), pager: true, people: true, timing: false, expanded: false }
    }
}

impl Settings {
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let Some((_, values, _)) = SETTINGS.iter().find(|(known, ..)| *known == name) else {
            let near = nearest(name, SETTINGS.iter().map(|(name, ..)| *name));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(Problem::new(format!("no setting `{name}`{near}")).hint("`\\set` lists the settings").into());
        };
        let wrong = || Failure::from(Problem::new(format!("`{name}` is {values}, not `{value}`")));
        let one_of = |yes: &str, no: &str| match value {
            value if value == yes => Ok(true),
            value if value == no => Ok(false),
            // As in the configuration.
            "true" if yes == "on" => Ok(true),
            "false" if yes == "on" => Ok(false),
            _ => Err(wrong()),
        };
        match name {
            "rows" => self.rows = if value == "all" { None } else { Some(value.parse().map_err(|_| wrong())?) },
            "pager" => self.pager = one_of("on", "off")?,
            "times" => self.people = one_of("people", "ticks")?,
            "memory" => {
                return Err(Problem::new("`memory` belongs above `[prompt]`: it is not a setting of the prompt").into());
            }
            "expanded" => self.expanded = one_of("on", "off")?,
            _ => self.timing = one_of("on", "off")?,
        }
        Ok(())
    }

    /// All settings with their values, and the memory of the session.
    pub(crate) fn entries(&self, memory: usize) -> Vec<(String, String)> {
        let word = |on: bool| if on { "on" } else { "off" }.to_owned();
        let value = |name: &str| match name {
            "rows" => self.rows.map_or("all".to_owned(), |rows| rows.to_string()),
            "pager" => word(self.pager),
            "expanded" => word(self.expanded),
            "times" => if self.people { "people" } else { "ticks" }.to_owned(),
            "memory" => bytes_text(memory),
            _ => word(self.timing),
        };
        SETTINGS.iter().map(|(name, values, meaning)| entry(name, &value(name), values, meaning)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_take_their_values_only() {
        let mut settings = Settings::default();
        settings.set("rows", "all").unwrap();
        settings.set("times", "ticks").unwrap();
        assert_eq!((settings.rows, settings.people), (None, false));
        for (name, value) in [("rows", "-1"), ("pager", "yes"), ("row", "5")] {
            assert!(settings.set(name, value).is_err(), "{name} {value}");
        }
        assert!(settings.entries(8_000_000_000).iter().any(|(setting, _)| setting == "rows       all"));
    }
}
