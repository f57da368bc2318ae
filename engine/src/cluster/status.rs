//! Status: whether a worker would help, and how much it does at the moment.

use std::time::Duration;

use datafusion::common::Result;
use datafusion_distributed::grpc::{GetTaskProgressRequest, ObservabilityServiceClient};
use datafusion_distributed::{ChannelResolver, GetWorkerInfoRequest};
use futures::future::join_all;
use url::Url;

use super::channel::{Channels, MEMORY, WORK};
use super::running::Work;
use super::workers::{Workers, address, is_refusal, reason};
use super::{MESSAGE_BYTES, VERSION};

/// How long a worker may take to say who it is.
const PROBE: Duration = Duration::from_secs(5);

/// Whether a worker would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It would.
    Ready,
    /// It is of this version, whose plans are not ours.
    OfVersion(String),
    /// It wants to hear another token.
    Refuses,
    /// It does not answer; why.
    Silent(String),
}

/// What is known of a worker.
#[derive(Debug, Clone)]
pub struct Status {
    /// `HOST:PORT`.
    pub address: String,
    /// Whether it would help.
    pub state: State,
    /// The fragments of queries that it works on; `None` where it does not say.
    pub work: Option<Vec<Work>>,
    /// Bytes that its process has in memory, without those of files; `None` where it does not say.
    pub memory: Option<u64>,
}

/// Asks all workers at once; each may take five seconds. Answers are in the order of the addresses.
///
/// # Errors
/// An address or the token cannot be one.
pub async fn status(workers: &Workers) -> Result<Vec<Status>> {
    let channels = Channels::new(workers.access()?);
    let (urls, channels) = (workers.urls()?, &channels);
    let asked = urls.iter().map(|url| async move {
        let state = state_of(channels, url).await;
        let (work, memory) = match state {
            State::Ready => load_of(channels, url).await.unwrap_or_default(),
            _ => (None, None),
        };
        Status { address: address(url), state, work, memory }
    });
    Ok(join_all(asked).await)
}

/// Asks a worker who it is.
pub(super) async fn state_of(channels: &Channels, url: &Url) -> State {
    let asked = async {
        let mut client = channels.get_worker_client_for_url(url).await?;
        client.get_worker_info(GetWorkerInfoRequest {}).await
    };
    match tokio::time::timeout(PROBE, asked).await {
        Ok(Ok(info)) if info.version == VERSION => State::Ready,
        Ok(Ok(info)) => State::OfVersion(info.version),
        Ok(Err(error)) if is_refusal(&error) => State::Refuses,
        Ok(Err(error)) => State::Silent(in_words(&reason(&error))),
        Err(_) => State::Silent(format!("does not answer within {} s", PROBE.as_secs())),
    }
}

/// Why somebody at an address is no help, in words for what libraries say of encryption.
fn in_words(reason: &str) -> String {
    const NO_WORKER: &str = "is no worker, ends just now, or encrypts: name its authority with --tls-ca";
    let known = [
        ("InvalidContentType", "does not encrypt: leave --tls-ca and TQ_TLS_CA away, or start it with --tls-cert"),
        (
            "CaUsedAsEndEntity",
            "shows the certificate of an authority (CA:TRUE): one for the worker, signed with it, is needed",
        ),
        ("certificate expired", "shows a certificate that has expired"),
        ("not valid yet", "shows a certificate that is not valid yet, by the clock of this machine"),
        ("NotValidForName", "shows a certificate for another name than the one that is asked"),
        ("not valid for name", "shows a certificate for another name than the one that is asked"),
        ("UnknownIssuer", "shows a certificate that none in --tls-ca has signed"),
        ("failed to lookup address", "has a name that nobody knows here"),
        ("frame with invalid size", NO_WORKER),
        ("broken pipe", NO_WORKER),
        ("connection closed", NO_WORKER),
    ];
    match known.iter().find(|(sign, _)| reason.contains(sign)) {
        Some((_, words)) => format!("{words} ({reason})"),
        None => format!("does not answer: {reason}"),
    }
}

/// What a worker does, and its bytes.
async fn load_of(channels: &Channels, url: &Url) -> Option<(Option<Vec<Work>>, Option<u64>)> {
    let asked = async {
        let channel = channels.connected(url).await.ok()?;
        let mut client = ObservabilityServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES);
        let progress = client.get_task_progress(GetTaskProgressRequest {}).await.ok()?;
        let told = |name| progress.metadata().get(name).and_then(|value| value.to_str().ok());
        let work = told(WORK).and_then(|work| serde_json::from_str(work).ok());
        Some((work, told(MEMORY).and_then(|bytes| bytes.parse().ok())))
    };
    tokio::time::timeout(PROBE, asked).await.ok().flatten()
}
