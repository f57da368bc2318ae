//! Worker: a process that does fragments of others' plans.
//!
//! ```text
//! a request ─▶ token ─▶ what was opened there (TqOptions) ─▶ the store, opened in the same way ─▶ fragment ─▶ rows
//! ```
//! It reads stores and nothing else: paths are looked at here, whatever the client says. The session that was asked for last stays open.

use std::fs;
use std::io::ErrorKind::PermissionDenied;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion_distributed::{DistributedExt, Worker, WorkerQueryContext, WorkerResolver};
use futures::{Stream, StreamExt};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};
use tq_udfs::relation::notes::Notes;

use super::channel::{ASKED, MEMORY, TOKEN, WORK};
use super::client::codec_of;
use super::codec::TqCodec;
use super::options::{Opened, TqOptions, apply_settings, ascii};
use super::running::{Fragments, OnWorker};
use super::{MESSAGE_BYTES, VERSION};
use crate::error::ImportError;
use crate::memory::SessionPool;
use crate::options::{OpenOptions, TraceSpec};
use crate::remote;
use crate::secret;
use crate::session::Session;
use crate::sql::relations::RelationFunctions;
use crate::store;
use crate::time::GivenTime;

/// How often a client is asked for a sign of life, and how long it may take.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const ALIVE_WITHIN: Duration = Duration::from_secs(20);

/// How long nobody is accepted after that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Stores that whoever asks what a worker does hears of, and letters of each name.
const STORES_TOLD: usize = 8;
const LETTERS_TOLD: usize = 200;

/// How a worker serves.
#[derive(Debug, Clone)]
pub struct Serving {
    /// What clients must say; `None`: whoever can connect may ask.
    pub token: Option<String>,
    /// Certificates and their key (PEM), with which the worker shows who it is; `None`: nothing is encrypted.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Folders (absolute, without links) and URLs below which stores are read; `None`: anywhere.
    pub allowed: Option<Vec<PathBuf>>,
    /// Bytes for the tables and queries of all stores together.
    pub memory_limit: usize,
    /// Where its work is counted, and of how many threads a query has.
    pub fragments: Arc<Fragments>,
    /// Bytes that the process has in memory, for whoever asks how it is; `None`: not known.
    pub bytes_used: fn() -> Option<u64>,
}

/// Answers requests until the process ends.
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, serving: Serving) -> std::io::Result<()> {
    let name = listener.local_addr()?.to_string();
    let token = serving.token.clone();
    let is_known = move |request: Request<()>| match &token {
        None => Ok(request),
        Some(token) => match request.metadata().get(TOKEN) {
            Some(given) if secret::is_same(token.as_bytes(), given.as_encoded_bytes()) => Ok(request),
            _ => Err(Status::unauthenticated("the token is missing or wrong")),
        },
    };
    let fragments = Arc::clone(&serving.fragments);
    let sessions = Arc::new(Sessions {
        name,
        pool: Arc::new(SessionPool::new(serving.memory_limit)),
        serving: serving.clone(),
        fragments: Arc::clone(&fragments),
        last: Mutex::new(None),
    });
    let worker = Worker::from_session_builder(move |asked: WorkerQueryContext| {
        let sessions = Arc::clone(&sessions);
        async move { sessions.state(asked).await }
    });
    let worker = worker.with_version(VERSION);
    // Which workers there are is for clients to know.
    let observed = worker.with_observability_service(Arc::new(Nobody)).max_encoding_message_size(MESSAGE_BYTES);
    let observed = Telling { service: observed, bytes_used: serving.bytes_used, fragments };
    let service =
        worker.into_worker_server().max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES);
    let server = match &serving.identity {
        Some(identity) => encrypting(identity).map_err(std::io::Error::other)?,
        None => Server::builder(),
    };
    server
        .http2_keepalive_interval(Some(ALIVE_EVERY))
        .http2_keepalive_timeout(Some(ALIVE_WITHIN))
        .layer(InterceptorLayer::new(is_known))
        .add_service(Addressed(service))
        .add_service(observed)
        .serve_with_incoming(patient(TcpIncoming::from(listener).with_nodelay(Some(true))))
        .await
        .map_err(std::io::Error::other)
}

/// Connections as they come. While none can be accepted, for lack of file descriptors, nobody is kept busy by that.
fn patient<S: Stream<Item = std::io::Result<C>>, C>(incoming: S) -> impl Stream<Item = std::io::Result<C>> {
    incoming.then(async |accepted| {
        if accepted.is_err() {
            tokio::time::sleep(ACCEPT_AGAIN).await;
        }
        accepted
    })
}

fn encrypting((certificates, key): &(Vec<u8>, Vec<u8>)) -> std::result::Result<Server, tonic::transport::Error> {
    Server::builder().tls_config(ServerTlsConfig::new().identity(Identity::from_pem(certificates, key)))
}

