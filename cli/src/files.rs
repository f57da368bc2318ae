//! Files that a command writes: none is a file that it reads, and each appears only when it is complete.
//!
//! `tq report T -o T` would overwrite its own trace. So every command declares, before it reads anything, what it will write
//! ([`Outputs`]) and what it reads ([`Inputs`]); if two of these are the same file under whatever names (hard or symbolic links,
//! `./`, another case), it ends with an error. A file is written next to its final name, under a name that cannot be guessed, and
//! then renamed: a command that fails leaves the old file, and a link with the name of an output is replaced and not followed.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use same_file::Handle;
use tempfile::NamedTempFile;
use tq_engine::open::{TraceSpec, read_for};
use tq_engine::queries::{Origin, SavedQuery};
use tq_engine::trace::temporary::Registered;

use crate::args::OpenArgs;
use crate::errors::timeout::late_opening;
use crate::errors::{Failure, Problem};
use crate::text::runner;
use crate::{config, timeout};

/// Whether a CI system may read standard output for commands; a file is not a log. Output for people is escaped in files too, since
/// it may be printed later.
pub(crate) fn stdout_is_a_log() -> bool {
    runner::is_listening() && !is_file(&Handle::stdout())
}

/// A file of any name beside another, to be renamed when it is whole.
pub(crate) fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        // As the file that it replaces, else as any new file: the umask takes from it.
        options.mode(fs::metadata(path).map_or(0o666, |metadata| metadata.permissions().mode() & 0o777));
    }
    // `make_in` and not `tempfile_in`, whose errors name a file that nobody knows.
    tempfile::Builder::new().prefix(".tq-").suffix(".partial").make_in(folder, |path| options.open(path))
}

