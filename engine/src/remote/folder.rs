//! Folder: the objects of a store behind a URL, asked for by their names in it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, WriteMultipart,
};

use super::{Location, SILENCE, Service, connect, service_of, shown, wait, words};
use crate::error::ImportError;
use crate::trace::Deadline;

/// So many objects are asked for at once.
const AT_ONCE: usize = 16;
/// Bytes of a part of a large object, of which S3 takes 10000.
const PART: usize = 8 << 20;
/// Parts that are sent at once.
const PARTS_AT_ONCE: usize = 4;

/// A store behind a URL, and who answers for it.
#[derive(Debug)]
pub(crate) struct Folder {
    location: Location,
    objects: Arc<dyn ObjectStore>,
}

/// Folders that this process has connected to: each part of a store is asked of the same.
static CONNECTED: Mutex<Vec<Arc<Folder>>> = Mutex::new(Vec::new());

/// Whether a URL can be that of a store: whatever is shown of it leads there.
pub(crate) fn may_be_store(url: &Path) -> bool {
    service_of(url).is_some_and(|(service, ..)| service != Service::Web || shown(url) == url)
}

impl Folder {
    /// The folder of that URL.
    ///
    /// # Errors
    /// It is no such URL, or there are no credentials for it.
    pub(crate) fn of(url: &Path, deadline: Deadline) -> Result<Arc<Folder>, ImportError> {
        let mut location = Location::parse(url)?;
        if !may_be_store(url) {
            return Err(ImportError::Unusable {
                path: location.shown,
                what: "the URL of a store has nothing behind `?`".to_owned(),
                hint: Some("`s3://`, `gs://` and `az://` take credentials from the environment".to_owned()),
            });
        }
        for text in [&mut location.bucket, &mut location.key] {
            text.truncate(text.trim_end_matches('/').len());
        }
        let known = || CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = known().iter().find(|folder| folder.location == location) {
            return Ok(Arc::clone(folder));
        }
        let of_request = location.clone();
        let objects = wait::wait(&location.shown, deadline, async move { connect::connect(&of_request).await })??;
        let folder = Arc::new(Folder { location, objects });
        known().push(Arc::clone(&folder));
        Ok(folder)
    }

    /// An object of a limited size; `None` where it is not there. A refusal counts as not there: services answer so for missing objects to
    /// clients that may not list them.
    ///
    /// # Errors
    /// It cannot be read, or is larger.
    pub(crate) fn look_for(
        self: &Arc<Self>,
        name: &str,
        largest: u64,
        deadline: Deadline,
    ) -> Result<Option<Bytes>, ImportError> {
        let (folder, name) = (Arc::clone(self), name.to_owned());
        wait::wait(&self.location.shown, deadline, async move {
            match folder.whole(&name, largest).await {
                Err(Failure::Asked(error)) if words::is_refusal(&error) => Ok(None),
                other => other.map(Some).map_err(|failure| folder.worded(&name, failure)),
            }
        })?
    }

    /// Objects that must be there, in this order.
    ///
    /// # Errors
    /// One of them is not there, cannot be read, or is larger.
    pub(crate) fn get_all(
        self: &Arc<Self>,
        names: Vec<String>,
        largest: u64,
        deadline: Deadline,
    ) -> Result<Vec<Bytes>, ImportError> {
        let folder = Arc::clone(self);
        wait::wait(&self.location.shown, deadline, async move {
            let got = names.into_iter().map(|name| {
                let folder = Arc::clone(&folder);
                async move { folder.whole(&name, largest).await.map_err(|failure| folder.worded(&name, failure)) }
            });
            stream::iter(got).buffered(AT_ONCE).try_collect().await
        })?
    }

    /// A range of an object whose whole length is known.
    ///
    /// # Errors
    /// It cannot be read, or has another length.
    pub(crate) fn range(self: &Arc<Self>, name: &str, from: u64, end: u64, total: u64) -> Result<Bytes, ImportError> {
        let (folder, name) = (Arc::clone(self), name.to_owned());
        wait::wait(&self.location.shown, Deadline::default(), async move {
            let options = GetOptions { range: Some(GetRange::Bounded(from..end)), ..GetOptions::default() };
            let read = async {
                let (size, bytes) = folder.asked(&name, options).await?;
                if size != total {
                    return Err(Failure::Length(size, total));
                }
                collected(bytes, end - from).await
            };
            read.await.map_err(|failure| folder.worded(&name, failure))
        })?
    }

