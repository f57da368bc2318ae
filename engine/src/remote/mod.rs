//! Remote: traces behind URLs. Only what a command line names is asked for; no query, template, mapping or trace leads here.
//!
//! ```text
//! s3://bucket/key   gs://bucket/key   az://container/key   http(s)://host/path     → one GET → a temporary file → an importer
//! ```
//! A trace is copied to a temporary file first: it is read twice at least (its head, then all of it), some formats are databases, and a
//! server need not know ranges. The copy goes with its [`MadeFile`], or with the process. What may be secret in a URL (a
//! signature behind `?`) is asked with and never shown: [`shown`] is what tables and messages say.
//!
//! `connect` finds credentials, `profile` those of `~/.aws`, `words` says what went wrong, `wait` runs requests.

mod connect;
mod folder;
mod profile;
mod wait;
mod words;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use object_store::{GetOptions, ObjectStore};

pub(crate) use self::folder::{Folder, may_be_store};

use crate::error::ImportError;
use crate::trace::temporary::{TemporaryFolder, no_copy};
use crate::trace::{Deadline, MadeFile, Progress};

/// A server that sends nothing for so long has failed.
const SILENCE: Duration = Duration::from_secs(60);

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    S3,
    Google,
    Azure,
    Web,
}

/// How URLs begin.
const SCHEMES: [(&str, Service); 5] = [
    ("s3://", Service::S3),
    ("gs://", Service::Google),
    ("az://", Service::Azure),
    ("http://", Service::Web),
    ("https://", Service::Web),
];

/// Where a URL leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Location {
    service: Service,
    /// The bucket; of the web, the whole URL.
    bucket: String,
    /// The object in the bucket; of the web, nothing.
    key: String,
    shown: PathBuf,
}

/// Whether a path is a URL that can be read.
pub fn is_url(path: &Path) -> bool {
    service_of(path).is_some()
}

fn service_of(path: &Path) -> Option<(Service, &str, &str)> {
    let text = path.to_str()?;
    let (scheme, service) = SCHEMES.into_iter().find(|(scheme, _)| text.starts_with(scheme))?;
    Some((service, scheme, &text[scheme.len()..]))
}

/// A path as it may be shown: of a URL, without user, password, and what stands behind `?` or `#`.
pub fn shown(path: &Path) -> PathBuf {
    let Some((service, scheme, rest)) = service_of(path) else { return path.to_owned() };
    if service != Service::Web {
        return path.to_owned();
    }
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let host_end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..host_end].rfind('@').map_or(0, |at| at + 1);
    PathBuf::from(format!("{scheme}{}", &rest[host..]))
}

impl Location {
    fn parse(url: &Path) -> Result<Location, ImportError> {
        let unusable = |what: &str, hint: &str| ImportError::Unusable {
            path: shown(url),
            what: what.to_owned(),
            hint: Some(hint.to_owned()),
        };
        let Some((service, scheme, rest)) = service_of(url) else {
            return Err(unusable("it is no URL that can be read", "s3://, gs://, az://, http:// and https:// are"));
        };
        if service == Service::Web && rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) {
            return Err(unusable("a user and a password in a URL are not sent", words::SIGNED));
        }
        // Formats look for files beside a trace. Here they could find some that somebody else has put there.
        let folder = scheme.trim_end_matches('/');
        if Path::new(folder).symlink_metadata().is_ok() {
            return Err(unusable(
                &format!(
                    "the current folder has a `{folder}`, and files in it could be taken for files beside the URL"
                ),
                "run tq in another folder; `./` before the path names the file",
            ));
        }
        let (bucket, key) = match service {
            Service::Web => (url.to_str().unwrap_or_default().split('#').next().unwrap_or_default(), ""),
            _ => rest.split_once('/').unwrap_or((rest, "")),
        };
        if service != Service::Web && bucket.is_empty() {
            return Err(unusable("it names no object", &format!("`{scheme}BUCKET/OBJECT` does")));
        }
        Ok(Location { service, bucket: bucket.to_owned(), key: key.to_owned(), shown: shown(url) })
    }
}

