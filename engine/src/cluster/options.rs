//! Options: what a worker must know of the client's session to open the store in the same way.

use std::collections::BTreeMap;

use datafusion::common::{Result, exec_datafusion_err, extensions_options};
use datafusion::config::{ConfigExtension, ConfigOptions};
use serde::{Deserialize, Serialize};

use crate::sql::question::in_range;

extensions_options! {
    /// Travels with each query.
    pub struct TqOptions {
        /// [`Opened`] as JSON in ASCII: it is the value of a header.
        pub opened: String, default = String::new()
        /// Settings of the client that are not DataFusion's defaults, as JSON in ASCII.
        pub settings: String, default = String::new()
    }
}

impl ConfigExtension for TqOptions {
    const PREFIX: &'static str = "tq";
}

/// What was opened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Opened {
    /// Names, where given, and absolute paths of stores or of runs in them.
    pub(super) traces: Vec<(Option<String>, String)>,
    /// `--run`.
    pub(super) run_pattern: Option<String>,
    /// `--run-arg`.
    pub(super) run_args: Vec<(String, String)>,
    /// The slice in ticks of the session.
    pub(super) slice: (Option<i64>, Option<i64>),
    /// The symbol of the session's tick: functions know it.
    pub(super) tick: String,
    /// Bytes of a value.
    pub(super) max_value: usize,
}

impl Opened {
    pub(super) fn to_text(&self) -> Result<String> {
        Ok(ascii(&serde_json::to_string(self).map_err(|error| exec_datafusion_err!("{error}"))?))
    }

    pub(super) fn from_text(text: &str) -> Result<Opened> {
        serde_json::from_str(text)
            .map_err(|error| exec_datafusion_err!("the options of a query are not readable: {error}"))
    }
}

/// JSON whose letters beyond ASCII are escaped.
pub(super) fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

/// Settings that change what operators and functions do. How many threads there are, each machine knows itself.
const SETTINGS: [&str; 2] = ["datafusion.execution.", "datafusion.format."];
const OWN: [&str; 2] = ["datafusion.execution.target_partitions", "datafusion.execution.sort_spill_reservation_bytes"];

/// Whether a setting travels.
fn travels(key: &str) -> bool {
    SETTINGS.iter().any(|prefix| key.starts_with(prefix)) && !OWN.contains(&key)
}

/// The settings that differ from DataFusion's defaults.
pub(super) fn settings_of(options: &ConfigOptions) -> Result<String> {
    let defaults: BTreeMap<String, Option<String>> =
        ConfigOptions::new().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let differs = |key: &str, value: &Option<String>| defaults.get(key) != Some(value);
    let changed: BTreeMap<String, String> = (options.entries().into_iter())
        .filter(|entry| travels(&entry.key) && differs(&entry.key, &entry.value))
        .filter_map(|entry| Some((entry.key, entry.value?)))
        .collect();
    Ok(ascii(&serde_json::to_string(&changed).map_err(|error| exec_datafusion_err!("{error}"))?))
}

/// Sets what [`settings_of`] found.
pub(super) fn apply_settings(options: &mut ConfigOptions, settings: &str) -> Result<()> {
    let changed: BTreeMap<String, String> = serde_json::from_str(settings)
        .map_err(|error| exec_datafusion_err!("the settings of a query are not readable: {error}"))?;
    for (key, value) in changed {
        if travels(&key) {
            // Whoever sends them is no SQL of ours.
            in_range(&key, &value)?;
            options.set(&key, &value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_any_letters_come_back() {
        let opened = Opened {
            traces: vec![(Some("größe".to_owned()), "/tmp/𝄞 \"store\"".to_owned())],
            run_pattern: None,
            run_args: vec![],
            slice: (Some(-5), None),
            tick: "ns".to_owned(),
            max_value: 7,
        };
        let text = opened.to_text().expect("text");
        assert!(text.is_ascii());
        assert_eq!(Opened::from_text(&text).expect("options"), opened);
    }

    #[test]
    fn changed_settings_come_back() {
        let mut options = ConfigOptions::new();
        options.set("datafusion.execution.time_zone", "+02:00").expect("a setting");
        options.set("datafusion.execution.target_partitions", "7").expect("a setting");
        let mut elsewhere = ConfigOptions::new();
        let own = elsewhere.execution.target_partitions;
        apply_settings(&mut elsewhere, &settings_of(&options).expect("text")).expect("settings");
        assert_eq!(elsewhere.execution.time_zone.as_deref(), Some("+02:00"));
        assert_eq!(elsewhere.execution.target_partitions, own);
        let huge = "{\"datafusion.execution.batch_size\": \"100000000000\"}";
        assert!(apply_settings(&mut elsewhere, huge).is_err());
        // Not even where somebody sends it.
        let key = "datafusion.execution.target_partitions";
        apply_settings(&mut elsewhere, &format!("{{\"{key}\": \"100000\"}}")).expect("settings");
        assert_eq!(elsewhere.execution.target_partitions, own);
    }
}