    /// That objects can be made here.
    ///
    /// # Errors
    /// It is a web server.
    pub(crate) fn check_writable(&self) -> Result<(), ImportError> {
        match self.location.service {
            Service::Web => Err(ImportError::Unusable {
                path: self.location.shown.clone(),
                what: "stores of web servers are only read".to_owned(),
                hint: Some("`s3://`, `gs://` and `az://` are written, too".to_owned()),
            }),
            _ => Ok(()),
        }
    }

    /// Makes an object; `false` where one of that name is there, and it is another.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(self: &Arc<Self>, name: &str, bytes: Vec<u8>) -> Result<bool, ImportError> {
        let (folder, name, bytes) = (Arc::clone(self), name.to_owned(), Bytes::from(bytes));
        wait::wait(&self.location.shown, Deadline::default(), async move {
            match folder.written(&name, bytes.clone(), PutMode::Create).await {
                Ok(()) => Ok(true),
                // A request that was repeated meets what it made itself when only its answer was lost.
                Err(Failure::Asked(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                    match folder.whole(&name, bytes.len() as u64).await {
                        Ok(there) => Ok(there == bytes),
                        Err(Failure::Large(_)) => Ok(false),
                        Err(failure) => Err(folder.worded(&name, failure)),
                    }
                }
                Err(failure) => Err(folder.not_written(&name, failure)),
            }
        })?
    }

