//! Files that other files name, and files that a folder holds: where they may be.
//!
//! A mapping names the file that it describes, a check names its expected answer, and a folder lists its entries. None of
//! these need come from the person who types the command, so none may lead elsewhere: with all symbolic links resolved, a
//! named file must lie within the folder of the file that names it. Paths given on the command line itself are followed
//! wherever they lead.
//!
//! ```text
//! checks/a.sql     names  expected/a.csv                    fine
//! checks/a.sql     names  ../secrets.csv                    outside
//! traces/          holds  x.json -> /etc/passwd             outside
//! log.csv.tq.toml  names  pipe (made by mkfifo)             no plain file: opening it could wait forever
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Queries, templates and mappings are texts that people write: more than this is something else.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Why a file that another one names is not opened.
#[derive(Debug, thiserror::Error)]
pub enum NamedFileError {
    /// It lies elsewhere.
    #[error("`{}` leads to `{}`, which is `{}`: outside of its folder `{}`", naming.display(), named.display(), resolved.display(), folder.display())]
    Outside {
        /// The file or folder that names it.
        naming: PathBuf,
        /// The file as named.
        named: PathBuf,
        /// Where that is.
        resolved: PathBuf,
        /// Where it may be.
        folder: PathBuf,
    },
    /// A link on the way leads to nothing.
    #[error("`{}` leads to `{}`, which is a link to nothing", naming.display(), link.display())]
    Dangling {
        /// The file or folder that names it.
        naming: PathBuf,
        /// The link.
        link: PathBuf,
    },
    /// It is a pipe, a device, a directory.
    #[error("`{}` leads to `{}`, which is not a regular file", naming.display(), named.display())]
    NotPlain {
        /// The file or folder that names it.
        naming: PathBuf,
        /// The file as named.
        named: PathBuf,
    },
    /// The operating system refused.
    #[error("{source}")]
    Io {
        /// What it said.
        source: io::Error,
    },
}

impl From<io::Error> for NamedFileError {
    fn from(source: io::Error) -> Self {
        NamedFileError::Io { source }
    }
}

impl From<NamedFileError> for io::Error {
    fn from(error: NamedFileError) -> Self {
        match error {
            NamedFileError::Io { source } => source,
            other => io::Error::new(io::ErrorKind::InvalidInput, other),
        }
    }
}

impl NamedFileError {
    /// Whether the rule of this module refuses, and not the operating system.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, NamedFileError::Io { .. })
    }
}

/// The real path of a file that `naming` names. `named` is the whole path: `naming`'s folder joined with the name in the
/// file.
///
/// # Errors
/// See [`NamedFileError`].
pub fn named_by(naming: &Path, named: &Path) -> Result<PathBuf, NamedFileError> {
    let file = naming.canonicalize()?;
    let folder = file.parent().unwrap_or(&file).to_owned();
    checked(naming, named, resolved(naming, named)?, folder)
}

/// The real path. If it does not exist, a dangling link on the way is reported as such.
fn resolved(naming: &Path, path: &Path) -> Result<PathBuf, NamedFileError> {
    let error = match path.canonicalize() {
        Ok(resolved) => return Ok(resolved),
        Err(error) => error,
    };
    let is_dangling = |path: &&Path| path.is_symlink() && !path.exists();
    let link = path.ancestors().filter(|_| error.kind() == io::ErrorKind::NotFound).find(is_dangling);
    match link {
        Some(link) => Err(NamedFileError::Dangling { naming: naming.to_owned(), link: link.to_owned() }),
        None => Err(error.into()),
    }
}

/// [`named_by`] for a file that will be written and need not be there yet.
///
/// # Errors
/// See [`NamedFileError`].
pub fn written_by(naming: &Path, named: &Path) -> Result<PathBuf, NamedFileError> {
    if named.symlink_metadata().is_ok() {
        // A link that leads nowhere would be written through, wherever it leads: it is not there for `canonicalize`.
        return named_by(naming, named);
    }
    let file = naming.canonicalize()?;
    let folder = file.parent().unwrap_or(&file).to_owned();
    let missing = |path: &Path| path.symlink_metadata().is_err();
    let there = named.ancestors().find(|path| !path.as_os_str().is_empty() && !missing(path)).unwrap_or(Path::new("."));
    let rest = named.strip_prefix(there).unwrap_or(named);
    let resolved = resolved(naming, there)?.join(rest);
    let goes_up = rest.components().any(|part| part == Component::ParentDir);
    if goes_up || !resolved.starts_with(&folder) {
        return Err(NamedFileError::Outside { naming: naming.to_owned(), named: named.to_owned(), resolved, folder });
    }
    Ok(resolved)
}

