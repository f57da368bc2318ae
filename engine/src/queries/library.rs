//! Where saved queries are searched: the directories of the user, in order, then the built-in ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::built_in::BUILT_IN;
use super::{Origin, QueryError, SavedQuery};

pub use super::built_in::{built_in, built_in_names};

/// Saved queries by name. A file is read when its query is requested: a broken one does not affect the others.
#[derive(Debug, Default, Clone)]
pub struct Library {
    files: BTreeMap<String, PathBuf>,
    /// The folder of the user, whose links are followed: dotfiles are often links.
    trusted: Option<PathBuf>,
}

impl Library {
    /// The `.sql` files of some directories, the first one that has a name wins, before the built-in queries.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn open(directories: &[PathBuf]) -> Result<Library, QueryError> {
        let mut library = Library::default();
        for directory in directories {
            for (name, path) in sql_files(directory)? {
                library.files.entry(name).or_insert(path);
            }
        }
        Ok(library)
    }

    /// The directories whose links are followed wherever they lead; in others, links must not lead outside.
    #[must_use]
    pub fn trusting(self, directory: Option<PathBuf>) -> Library {
        Library { trusted: directory, ..self }
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<&str> {
        let own = self.files.keys().map(String::as_str);
        let mut names: Vec<&str> = own.chain(BUILT_IN.iter().map(|(name, _)| *name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether there is a query of a name. Its file is not read.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name) || built_in(name).is_some()
    }

    /// The query of a name; `None` when there is none.
    ///
    /// # Errors
    /// Its file cannot be read or is wrong.
    pub fn find(&self, name: &str) -> Result<Option<SavedQuery>, QueryError> {
        if let Some(path) = self.files.get(name) {
            let folder = path.parent().unwrap_or(Path::new(""));
            let is_trusted = self.trusted.as_deref() == Some(folder);
            return if is_trusted { SavedQuery::read(path) } else { SavedQuery::read_in(folder, path) }.map(Some);
        }
        built_in(name).map(|text| SavedQuery::parse(name, Origin::BuiltIn, text)).transpose()
    }
}

/// The `.sql` files of a directory by name, in the order of their names.
///
/// # Errors
/// The directory cannot be read.
pub fn sql_files(directory: &Path) -> Result<Vec<(String, PathBuf)>, QueryError> {
    let failed = |source| QueryError::Io { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "sql")
            && let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
        {
            files.push((name, path));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_built_in_and_reads() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../queries");
        let files: Vec<String> = sql_files(&folder).unwrap().into_iter().map(|(name, _)| name).collect();
        assert!(!files.is_empty());
        assert_eq!(files, built_in_names().collect::<Vec<_>>());
        let library = Library::default();
        for name in files {
            let query = library.find(&name).unwrap_or_else(|error| panic!("{error}")).unwrap();
            let Some(text) = built_in(&name) else { panic!("{name}") };
            assert_eq!(text, std::fs::read_to_string(folder.join(format!("{name}.sql"))).unwrap());
            let header = &query.header;
            assert!(!header.title.is_empty() && !header.topic.is_empty() && !header.needs.is_empty(), "{name}");
        }
    }

    #[test]
    fn files_of_the_user_come_first_and_broken_ones_stand_alone() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(first.path().join("mine.sql"), "-- title: first\nSELECT 1").unwrap();
        std::fs::write(second.path().join("mine.sql"), "-- title: second\nSELECT 2").unwrap();
        std::fs::write(second.path().join("longest-tasks.sql"), "-- titel: broken\nSELECT 2").unwrap();
        std::fs::write(second.path().join("notes.txt"), "no query").unwrap();
        let library = Library::open(&[first.path().to_owned(), second.path().to_owned()]).unwrap();
        assert_eq!(library.find("mine").unwrap().unwrap().header.title, "first");
        assert!(library.find("longest-tasks").is_err());
        assert!(library.find("time-by-name").unwrap().is_some());
        assert!(library.find("notes").unwrap().is_none());
        assert!(Library::open(&[first.path().join("missing")]).is_err());
    }
}
