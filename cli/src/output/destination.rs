//! Where an output goes: standard output, or a file that appears when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;
use tq_engine::error::io_reason;
use tq_engine::trace::temporary::Registered;

use super::writer::Writer;
use crate::errors::{Failure, Problem};
use crate::files;
use crate::text::runner::{self, Spelling, harmless};

/// The place of an output: stdout, or a file that appears when it is complete.
pub(crate) struct Destination {
    /// The partial file and its final name.
    rename: Option<(TempPath, PathBuf)>,
    /// A signal does not leave the partial file behind either.
    _registered: Option<Registered>,
}

/// Standard output. Where a CI system reads it for commands, what is written is spelt so that it has none.
pub(crate) fn stdout(spelling: Spelling) -> Writer {
    let stdout = BufWriter::with_capacity(64 << 10, io::stdout());
    match is_for_people(spelling) || files::stdout_is_a_log() {
        true => Box::new(runner::Guarded::new(stdout, spelling)),
        false => Box::new(stdout),
    }
}

/// Whether a runner may read the text, now or when somebody prints the file that holds it.
fn is_for_people(spelling: Spelling) -> bool {
    matches!(spelling, Spelling::Escape | Spelling::Reference) && runner::is_listening()
}

impl Destination {
    /// Opens stdout or a file to write into.
    pub(crate) fn open(file: Option<&Path>, spelling: Spelling) -> Result<(Destination, Writer), Failure> {
        let Some(path) = file else {
            return Ok((Destination { rename: None, _registered: None }, stdout(spelling)));
        };
        let failed = |error: io::Error| Problem::file("write", path, &error);
        // What is there already and is no plain file stays what it is.
        if files::is_other(path) {
            let file = files::open_other(path)?;
            let destination = Destination { rename: None, _registered: None };
            return Ok((destination, Box::new(BufWriter::new(Named { file, path: path.to_owned() }))));
        }
        let (file, partial) = files::beside(path).map_err(failed)?.into_parts();
        let registered = Registered::new(&partial);
        let destination = Destination { rename: Some((partial, path.to_owned())), _registered: Some(registered) };
        let file = BufWriter::new(Named { file, path: path.to_owned() });
        let writer: Writer = match is_for_people(spelling) {
            true => Box::new(runner::Guarded::new(file, spelling)),
            false => Box::new(file),
        };
        Ok((destination, writer))
    }

    /// The output is complete: gives the file its name.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        match self.rename.take() {
            Some((partial, path)) => {
                partial.persist(&path).map_err(|error| Problem::file("write", &path, &error.error).into())
            }
            None => Ok(()),
        }
    }
}

/// A file that names itself when it cannot be written.
struct Named {
    file: File,
    path: PathBuf,
}

impl Named {
    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, format!("`{}`: {}", self.path.display(), io_reason(&error))),
        })
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.named(flushed)
    }
}

/// Writes text for people to stdout, in which a CI system finds no commands; a closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(&harmless(text, Spelling::Escape))
}

/// Writes text of ours to stdout.
pub(crate) fn print_as_it_is(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