/// Writes a whole file. What is there already and is no plain file (`/dev/null`, a pipe) stays what it is.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Problem::file("write", path, &error);
    if is_other(path) {
        let mut file = open_other(path)?;
        return Ok(file.write_all(text.as_bytes()).map_err(failed)?);
    }
    let mut file = beside(path).map_err(failed)?;
    let _registered = Registered::new(file.path());
    // Not by the wrapper, whose errors name the temporary file.
    file.as_file_mut().write_all(text.as_bytes()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Whether something is there that is no plain file: `/dev/null`, a named pipe.
pub(crate) fn is_other(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Opens what is there and is no plain file. A named pipe waits for its reader, within `--timeout`.
pub(crate) fn open_other(path: &Path) -> Result<File, Failure> {
    let pipe = path.to_owned();
    let opened = timeout::bounded(|limit| late_opening(path, limit), move || File::options().write(true).open(pipe))?;
    Ok(opened.map_err(|error| Problem::file("write", path, &error))?)
}

/// What a command reads, as far as the command line and the files themselves tell.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    files: Vec<PathBuf>,
}

impl Inputs {
    /// The traces of a command line with what belongs to them.
    pub(crate) fn of(args: &OpenArgs) -> Inputs {
        let mut inputs = Inputs::default();
        inputs.traces(&args.traces, args);
        inputs
    }

    /// More traces, read with the same options.
    pub(crate) fn traces(&mut self, traces: &[String], args: &OpenArgs) {
        let options = args.options.iter().cloned().collect();
        for trace in traces {
            let spec = TraceSpec::parse(trace);
            // Nothing is written into a store, of those that are read as little as of others.
            if tq_engine::store::find(&spec.path).is_none() {
                self.files.extend(read_for(&spec, &options));
            }
        }
    }

    pub(crate) fn add(&mut self, file: &Path) {
        self.files.push(file.to_owned());
    }

    pub(crate) fn files(&mut self, files: &[PathBuf]) {
        self.files.extend_from_slice(files);
    }

    /// The file of a saved query.
    pub(crate) fn query(&mut self, query: &SavedQuery) {
        if let Origin::File(file) = &query.origin {
            self.add(file);
        }
    }

    /// The `.sql` files of folders that queries are looked for in.
    pub(crate) fn folders(&mut self, folders: &[PathBuf]) {
        for folder in folders {
            let found = tq_engine::queries::library::sql_files(folder).unwrap_or_default();
            self.files.extend(found.into_iter().map(|(_, path)| path));
        }
    }
}

/// Of Unix and of Windows.
const NO_SUCH_FILE: i32 = 2;

/// What a command writes, each file with the option that names it.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    files: Vec<(&'static str, PathBuf)>,
    /// Files that are numbered or named beside one: the option, how they begin, how they end.
    families: Vec<(&'static str, PathBuf, String)>,
}

impl Outputs {
    pub(crate) fn add(&mut self, option: &'static str, file: Option<&Path>) {
        // `-` is standard output.
        self.files.extend(file.filter(|file| *file != Path::new("-")).map(|file| (option, file.to_owned())));
    }

    /// Files that are there already and that may be written beside `file`: `page.*.svg` beside `page.md`.
    pub(crate) fn add_family(&mut self, option: &'static str, file: &Path, mark: char, extension: &str) {
        let Some(stem) = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else { return };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.families.push((option, file.with_file_name(format!("{stem}{mark}")), extension.to_owned()));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&format!("{stem}{mark}")) && name.ends_with(extension) && Path::new(&name) != file {
                self.files.push((option, file.with_file_name(&name)));
            }
        }
    }

    /// Refuses when a file would be written that is read, or two into one, or the answer into a folder that is not there.
    pub(crate) fn apart_from(&self, inputs: &Inputs) -> Result<(), Failure> {
        // Before minutes of reading. Checks print their outcomes whatever happens to their files, and make folders for answers.
        for (_, file) in self.files.iter().filter(|(option, _)| *option == "-o") {
            if file.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
                return Err(Problem::file("write", file, &io::Error::from_raw_os_error(NO_SUCH_FILE)).into());
            }
        }
        let outputs: Vec<(&str, &Path, Option<Handle>)> =
            self.files.iter().map(|(option, file)| (*option, file.as_path(), plain(file))).collect();
        for (at, (option, file, handle)) in outputs.iter().enumerate() {
            for (other_option, other, other_handle) in &outputs[..at] {
                let is_same = match (handle, other_handle) {
                    (Some(handle), Some(other)) => handle == other,
                    // Neither is there yet.
                    (None, None) => place(file).is_some_and(|place| self::place(other) == Some(place)),
                    _ => false,
                };
                // A family names files that are there, one of which may be the first itself.
                if is_same && option != other_option {
                    let what =
                        format!("{option} `{}` and {other_option} `{}` are one file", file.display(), other.display());
                    return Err(Problem::new(what).hint("give each a name of its own").into());
                }
            }
        }
        for (option, file) in &self.files {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let Ok(folder) = folder.canonicalize() else { continue };
            if let Some(store) = folder.ancestors().find(|folder| tq_engine::store::find(folder).is_some()) {
                let what = format!("{option} `{}` lies in the store `{}`", file.display(), store.display());
                return Err(Problem::new(what).hint("write to another folder; nothing was read or written").into());
            }
        }
        for (option, prefix, extension) in &self.families {
            let Some((folder, prefix)) = place(prefix) else { continue };
            let prefix = prefix.to_string_lossy().into_owned();
            let is_of_family = |other: &Path| {
                place(other).is_some_and(|(of_other, name)| {
                    let name = name.to_string_lossy();
                    of_other == folder && name.starts_with(&prefix) && name.ends_with(extension)
                })
            };
            if let Some((other_option, other, _)) =
                outputs.iter().find(|(other_option, other, _)| other_option != option && is_of_family(other))
            {
                let what = format!("{other_option} `{}` may be a file of {option}", other.display());
                return Err(Problem::new(what).hint("give it a name of its own").into());
            }
        }
        let stdin = Handle::stdin();
        let stdout = Handle::stdout();
        let stdin = (!io::stdin().is_terminal() && is_file(&stdin)).then_some(stdin).and_then(Result::ok);
        let stdout = is_file(&stdout).then_some(stdout).and_then(Result::ok);
        if let Some(stdin) = &stdin {
            for (option, file, handle) in &outputs {
                if handle.as_ref() == Some(stdin) {
                    return Err(is_read(option, file, "standard input"));
                }
            }
        }
        if outputs.iter().all(|(.., handle)| handle.is_none()) && stdout.is_none() {
            return Ok(());
        }
        // One at a time: a directory may hold more files than a process may open.
        for input in inputs.files.iter().chain(&config::path()) {
            let Some(read) = plain(input) else { continue };
            for (option, file, handle) in &outputs {
                if handle.as_ref() == Some(&read) {
                    return Err(is_read(option, file, &format!("`{}`", input.display())));
                }
            }
            if stdout.as_ref() == Some(&read) {
                let what = format!("standard output is `{}`, which is read", input.display());
                return Err(Problem::new(what).hint("redirect it into another file").into());
            }
        }
        Ok(())
    }
}

