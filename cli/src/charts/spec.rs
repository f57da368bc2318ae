//! The chart line of a saved query: `bar x=duration y=name`.
//!
//! A kind, followed by pairs `key=column` or settings (`relative=true`). What each kind accepts is in one table,
//! [`KINDS`], which parsing, errors and documentation use.

use std::collections::BTreeMap;

use tq_engine::nearest::nearest;

use super::error::ChartError;

/// A parsed chart line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chart {
    kind: &'static Kind,
    keys: BTreeMap<&'static str, String>,
}

/// A kind of chart and what it takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it shows, in one sentence.
    pub(crate) summary: &'static str,
    /// The keys it takes.
    pub(crate) keys: &'static [Key],
    /// Columns that it reads by their own names.
    pub(crate) columns: &'static [&'static str],
}

/// A key of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) required: bool,
}

/// What stands behind a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// The name of a column of numbers.
    Number,
    /// The name of a column of any type; its values are told apart as texts.
    Category,
    /// `true` or `false`.
    Flag,
    /// A number.
    Amount,
    /// One of these.
    Word(&'static [&'static str]),
}

const fn needs(name: &'static str, value: Value) -> Key {
    Key { name, value, required: true }
}

const fn takes(name: &'static str, value: Value) -> Key {
    Key { name, value, required: false }
}

use Value::{Amount, Category, Flag, Number, Word};

/// All kinds.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "bar",
        summary: "A bar per row, x long, with y beside it; of the first 60 rows, or as many as most says.",
        keys: &[
            needs("x", Number),
            needs("y", Category),
            takes("color", Category),
            takes("most", Word(&["10", "20", "30", "40"])),
        ],
        columns: &[],
    },
    Kind {
        name: "stacked",
        summary: "A column per x, made of y per color; relative=true makes all columns 100 % high; a field per panel.",
        keys: &[
            needs("x", Category),
            needs("y", Number),
            needs("color", Category),
            takes("relative", Flag),
            takes("panel", Category),
        ],
        columns: &[],
    },
    Kind {
        name: "line",
        summary: "Lines of y over x: one per by, a field per panel, y2 on an axis at the right, bound as a dashed line; \
                  steps=true where y holds until the next x, scales=own where fields have nothing in common.",
        keys: &[
            needs("x", Number),
            needs("y", Number),
            takes("y2", Number),
            takes("by", Category),
            takes("panel", Category),
            takes("bound", Number),
            takes("steps", Flag),
            takes("scales", Word(&["shared", "own"])),
        ],
        columns: &[],
    },
    Kind {
        name: "occupancy",
        summary: "A share of 1 over time, as filled steps; bound as a dashed line, a field per panel.",
        keys: &[needs("x", Number), needs("y", Number), takes("bound", Number), takes("panel", Category)],
        columns: &[],
    },
    Kind {
        name: "heatmap",
        summary: "A matrix of coloured values; totals=true draws sums at its edges, panel draws several on one scale; from and to are \
                  the values at the ends of the colours.",
        keys: &[
            needs("x", Category),
            needs("y", Category),
            needs("value", Number),
            takes("totals", Flag),
            takes("panel", Category),
            takes("palette", Word(&["sequential", "diverging", "pascal"])),
            takes("from", Amount),
            takes("to", Amount),
        ],
        columns: &[],
    },
    Kind {
        name: "box",
        summary: "Quartiles, whiskers and outliers of y, a box per x.",
        keys: &[
            needs("x", Category),
            needs("y", Number),
            takes("color", Category),
            takes("scale", Word(&["linear", "log"])),
        ],
        columns: &[],
    },
    Kind {
        name: "flame",
        summary: "Stacks (`main;solve;gemm`) as nested bars, value wide.",
        keys: &[needs("stack", Category), needs("value", Number)],
        columns: &[],
    },
    Kind {
        name: "gantt",
        summary: "Tasks as bars on their locations over time.",
        keys: &[],
        columns: &["start", "finish", "location", "name"],
    },
    Kind {
        name: "tasks",
        summary: "A task between its parent and its subtasks, over time.",
        keys: &[],
        columns: &["role", "row", "start", "finish", "name", "kind"],
    },
];