/// Whether certificates and a key (PEM) belong together.
///
/// # Errors
/// They do not, or cannot be read: why.
pub fn can_show(identity: &(Vec<u8>, Vec<u8>)) -> std::result::Result<(), String> {
    let error = match encrypting(identity) {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    Err(causes.last().map_or_else(String::new, ToString::to_string))
}

/// A service that notes in a header where it was asked: a worker that listens everywhere has no name of its own.
#[derive(Clone)]
struct Addressed<S>(S);

impl<S: NamedService> NamedService for Addressed<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for Addressed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let asked = request.uri().authority().and_then(|asked| http::HeaderValue::from_str(asked.as_str()).ok());
        request.headers_mut().remove(ASKED);
        if let Some(asked) = asked {
            request.headers_mut().insert(ASKED, asked);
        }
        self.0.call(request)
    }
}

/// A service whose answers say in headers how much memory the process has, and what it does.
#[derive(Clone)]
struct Telling<S> {
    service: S,
    bytes_used: fn() -> Option<u64>,
    fragments: Arc<Fragments>,
}

impl<S: NamedService> NamedService for Telling<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Telling<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.service.call(request);
        let (bytes, work) = ((self.bytes_used)(), work_in_ascii(&self.fragments));
        Box::pin(async move {
            let mut answer = answer.await?;
            if let Some(bytes) = bytes {
                answer.headers_mut().insert(MEMORY, http::HeaderValue::from(bytes));
            }
            if let Some(work) = work {
                answer.headers_mut().insert(WORK, work);
            }
            Ok(answer)
        })
    }
}

/// What a worker does, as the value of a header, which has a limit: of the first stores, whose names are cut.
fn work_in_ascii(fragments: &Fragments) -> Option<http::HeaderValue> {
    let mut work = fragments.work();
    work.truncate(STORES_TOLD);
    for work in &mut work {
        if let Some((end, _)) = work.store.char_indices().nth(LETTERS_TOLD) {
            work.store.truncate(end);
            work.store.push('…');
        }
    }
    http::HeaderValue::from_str(&ascii(&serde_json::to_string(&work).ok()?)).ok()
}

/// A worker knows of no others.
struct Nobody;

impl WorkerResolver for Nobody {
    fn get_urls(&self) -> Result<Vec<url::Url>> {
        Ok(vec![])
    }
}

/// Sessions as clients have them.
struct Sessions {
    /// The address, for messages.
    name: String,
    serving: Serving,
    fragments: Arc<Fragments>,
    /// Of all stores: queries of one may run while another is asked.
    pool: Arc<SessionPool>,
    last: Mutex<Option<(String, Arc<Mirror>)>>,
}

/// The number of a commit and what tells it from another one of that number.
type Commit = (u64, u128);

/// A session as a client has it, and what decodes in it.
struct Mirror {
    session: Session,
    codec: Arc<TqCodec>,
    /// Its stores, for whoever asks what is done.
    stores: String,
    /// The newest commits of its stores when it was opened.
    commits: Vec<Commit>,
}

impl Sessions {
    /// The state in which a fragment is decoded and executed.
    async fn state(self: &Arc<Self>, asked: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext { mut builder, headers } = asked;
        let name = headers.get(ASKED).and_then(|asked| asked.to_str().ok()).unwrap_or(&self.name);
        let config = builder.config().take().unwrap_or_default();
        let mut config = config.with_distributed_option_extension_from_headers::<TqOptions>(&headers)?;
        let Some(TqOptions { opened, settings }) = config.options().extensions.get::<TqOptions>().cloned() else {
            return exec_err!("worker {name}: the query does not say what it asks about");
        };
        let mirror = self
            .mirror(&opened)
            .await
            .map_err(|error| exec_datafusion_err!("worker {name}: {}", error.strip_backtrace()))?;
        let context = mirror.session.context();
        // As in the session, but for what datafusion-distributed knows of the task.
        let mut state = context.state();
        let own = state.config().options();
        let options = config.options_mut();
        options.execution = own.execution.clone();
        options.optimizer = own.optimizer.clone();
        options.sql_parser = own.sql_parser.clone();
        options.catalog = own.catalog.clone();
        apply_settings(options, &settings)?;
        config.set_extension(RelationFunctions::of(context));
        config.set_extension(Arc::new(Notes::default()));
        let store = mirror.stores.clone();
        config.set_extension(Arc::new(OnWorker {
            fragments: Arc::clone(&self.fragments),
            store,
            name: name.to_owned(),
        }));
        for function in &mirror.codec.of_plans {
            state.register_udf(Arc::clone(function))?;
        }
        *state.config_mut() = config.with_distributed_user_codec_arc(Arc::clone(&mirror.codec) as _);
        Ok(state)
    }