    /// Writes an object, over one that is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn put(self: &Arc<Self>, name: &str, bytes: Vec<u8>) -> Result<(), ImportError> {
        let (folder, name) = (Arc::clone(self), name.to_owned());
        wait::wait(&self.location.shown, Deadline::default(), async move {
            let written = folder.written(&name, bytes.into(), PutMode::Overwrite).await;
            written.map_err(|failure| folder.not_written(&name, failure))
        })?
    }

    /// Writes a file to an object, in parts where it is large.
    ///
    /// # Errors
    /// The file cannot be read, or the object not written.
    pub(crate) fn upload(self: &Arc<Self>, name: &str, file: &Path, deadline: Deadline) -> Result<(), ImportError> {
        let (folder, name, file) = (Arc::clone(self), name.to_owned(), file.to_owned());
        wait::wait(&self.location.shown, deadline, async move {
            let sent = folder.sent(&name, &file).await;
            sent.map_err(|failure| folder.not_written(&name, failure))
        })?
    }

    async fn sent(&self, name: &str, path: &Path) -> Result<(), Failure> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() <= PART as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return self.written(name, bytes.into(), PutMode::Overwrite).await;
        }
        let upload = self.objects.put_multipart(&self.key(name)?).await.map_err(Failure::Asked)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
        let mut buffer = vec![0; PART];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                // What was sent goes when this fails.
                return upload.finish().await.map(drop).map_err(Failure::Asked);
            }
            upload.wait_for_capacity(PARTS_AT_ONCE).await.map_err(Failure::Asked)?;
            upload.write(&buffer[..count]);
        }
    }

    async fn written(&self, name: &str, bytes: Bytes, mode: PutMode) -> Result<(), Failure> {
        // Slower than this, it is no use.
        let time = 2 * SILENCE + Duration::from_millis(bytes.len() as u64 / 100);
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = tokio::time::timeout(time, async {
            self.objects.put_opts(&self.key(name)?, bytes.into(), options).await.map_err(Failure::Asked)
        });
        put.await.map_err(|_| Failure::Silent(time))?.map(drop)
    }

    /// The objects whose names begin with that of a folder: their names, bytes, and how old they are in seconds by the clock of this machine.
    ///
    /// # Errors
    /// They are not listed.
    pub(crate) fn list(self: &Arc<Self>, below: &str, now: i64) -> Result<Vec<(String, u64, i64)>, ImportError> {
        let (folder, below) = (Arc::clone(self), below.to_owned());
        wait::wait(&self.location.shown, Deadline::default(), async move {
            folder.listed(&below, now).await.map_err(|failure| folder.worded(&below, failure))
        })?
    }

    async fn listed(&self, below: &str, now: i64) -> Result<Vec<(String, u64, i64)>, Failure> {
        let prefix = self.key(below)?;
        let objects: Vec<ObjectMeta> = self.objects.list(Some(&prefix)).try_collect().await.map_err(Failure::Asked)?;
        let named = objects.into_iter().filter_map(|object| {
            let name = object.location.as_ref().strip_prefix(&self.location.key)?.trim_start_matches('/').to_owned();
            Some((name, object.size, now - object.last_modified.timestamp()))
        });
        Ok(named.collect())
    }

    /// Deletes objects; those that are not there are no error.
    ///
    /// # Errors
    /// One of them cannot be deleted.
    pub(crate) fn delete(self: &Arc<Self>, names: Vec<String>) -> Result<(), ImportError> {
        let folder = Arc::clone(self);
        wait::wait(&self.location.shown, Deadline::default(), async move {
            for name in names {
                let deleted = async { folder.objects.delete(&folder.key(&name)?).await.map_err(Failure::Asked) };
                match deleted.await {
                    Ok(()) | Err(Failure::Asked(Error::NotFound { .. })) => {}
                    Err(failure) => return Err(folder.not_written(&name, failure)),
                }
            }
            Ok(())
        })?
    }

    async fn whole(&self, name: &str, largest: u64) -> Result<Bytes, Failure> {
        let (size, bytes) = self.asked(name, GetOptions::default()).await?;
        if size > largest { Err(Failure::Large(size)) } else { collected(bytes, size).await }
    }

    /// The length of an object, and its bytes as they come.
    async fn asked(
        &self,
        name: &str,
        options: GetOptions,
    ) -> Result<(u64, BoxStream<'static, Result<Bytes, Error>>), Failure> {
        let key = self.key(name)?;
        // Before the first byte, the client asks several times.
        let answer = tokio::time::timeout(2 * SILENCE, self.objects.get_opts(&key, options)).await;
        let answer = answer.map_err(|_| Failure::Silent(2 * SILENCE))?.map_err(Failure::Asked)?;
        Ok((answer.meta.size, answer.into_stream()))
    }

    fn key(&self, name: &str) -> Result<Key, Failure> {
        let whole = match self.location.key.as_str() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        Key::parse(whole).map_err(|error| Failure::Asked(error.into()))
    }

    /// The path of an object as messages say it.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}/{name}", self.location.shown.display().to_string().trim_end_matches('/')))
    }

    /// The error of an object that is not written. Its words are those of reading, but for the first.
    fn not_written(&self, name: &str, failure: Failure) -> ImportError {
        match self.worded(name, failure) {
            ImportError::Unusable { path, what, hint } => {
                let what = what.strip_prefix("cannot read it: ").unwrap_or(&what);
                ImportError::Unusable { path, what: format!("cannot write it: {what}"), hint }
            }
            other => other,
        }
    }

    fn worded(&self, name: &str, failure: Failure) -> ImportError {
        let location = Location { shown: self.path(name), ..self.location.clone() };
        let unusable = |what: String| ImportError::Unusable { path: location.shown.clone(), what, hint: None };
        match failure {
            Failure::Asked(Error::NotSupported { .. }) => {
                unusable("the server gives no ranges of a file, which a store needs".to_owned())
            }
            Failure::Asked(error) => words::failed(&location, &error),
            Failure::Silent(time) => words::silent(&location, time),
            Failure::File(error) => unusable(error.to_string()),
            Failure::Large(bytes) => unusable(format!("damaged: it has {bytes} bytes, which is too large")),
            Failure::Length(bytes, expected) => {
                unusable(format!("damaged: it has {bytes} bytes instead of {expected}"))
            }
        }
    }
}

/// Why an object could not be had or made.
enum Failure {
    Asked(Error),
    /// The file that becomes an object.
    File(std::io::Error),
    Silent(Duration),
    /// It is too large: its length in bytes.
    Large(u64),
    /// It has another length than expected: its own, and the expected one.
    Length(u64, u64),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::File(error)
    }
}

/// Bytes as they come, together.
async fn collected(mut bytes: BoxStream<'static, Result<Bytes, Error>>, expected: u64) -> Result<Bytes, Failure> {
    let mut all = BytesMut::new();
    while let Some(piece) = tokio::time::timeout(SILENCE, bytes.next()).await.map_err(|_| Failure::Silent(SILENCE))? {
        all.extend_from_slice(&piece.map_err(Failure::Asked)?);
        if all.len() as u64 > expected {
            return Err(Failure::Length(all.len() as u64, expected));
        }
    }
    match all.len() as u64 {
        bytes if bytes == expected => Ok(all.freeze()),
        bytes => Err(Failure::Length(bytes, expected)),
    }
}