fn is_read(option: &str, file: &Path, input: &str) -> Failure {
    let what = format!("{option} would overwrite `{}`, which is {input} that is read", file.display());
    Problem::new(what).hint("write to another file; nothing was read or written").into()
}

/// A plain file that is there. Opening a pipe would wait for its other end.
fn plain(file: &Path) -> Option<Handle> {
    fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    Handle::from_path(file).ok()
}

fn is_file(handle: &io::Result<Handle>) -> bool {
    let metadata = handle.as_ref().ok().and_then(|handle| handle.as_file().metadata().ok());
    metadata.is_some_and(|metadata| metadata.is_file())
}

/// The folder and the name of a file that is not there yet; `None` for what is there and is no plain file.
fn place(file: &Path) -> Option<(PathBuf, std::ffi::OsString)> {
    if file.exists() {
        return None;
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((folder.canonicalize().ok()?, file.file_name()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(files: &[(&'static str, PathBuf)]) -> Outputs {
        Outputs { files: files.to_vec(), ..Outputs::default() }
    }

    #[test]
    fn an_output_is_no_input_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("run.json"), "x").unwrap();
        fs::hard_link(at("run.json"), at("hard.json")).unwrap();
        let mut inputs = Inputs::default();
        inputs.add(&at("run.json"));
        for name in ["run.json", "hard.json", "./run.json", "../x/run.json"] {
            let path = if name.starts_with("..") {
                folder.path().join("..").join(folder.path().file_name().unwrap()).join("run.json")
            } else {
                at(name)
            };
            assert!(outputs(&[("-o", path)]).apart_from(&inputs).is_err(), "{name}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("run.json"), at("soft.json")).unwrap();
            assert!(outputs(&[("-o", at("soft.json"))]).apart_from(&inputs).is_err());
        }
        assert!(outputs(&[("-o", at("new.json"))]).apart_from(&inputs).is_ok());
    }

    #[test]
    fn two_outputs_are_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let none = Inputs::default();
        assert!(outputs(&[("--junit", at("a")), ("--picture", at("./a"))]).apart_from(&none).is_err());
        assert!(outputs(&[("--junit", at("a")), ("--picture", at("b"))]).apart_from(&none).is_ok());
        fs::write(at("a"), "").unwrap();
        fs::hard_link(at("a"), at("b")).unwrap();
        assert!(outputs(&[("--junit", at("a")), ("--picture", at("b"))]).apart_from(&none).is_err());
        let null = PathBuf::from("/dev/null");
        assert!(outputs(&[("--junit", null.clone()), ("--picture", null)]).apart_from(&none).is_ok());
    }

    #[test]
    fn a_file_is_replaced_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "old").unwrap();
        write(&at("old"), "new").unwrap();
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "new");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
            write(&at("link"), "third").unwrap();
            assert_eq!(fs::read_to_string(at("old")).unwrap(), "new");
            fs::set_permissions(at("old"), fs::Permissions::from_mode(0o600)).unwrap();
            write(&at("old"), "fourth").unwrap();
            assert_eq!(fs::metadata(at("old")).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            if cfg!(unix) { 2 } else { 1 },
            "nothing is left over"
        );
    }
}
