//! Channels: connections of a client to workers. They carry the token, notice within seconds that nobody is there any more, and take no
//! message beyond the limit.
//!
//! Those of datafusion-distributed have none of that. A connection belongs to the runtime on which it was made, so each try of a query
//! makes its own.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use datafusion::common::{DataFusionError, Result};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, WorkerChannel};
use http_body::{Body as HttpBody, Frame};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderValue, Request, Response};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use url::Url;

use super::MESSAGE_BYTES;

/// The header of the token.
pub(super) const TOKEN: &str = "x-tq-token";

/// The header with the bytes of a worker's process.
pub(super) const MEMORY: &str = "x-tq-memory";

/// The header with the address at which a worker was asked, which it sets itself.
pub(super) const ASKED: &str = "x-tq-asked";

/// The header with what a worker does.
pub(super) const WORK: &str = "x-tq-work";

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How often a sign of life is asked for, and how long it may take.
const ALIVE_EVERY: Duration = Duration::from_secs(2);
const ALIVE_WITHIN: Duration = Duration::from_secs(5);

/// What connections need.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    /// What workers want to hear.
    pub(super) token: Option<HeaderValue>,
    /// Whom to believe that they are who they say; `None`: nothing is encrypted.
    pub(super) tls: Option<ClientTlsConfig>,
    /// The names that certificates are for, where they are not the hosts.
    pub(super) names: HashMap<Url, String>,
}

/// Connections by address.
pub(super) struct Channels {
    access: Access,
    open: Mutex<HashMap<Url, BoxCloneSyncChannel>>,
}

impl Channels {
    pub(super) fn new(access: Access) -> Channels {
        Channels { access, open: Mutex::default() }
    }
}

/// A token as the value of a header; `None` for what cannot be one.
pub(super) fn header_of(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(token).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl Channels {
    /// The connection to a worker, which is made the first time.
    pub(super) async fn connected(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned();
        if let Some(channel) = open {
            return Ok(channel);
        }
        let of_connection = |error: tonic::transport::Error| DataFusionError::External(Box::new(error));
        let endpoint = Endpoint::from_shared(url.to_string()).map_err(of_connection)?;
        let endpoint = match &self.access.tls {
            Some(tls) => {
                let tls = match self.access.names.get(url) {
                    Some(name) => tls.clone().domain_name(name),
                    None => tls.clone(),
                };
                endpoint.tls_config(tls).map_err(of_connection)?
            }
            None => endpoint,
        };
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(ALIVE_EVERY)
            .keep_alive_timeout(ALIVE_WITHIN)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect().await.map_err(of_connection)?;
        let channel = BoxCloneSyncChannel::new(Guarded { channel, token: self.access.token.clone() });
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(url.clone(), channel.clone());
        Ok(channel)
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        Ok(create_worker_client(self.connected(url).await?))
    }
}

/// A connection that says who asks.
#[derive(Clone)]
struct Guarded {
    channel: Channel,
    token: Option<HeaderValue>,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = tonic::transport::Error;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = &self.token {
            request.headers_mut().insert(TOKEN, token.clone());
        }
        let answer = self.channel.call(request);
        Box::pin(
            async move { Ok(answer.await?.map(|body| Body::new(Limited { body, messages: Messages::default() }))) },
        )
    }
}

/// A body whose messages have a limit: its reader takes any size.
struct Limited {
    body: Body,
    messages: Messages,
}

impl HttpBody for Limited {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
            && !self.messages.take(data)
        {
            let text = format!("a message of a worker has more than {MESSAGE_BYTES} bytes");
            return Poll::Ready(Some(Err(Status::resource_exhausted(text))));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// The messages in the bytes of a body: a byte, their length in four, and so many bytes.
#[derive(Default)]
struct Messages {
    /// What is known of the next one's head.
    head: Vec<u8>,
    /// Bytes of this one that are still to come.
    left: usize,
}

impl Messages {
    /// Whether all messages are within the limit.
    fn take(&mut self, mut data: &[u8]) -> bool {
        while data.has_remaining() {
            if self.left > 0 {
                let now = self.left.min(data.len());
                self.left -= now;
                data.advance(now);
                continue;
            }
            let now = (5 - self.head.len()).min(data.len());
            self.head.extend_from_slice(&data[..now]);
            data.advance(now);
            if let [_, a, b, c, d] = self.head[..] {
                self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                self.head.clear();
                if self.left > MESSAGE_BYTES {
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_beyond_the_limit_is_noticed_however_its_bytes_come() {
        let head = |bytes: u32| [&[0], bytes.to_be_bytes().as_slice()].concat();
        let small = [head(3), vec![1, 2, 3]].concat();
        let large = head(MESSAGE_BYTES as u32 + 1);
        for cut in 1..small.len() {
            let mut messages = Messages::default();
            let bytes = [small.clone(), small.clone(), large.clone()].concat();
            let within = bytes.chunks(cut).map(|piece| messages.take(piece)).collect::<Vec<bool>>();
            assert!(within.contains(&false), "pieces of {cut}");
            let mut messages = Messages::default();
            assert!([small.clone(), small.clone()].concat().chunks(cut).all(|piece| messages.take(piece)));
        }
    }
}
