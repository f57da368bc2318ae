//! Reports of Nsight Systems (`.nsys-rep`): made into a database by NVIDIA's own `nsys export`, where that is installed.
//!
//! The content of a report is undocumented. `nsys` is looked for only in the absolute folders of `PATH`: with `.`, an empty or
//! a relative entry, a folder of somebody else's files could provide a program of that name. The database is made in a
//! temporary folder of its own, which is removed together with the source.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::ImportError;
use crate::trace::{Deadline, MadeFile, TemporaryFolder, no_copy};

/// The most bytes of messages of `nsys` that are read.
const SAID_BYTES: u64 = 1 << 20;
/// How often is looked whether it has ended.
const EVERY: Duration = Duration::from_millis(10);

/// `--option nsys=no`: reports are not handed to `nsys`.
pub(crate) const OPTION: &str = "nsys";

/// The program, if some absolute folder of `path` holds it.
pub(crate) fn nsys_of(path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("nsys")).find(|program| is_program(program))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Runs `nsys export --type sqlite` on a report.
///
/// # Errors
/// [`ImportError::Unusable`] with what `nsys` said when it makes no database, as it does when it is ended at the deadline;
/// [`ImportError::Io`] when it or a temporary folder cannot be had.
pub(crate) fn export(nsys: &Path, report: &Path, deadline: Deadline) -> Result<MadeFile, ImportError> {
    let folder = TemporaryFolder::new().map_err(|error| no_copy(report, &error))?;
    let (made, said) = (folder.file("report.sqlite"), folder.file("said"));
    let says = || File::options().create(true).append(true).open(&said).map_err(|error| no_copy(report, &error));
    // A path that begins with a dash is no option.
    let report_argument = if report.is_absolute() { report.to_owned() } else { Path::new(".").join(report) };
    let failed = |source| ImportError::Io { path: nsys.to_owned(), source };
    let mut program = Command::new(nsys);
    program
        .args(["export", "--type", "sqlite", "--force-overwrite", "true", "--output"])
        .arg(&made)
        .arg(&report_argument)
        .stdin(Stdio::null())
        .stdout(says()?)
        .stderr(says()?);
    let status = until(program, deadline).map_err(failed)?;
    if !status.success() || !made.is_file() {
        let mut bytes = Vec::new();
        File::open(&said).and_then(|said| said.take(SAID_BYTES).read_to_end(&mut bytes)).map_err(failed)?;
        let said = String::from_utf8_lossy(&bytes);
        let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing").to_owned();
        return Err(ImportError::Unusable {
            path: report.to_owned(),
            what: format!("`{} export` made no database of this report ({}); it said: {said}", nsys.display(), status),
            hint: Some(
                "export it where it was recorded and open the `.sqlite`; `--option nsys=no` does not run nsys"
                    .to_owned(),
            ),
        });
    }
    Ok(MadeFile { path: made, _folder: folder })
}

/// Runs a program to its end, which is the deadline at the latest.
fn until(mut program: Command, deadline: Deadline) -> io::Result<ExitStatus> {
    let mut running = program.spawn()?;
    while deadline.is_set() {
        if let Some(status) = running.try_wait()? {
            return Ok(status);
        }
        if deadline.is_over() {
            running.kill()?;
            break;
        }
        std::thread::sleep(EVERY);
    }
    running.wait()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn program(folder: &Path, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join("nsys");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    #[cfg(unix)]
    fn only_absolute_folders_are_searched() {
        let folder = tempfile::tempdir().unwrap();
        let nsys = program(folder.path(), "#!/bin/sh\n");
        let of = |entries: &str| nsys_of(Some(OsStr::new(entries)));
        let absolute = folder.path().to_str().unwrap();
        assert_eq!(of(absolute), Some(nsys));
        let from_here = std::env::current_dir().unwrap();
        let up: String = from_here.components().skip(1).map(|_| "../").collect();
        let relative = format!("{up}{}", absolute.trim_start_matches('/'));
        assert!(Path::new(&relative).join("nsys").exists());
        assert_eq!(of(&format!(".::{relative}")), None);
        std::fs::set_permissions(folder.path().join("nsys"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .unwrap();
        assert_eq!(of(absolute), None);
        assert_eq!(nsys_of(None), None);
    }

    #[test]
    #[cfg(unix)]
    fn what_nsys_says_is_passed_on() {
        let never = Deadline::default();
        let folder = tempfile::tempdir().unwrap();
        let nsys = program(folder.path(), "#!/bin/sh\necho 'Report is damaged.' >&2\nexit 3\n");
        let error = export(&nsys, Path::new("-run.nsys-rep"), never).unwrap_err().to_string();
        assert!(error.contains("it said: Report is damaged."), "{error}");
        let nsys = program(folder.path(), "#!/bin/sh\n[ \"$8\" = ./-run.nsys-rep ] || exit 1\necho data > \"$7\"\n");
        let made = export(&nsys, Path::new("-run.nsys-rep"), never).unwrap();
        assert_eq!(std::fs::read_to_string(&made.path).unwrap(), "data\n");
        let path = made.path.clone();
        drop(made);
        assert!(!path.exists());
        // One that never ends is ended.
        let nsys = program(folder.path(), "#!/bin/sh\nexec sleep 1000\n");
        let soon = Deadline::after(Some(Duration::from_millis(20)));
        assert!(export(&nsys, Path::new("run.nsys-rep"), soon).unwrap_err().to_string().contains("signal"));
    }
}