    /// The session that was opened there.
    async fn mirror(self: &Arc<Self>, text: &str) -> Result<Arc<Mirror>> {
        let (sessions, text) = (Arc::clone(self), text.to_owned());
        // Disks and servers let us wait.
        let found = tokio::task::spawn_blocking(move || {
            let opened = Opened::from_text(&text)?;
            let commits = sessions.allowed_commits(&opened)?;
            let last = sessions.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some((_, mirror)) = last.filter(|(of, mirror)| *of == text && mirror.commits == commits) {
                return Ok(mirror);
            }
            let mirror = Arc::new(open(&opened, &sessions, commits)?);
            *sessions.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((text, Arc::clone(&mirror)));
            Ok(mirror)
        });
        found.await.map_err(|_| exec_datafusion_err!("opening the store failed"))?
    }

    /// The newest commits of the stores, which must be stores that may be read.
    fn allowed_commits(&self, opened: &Opened) -> Result<Vec<Commit>> {
        let commit = |(_, path): &(Option<String>, String)| {
            let root = self.allowed_root(path)?;
            store::newest_commit(&root).map_err(|error| of_store(&error))
        };
        opened.traces.iter().map(commit).collect()
    }

    /// The root of a store that may be read.
    fn allowed_root(&self, text: &str) -> Result<PathBuf> {
        let path = Path::new(text);
        let allowed = self.serving.allowed.as_deref();
        if remote::is_url(path) {
            return match allowed.is_none_or(|allowed| allowed.iter().any(|url| is_url_below(text, url))) {
                true => Ok(path.to_owned()),
                false => exec_err!("`{}` is not below a URL of --allow", remote::shown(path).display()),
            };
        }
        if !path.is_absolute() {
            return exec_err!("`{}` is no path of a store", path.display());
        }
        let Some(place) = store::find(path) else {
            // Of what may not be read nobody knows whether it is a store.
            let is_closed = |folder: &&Path| fs::read_dir(folder).is_err_and(|error| error.kind() == PermissionDenied);
            if let Some(closed) = path.ancestors().find(is_closed) {
                return exec_err!("`{}` may not be read by this process: permission denied", closed.display());
            }
            return match path.exists() {
                true => exec_err!("`{}` is no store; a worker reads nothing else", path.display()),
                false => exec_err!("it sees no store `{}`, which must be there under this path", path.display()),
            };
        };
        if let Some(allowed) = allowed {
            let real = place.root.canonicalize()?;
            if !allowed.iter().any(|folder| real.starts_with(folder)) {
                return exec_err!("`{}` is not below a folder of --allow", path.display());
            }
        }
        Ok(place.root)
    }
}

/// Whether a URL leads below another one: servers take some texts for others, and those are below none.
fn is_url_below(url: &str, allowed: &Path) -> bool {
    let Some(allowed) = allowed.to_str().filter(|allowed| remote::is_url(Path::new(allowed))) else { return false };
    let allowed = allowed.trim_end_matches('/');
    let rest = url.strip_prefix(allowed).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_plain =
        |rest: &str| !rest.contains(['%', '\\', '?', '#']) && !rest.split('/').any(|part| part == ".." || part == ".");
    rest.is_some_and(is_plain)
}

fn of_store(error: &ImportError) -> DataFusionError {
    exec_datafusion_err!("{error}")
}

fn open(opened: &Opened, sessions: &Sessions, commits: Vec<Commit>) -> Result<Mirror> {
    let serving = &sessions.serving;
    let mut options = OpenOptions::new(serving.memory_limit, serving.fragments.threads());
    let spec = |(name, path): &(Option<String>, String)| TraceSpec { name: name.clone(), path: path.into() };
    options.traces = opened.traces.iter().map(spec).collect();
    options.run_pattern.clone_from(&opened.run_pattern);
    options.run_args.clone_from(&opened.run_args);
    options.from = opened.slice.0.map(GivenTime::Ticks);
    options.to = opened.slice.1.map(GivenTime::Ticks);
    options.max_value = opened.max_value;
    options.read_only = true;
    let session = Session::open_within(&sessions.pool, &options).map_err(|error| of_store(&error))?;
    if session.tick().symbol() != opened.tick {
        return exec_err!(
            "{}: its ticks are {} there and {} here",
            store::DIFFERS,
            opened.tick,
            session.tick().symbol()
        );
    }
    let codec = Arc::new(codec_of(&session)?);
    let stores: Vec<String> = opened.traces.iter().map(|(_, path)| path.clone()).collect();
    Ok(Mirror { session, codec, stores: stores.join(", "), commits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_below_an_allowed_one_are_told_from_their_like() {
        let allowed = Path::new("s3://bucket/nights/");
        for below in ["s3://bucket/nights", "s3://bucket/nights/", "s3://bucket/nights/runs.store"] {
            assert!(is_url_below(below, allowed), "{below}");
        }
        let others =
            ["s3://bucket/nights2", "s3://bucket", "s3://bucket/nights/../days", "s3://bucket/nights/%2e%2e/days"];
        for other in others.into_iter().chain(["https://bucket/nights/a", "s3://bucket/nights/a?b", "/nights"]) {
            assert!(!is_url_below(other, allowed), "{other}");
        }
        assert!(!is_url_below("/data/a", Path::new("/data")));
    }
}