impl Chart {
    /// Reads `KIND key=value …`.
    ///
    /// # Errors
    /// Unknown kinds, keys and words, keys that are missing or given twice.
    pub(crate) fn parse(text: &str) -> Result<Chart, ChartError> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let pairs = words
            .map(|word| match word.split_once('=') {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key, value)),
                _ => Err(ChartError::NotAPair { text: word.to_owned() }),
            })
            .collect::<Result<Vec<_>, ChartError>>()?;
        Chart::new(name, pairs)
    }

    /// A chart from a kind and its pairs.
    ///
    /// # Errors
    /// As [`Chart::parse`].
    pub(crate) fn new<'a>(
        name: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Chart, ChartError> {
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| ChartError::UnknownKind {
            kind: name.to_owned(),
            near: nearest(name, KINDS.iter().map(|kind| kind.name)).map(str::to_owned),
        })?;
        let mut keys = BTreeMap::new();
        for (key, value) in pairs {
            let known = kind.keys.iter().find(|known| known.name == key).ok_or_else(|| ChartError::UnknownKey {
                kind: kind.name,
                key: key.to_owned(),
                known: kind.keys.iter().map(|known| known.name).collect(),
            })?;
            let allowed: &[&str] = match known.value {
                Flag => &["true", "false"],
                Word(words) => words,
                Amount if !value.parse().is_ok_and(f64::is_finite) => {
                    return Err(ChartError::NoAmount { key: known.name, value: value.to_owned() });
                }
                Number | Category | Amount => &[],
            };
            if !allowed.is_empty() && !allowed.contains(&value) {
                return Err(ChartError::UnknownValue {
                    key: known.name,
                    value: value.to_owned(),
                    allowed: allowed.to_vec(),
                });
            }
            if keys.insert(known.name, value.to_owned()).is_some() {
                return Err(ChartError::Twice { key: known.name });
            }
        }
        match kind.keys.iter().find(|key| key.required && !keys.contains_key(key.name)) {
            Some(missing) => Err(ChartError::MissingKey { kind: kind.name, key: missing.name, usage: kind.usage() }),
            None => Ok(Chart { kind, keys }),
        }
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind.name
    }

    /// The names of the columns that it reads; some may be absent.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let named = (self.kind.keys.iter())
            .filter(|key| matches!(key.value, Number | Category))
            .filter_map(|key| self.get(key.name));
        named.chain(self.kind.columns.iter().copied()).collect()
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// The key and its column; [`Chart::new`] makes sure that required keys are there.
    pub(super) fn column(&self, key: &'static str) -> (&'static str, &str) {
        (key, self.get(key).unwrap_or_default())
    }

    /// A number that stands in the line of the chart.
    pub(super) fn amount(&self, key: &str) -> Option<f64> {
        self.get(key)?.parse().ok()
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }
}

impl Kind {
    /// `bar x=<number column> y=<column> [color=<column>]`.
    pub(crate) fn usage(&self) -> String {
        let mut usage = self.name.to_owned();
        for key in self.keys {
            let value = match key.value {
                Number => "<number column>".to_owned(),
                Category => "<column>".to_owned(),
                Flag => "true".to_owned(),
                Amount => "<number>".to_owned(),
                Word(words) => words.join("|"),
            };
            let pair = format!("{}={value}", key.name);
            usage.push_str(&if key.required { format!(" {pair}") } else { format!(" [{pair}]") });
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_kind_and_pairs() {
        let chart = Chart::parse("stacked x=location  y=busy color=name relative=true").unwrap();
        assert_eq!(chart.kind(), "stacked");
        assert_eq!(chart.columns(), ["location", "busy", "name"]);
        assert!(chart.flag("relative"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "there is no kind of chart in an empty text"),
            ("baar x=a y=b", "`baar` is no kind of chart"),
            ("bar x=a", "a bar chart needs y=…"),
            ("bar x=a y=b z=c", "a bar chart has no key `z`"),
            ("bar x=a y=b x=c", "`x` is given twice"),
            ("bar x a", "`x` is no key=column"),
            ("heatmap x=a y=b value=c palette=rainbow", "palette=rainbow: it is one of sequential, diverging, pascal"),
        ] {
            assert_eq!(Chart::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn every_kind_says_how_it_is_used() {
        assert_eq!(KINDS[0].usage(), "bar x=<number column> y=<column> [color=<column>] [most=10|20|30|40]");
        for kind in KINDS {
            assert!(kind.summary.ends_with('.') && kind.usage().starts_with(kind.name));
        }
    }
}