/// The real path of a file that lies in a folder.
///
/// # Errors
/// See [`NamedFileError`].
pub fn held_by(folder: &Path, file: &Path) -> Result<PathBuf, NamedFileError> {
    let inside = match folder {
        empty if empty.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    checked(inside, file, file.canonicalize()?, inside.canonicalize()?)
}

fn checked(naming: &Path, named: &Path, resolved: PathBuf, folder: PathBuf) -> Result<PathBuf, NamedFileError> {
    let (naming, named) = (naming.to_owned(), named.to_owned());
    if !resolved.starts_with(&folder) {
        return Err(NamedFileError::Outside { naming, named, resolved, folder });
    }
    if !resolved.metadata()?.is_file() {
        return Err(NamedFileError::NotPlain { naming, named });
    }
    Ok(resolved)
}

/// Whether a file that was found beside another without being named may be read: it must be a regular file of the
/// folder.
pub(crate) fn is_beside(file: &Path, found: &Path) -> bool {
    // What is not there is no error, only not there.
    found.is_file() && named_by(file, found).is_ok()
}

/// The text of a file that people write: a query, a template, a mapping.
///
/// # Errors
/// It cannot be read, is no UTF-8, or is larger than any such file.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let what = format!("it is larger than {} MiB, which no text of this kind is", TEXT_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// `run.db-wal` for `run.db`.
pub(crate) fn with_ending(path: &Path, ending: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("checks/expected")).unwrap();
        for file in ["checks/a.sql", "checks/expected/a.csv", "secret.csv"] {
            std::fs::write(folder.path().join(file), file).unwrap();
        }
        folder
    }

    #[test]
    fn what_a_file_names_stays_in_its_folder() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        let naming = at("checks/a.sql");
        assert!(named_by(&naming, &at("checks/expected/a.csv")).is_ok());
        assert!(named_by(&naming, &at("checks/expected/../a.sql")).is_ok());
        let outside = named_by(&naming, &at("checks/../secret.csv")).unwrap_err();
        assert!(matches!(&outside, NamedFileError::Outside { .. }), "{outside}");
        assert!(named_by(&naming, Path::new("/etc/passwd")).unwrap_err().is_refusal());
        assert!(matches!(named_by(&naming, &at("checks/none.csv")), Err(NamedFileError::Io { .. })));
        assert!(matches!(named_by(&naming, &at("checks/expected")), Err(NamedFileError::NotPlain { .. })));

        assert!(written_by(&naming, &at("checks/new/b.csv")).is_ok());
        assert!(written_by(&naming, &at("checks/expected/a.csv")).is_ok());
        for name in ["checks/../new.csv", "checks/new/../../b.csv", "new.csv"] {
            assert!(written_by(&naming, &at(name)).is_err(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_resolved_on_both_sides() {
        use std::os::unix::fs::symlink;
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        symlink(at("secret.csv"), at("checks/link.csv")).unwrap();
        symlink(at("nowhere/x.csv"), at("checks/dangling.csv")).unwrap();
        symlink("expected/a.csv", at("checks/inside.csv")).unwrap();
        symlink(folder.path(), at("checks/up")).unwrap();
        let naming = at("checks/a.sql");
        for name in ["checks/link.csv", "checks/up/secret.csv"] {
            let error = named_by(&naming, &at(name)).unwrap_err();
            assert!(error.is_refusal() && error.to_string().contains("secret.csv"), "{error}");
            assert!(written_by(&naming, &at(name)).is_err());
            assert!(held_by(&at("checks"), &at(name)).is_err());
            assert!(!is_beside(&naming, &at(name)));
        }
        symlink(at("nowhere"), at("checks/gone")).unwrap();
        for (name, link) in [("checks/dangling.csv", "checks/dangling.csv"), ("checks/gone/x.csv", "checks/gone")] {
            for error in [named_by(&naming, &at(name)).unwrap_err(), written_by(&naming, &at(name)).unwrap_err()] {
                let what = format!("{link}`, which is a link to nothing");
                assert!(error.is_refusal() && error.to_string().contains(&what), "{error}");
            }
        }
        assert!(!at("nowhere").exists());
        assert!(written_by(&naming, &at("checks/up/new.csv")).is_err());
        assert!(named_by(&naming, &at("checks/inside.csv")).is_ok());
        // A file that is opened through a link names what lies beside itself, not beside the link.
        symlink(at("checks/a.sql"), at("alias.sql")).unwrap();
        assert!(named_by(&at("alias.sql"), &at("checks/expected/a.csv")).is_ok());
        assert!(named_by(&at("alias.sql"), &at("secret.csv")).is_err());
        // The folder may be a link itself.
        symlink(at("checks"), at("linked")).unwrap();
        assert!(held_by(&at("linked"), &at("linked/a.sql")).is_ok());
    }

    #[test]
    fn texts_have_a_size() {
        let folder = folder();
        assert_eq!(read_text(&folder.path().join("secret.csv")).unwrap(), "secret.csv");
        let large = folder.path().join("large.sql");
        File::create(&large).unwrap().set_len(TEXT_BYTES_MAX + 1).unwrap();
        assert!(read_text(&large).unwrap_err().to_string().contains("16 MiB"));
        std::fs::write(&large, b"\xff").unwrap();
        assert!(read_text(&large).is_err());
    }
}