/// Copies what a URL names to a temporary file.
///
/// # Errors
/// [`ImportError::Unusable`] when the server does not give it, or the copy cannot be written; [`ImportError::Late`].
pub(crate) fn download(
    url: &Path,
    progress: Option<Arc<dyn Progress>>,
    deadline: Deadline,
) -> Result<MadeFile, ImportError> {
    let location = Location::parse(url)?;
    if location.service != Service::Web && location.key.is_empty() {
        let hint = format!("`{}/OBJECT` does", location.shown.display());
        return Err(ImportError::Unusable {
            path: location.shown,
            what: "it names no object, and the bucket is no store".to_owned(),
            hint: Some(hint),
        });
    }
    let folder = TemporaryFolder::new().map_err(|error| no_copy(&location.shown, &error))?;
    let path = folder.file("download");
    let (shown, copy) = (location.shown.clone(), path.clone());
    wait::wait(&shown, deadline, async move {
        let store = connect::connect(&location).await?;
        copied(&*store, &location, &copy, progress).await
    })??;
    Ok(MadeFile { path, _folder: folder })
}

/// Asks for an object and writes it to a file as it comes. A connection that breaks is taken up where it broke, if the server has an ETag.
async fn copied(
    store: &dyn ObjectStore,
    location: &Location,
    copy: &Path,
    progress: Option<Arc<dyn Progress>>,
) -> Result<(), ImportError> {
    let failed = |error: object_store::Error| words::no_trace(location, &error);
    let not_written = |error: std::io::Error| no_copy(&location.shown, &error);
    let key = object_store::path::Path::parse(&location.key).map_err(|error| failed(error.into()))?;
    let silent = |_| words::silent(location, SILENCE);
    // Before the first byte, the client asks several times.
    let answer = tokio::time::timeout(2 * SILENCE, store.get_opts(&key, GetOptions::default())).await;
    let answer = answer.map_err(silent)?.map_err(failed)?;
    let total = answer.meta.size;
    let mut file = File::create(copy).map_err(not_written)?;
    let (mut bytes, mut read) = (answer.into_stream(), 0);
    while let Some(piece) = tokio::time::timeout(SILENCE, bytes.next()).await.map_err(silent)? {
        let piece = piece.map_err(|error| words::broken(location, &error, read, total))?;
        file.write_all(&piece).map_err(not_written)?;
        read += piece.len() as u64;
        if let Some(progress) = &progress {
            progress.advanced(&location.shown, read, Some(total));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let check = |url: &str, expected: &str| assert_eq!(shown(Path::new(url)), Path::new(expected));
        check("https://me:secret@host:1/a/run.json?sig=secret#x", "https://host:1/a/run.json");
        check("https://host/a@b/run.json#secret", "https://host/a@b/run.json");
        check("https://host?secret", "https://host");
        check("s3://bucket/a?b#c@d", "s3://bucket/a?b#c@d");
        check("a?b", "a?b");
    }

    #[test]
    fn urls_name_a_bucket_and_an_object() {
        let parse = |url: &str| Location::parse(Path::new(url)).map(|location| (location.bucket, location.key));
        assert_eq!(parse("s3://b/a/c d?e").unwrap(), ("b".to_owned(), "a/c d?e".to_owned()));
        assert_eq!(parse("http://h/a?b=c#d").unwrap(), ("http://h/a?b=c".to_owned(), String::new()));
        for wrong in ["http://me:secret@h/a", "s3://", "az:///a", "ftp://h/a", "s3:/b/a"] {
            assert!(matches!(parse(wrong), Err(ImportError::Unusable { .. })), "{wrong}");
        }
        assert!(!is_url(Path::new("ftp://h/a")) && is_url(Path::new("https://h")));
    }
}
