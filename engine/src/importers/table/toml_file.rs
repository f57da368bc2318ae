//! Mappings in files: `render_log.csv.tq.toml` beside `render_log.csv`.
//!
//! ```toml
//! table = "tasks"                 # one table: the keys themselves …
//! start = "begin:s"
//! ```
//! ```toml
//! tick = "ps"                     # … or several: settings for all of them, and a section each
//! [[table]]
//! table = "tasks"                 # without `file`: the file that the mapping stands beside
//! [[table]]
//! table = "links"
//! file = "deps.csv"               # beside the mapping
//! ```

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mapping::{Given, Place};
use crate::error::ImportError;
use crate::paths::read_text;

const ENDING: &str = ".tq.toml";

/// A mapping file: keys above its sections, and the sections.
#[derive(Debug, Default)]
pub(super) struct MappingFile {
    pub(super) shared: Vec<Given>,
    pub(super) sections: Vec<Vec<Given>>,
}

impl MappingFile {
    /// Reads and parses; every key remembers its line.
    pub(super) fn read(file: &Path) -> Result<MappingFile, ImportError> {
        let text = read_text(file).map_err(|source| ImportError::Io { path: file.to_owned(), source })?;
        parse(file, &text)
    }

    /// The files that the sections name, beside the mapping.
    pub(super) fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let named = self.sections.iter().flatten().filter(|given| given.key == "file");
        named.map(|given| folder.join(&given.value)).collect()
    }
}

/// Whether the path is that of a mapping.
pub(super) fn is_mapping(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING))
}

/// The mapping beside a file: `log.csv.gz.tq.toml`, else `log.csv.tq.toml` for `log.csv.gz`.
pub(super) fn beside(data: &Path) -> Option<PathBuf> {
    let name = data.file_name()?.to_string_lossy().into_owned();
    let plain = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    [name.as_str(), plain].iter().map(|name| data.with_file_name(format!("{name}{ENDING}"))).find(|file| file.is_file())
}

/// The file that a mapping stands beside.
pub(super) fn data_of(mapping: &Path) -> Option<PathBuf> {
    let name = mapping.file_name()?.to_string_lossy().into_owned();
    let data = name.strip_suffix(ENDING)?;
    ["", ".gz", ".zst", ".zstd"]
        .iter()
        .map(|ending| mapping.with_file_name(format!("{data}{ending}")))
        .find(|file| file.is_file())
}

fn parse(file: &Path, text: &str) -> Result<MappingFile, ImportError> {
    let line =
        |offset: usize| 1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count();
    let refuse = |line: usize, what: String, hint: Option<&str>| ImportError::Unusable {
        path: format!("{}:{line}", file.display()).into(),
        what,
        hint: hint.map(str::to_owned),
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        refuse(
            line(at),
            format!("not TOML: {}", error.message().trim_end()),
            Some("write `start = \"begin:us\"`: texts stand in quotes"),
        )
    })?;
    let givens = |table: &DeTable<'_>| -> Result<Vec<Given>, ImportError> {
        let mut givens = Vec::new();
        for (key, value) in table {
            let line = line(key.span().start);
            let value = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Array(names) if names.iter().all(|name| name.get_ref().is_str()) => {
                    names.iter().filter_map(|name| name.get_ref().as_str()).collect::<Vec<_>>().join(",")
                }
                DeValue::Table(_) | DeValue::Array(_) => {
                    let what = format!("`{}` is no section here", key.get_ref());
                    let hint =
                        format!("each section begins with `[[table]]`, and says `table = \"{}\"`", key.get_ref());
                    return Err(refuse(line, what, Some(&hint)));
                }
                other => {
                    let what = format!("`{}` is {}, not a text", key.get_ref(), other.type_str());
                    return Err(refuse(line, what, Some("write `key = \"text\"`")));
                }
            };
            let place = Place::Line { file: file.to_owned(), line };
            givens.push((key.span().start, Given { key: key.get_ref().to_string(), value, place }));
        }
        givens.sort_by_key(|(at, _)| *at);
        Ok(givens.into_iter().map(|(_, given)| given).collect())
    };
    let mut top = table.into_inner();
    let section = top.iter().find(|(key, value)| key.get_ref() == "table" && !value.get_ref().is_str());
    let Some(key) = section.map(|(key, _)| key.clone()) else {
        return Ok(MappingFile { shared: Vec::new(), sections: vec![givens(&top)?] });
    };
    let at = line(key.span().start);
    let sections = top.remove(&key).map(Spanned::into_inner);
    let tables: Vec<DeTable<'_>> = match sections {
        Some(DeValue::Table(table)) => vec![table],
        Some(DeValue::Array(items)) => items
            .into_iter()
            .map(|item| match item.into_inner() {
                DeValue::Table(table) => Ok(table),
                other => Err(refuse(
                    at,
                    format!("`table` lists {}, not sections", other.type_str()),
                    Some("write `[[table]]`"),
                )),
            })
            .collect::<Result<_, _>>()?,
        _ => {
            return Err(refuse(
                at,
                "`table` is neither a name nor a section".to_owned(),
                Some("write `table = \"tasks\"`"),
            ));
        }
    };
    let sections = tables.iter().map(&givens).collect::<Result<_, _>>()?;
    Ok(MappingFile { shared: givens(&top)?, sections })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<MappingFile, String> {
        parse(Path::new("log.csv.tq.toml"), text).map_err(|error| error.to_string())
    }

    fn pairs(givens: &[Given]) -> Vec<(&str, &str)> {
        givens.iter().map(|given| (given.key.as_str(), given.value.as_str())).collect()
    }

    #[test]
    fn one_table_or_several() {
        let flat = parsed("table = \"tasks\"\nstart = 'begin:s'\ncolumns = ['a', 'b']\norigin = 0\n").unwrap();
        assert_eq!(pairs(&flat.shared), []);
        let expected = [("table", "tasks"), ("start", "begin:s"), ("columns", "a,b"), ("origin", "0")];
        assert_eq!(pairs(&flat.sections[0]), expected);
        let several =
            parsed("tick = 'ps'\n[[table]]\nstart = 'a'\n[[table]]\ntable = 'links'\nfile = 'b.csv'\n").unwrap();
        assert_eq!(pairs(&several.shared), [("tick", "ps")]);
        assert_eq!(pairs(&several.sections[1]), [("table", "links"), ("file", "b.csv")]);
        assert_eq!(several.files(Path::new("x")), [PathBuf::from("x/b.csv")]);
        assert_eq!(parsed("[table]\nstart = 'a'\n").unwrap().sections.len(), 1);
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, expected: &str| {
            let error = parsed(text).err().unwrap_or_default();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        };
        check("table = 'tasks'\nstart = begin\n", "log.csv.tq.toml:2: not TOML");
        check("table = 'tasks'\n\nstart = 1.5\n", "log.csv.tq.toml:3: `start` is float, not a text");
        check("table = 'tasks'\n[[table]]\nstart = 'a'\n", "log.csv.tq.toml:2: not TOML");
        check("x = 'a'\ntable = [1]\n", "log.csv.tq.toml:2: `table` lists integer, not sections");
    }
}
