//! Workers: their addresses, what connections to them need, and what their errors mean.

use std::net::SocketAddr;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use tonic::codegen::http::HeaderValue;
use tonic::transport::{Certificate, ClientTlsConfig};
use url::Url;

use super::channel::{Access, header_of};

/// Where a worker listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `HOST:PORT`.
    pub host_and_port: String,
    /// The name that its certificate is for; `None`: the host.
    pub name: Option<String>,
}

impl Address {
    /// That of a host by its name or its number.
    pub fn of(host_and_port: String) -> Address {
        Address { host_and_port, name: None }
    }

    /// That of one of the machines that a name stands for.
    pub fn of_machine(machine: &SocketAddr, name: &str) -> Address {
        Address { host_and_port: machine.to_string(), name: Some(name.to_owned()) }
    }
}

/// Who does parts of queries.
#[derive(Debug, Clone)]
pub struct Workers {
    /// Where each of them listens.
    pub addresses: Vec<Address>,
    /// What they want to hear.
    pub token: Option<String>,
    /// The certificates (PEM) that vouch for them; `None`: nothing is encrypted.
    pub authority: Option<Vec<u8>>,
    /// Fragments that read fewer bytes are not sent.
    pub least_bytes: u64,
}

impl Workers {
    pub(super) fn urls(&self) -> Result<Vec<Url>> {
        let mut urls = Vec::with_capacity(self.addresses.len());
        for Address { host_and_port: address, .. } in &self.addresses {
            let scheme = if self.authority.is_some() { "https" } else { "http" };
            let url =
                Url::parse(&format!("{scheme}://{address}")).ok().filter(|url| url.port_or_known_default().is_some());
            let Some(url) = url.filter(|url| url.path() == "/" && url.query().is_none()) else {
                return exec_err!("`{address}` is no address of a worker: write HOST:PORT");
            };
            urls.push(url);
        }
        Ok(urls)
    }

    /// What connections to them need.
    pub(super) fn access(&self) -> Result<Access> {
        let trusted = |pem| ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
        let named = |(url, address): (Url, &Address)| Some((url, address.name.clone()?));
        let names = self.urls()?.into_iter().zip(&self.addresses).filter_map(named).collect();
        Ok(Access { token: self.header()?, tls: self.authority.as_ref().map(trusted), names })
    }

    fn header(&self) -> Result<Option<HeaderValue>> {
        let Some(token) = &self.token else { return Ok(None) };
        let header = header_of(token);
        header.map(Some).ok_or_else(|| exec_datafusion_err!("the token has letters that no header may have"))
    }
}

/// `HOST:PORT`, as it was given.
pub(super) fn address(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

pub(super) fn is_refusal(error: &DataFusionError) -> bool {
    let refuses = |status: &tonic::Status| status.code() == tonic::Code::Unauthenticated;
    causes(error).any(|cause| cause.downcast_ref::<tonic::Status>().is_some_and(refuses))
}

/// An error and what it came from.
pub(super) fn causes<'a>(error: &'a DataFusionError) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    let root: &'a (dyn std::error::Error + 'static) = match error.find_root() {
        DataFusionError::External(cause) => cause.as_ref(),
        other => other,
    };
    std::iter::successors(Some(root), |error| error.source())
}

/// Why, in the words of whoever is last in a chain.
pub(super) fn reason(error: &DataFusionError) -> String {
    match causes(error).last() {
        Some(last) => match last.downcast_ref::<tonic::Status>() {
            Some(status) => status.message().to_owned(),
            None => last.to_string(),
        },
        None => error.strip_backtrace(),
    }
}
