//! Words: what went wrong with a request, without the URL that was asked: it may hold a signature.
//!
//! Errors of `object_store` are chains. The innermost says the reason (`Connection refused`), and one of them what the server said:
//! `Server returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>…`.

use std::error::Error as _;
use std::time::Duration;

use object_store::Error;

use super::{Location, Service, profile};
use crate::error::ImportError;

/// How what a server said begins in the chain.
const SAID: [&str; 2] = ["Server returned non-2xx status code: ", "Server returned error response: "];
/// So much of what a server said is shown.
const SHOWN: usize = 200;

/// What helps where a web server wants to know who asks.
pub(super) const SIGNED: &str =
    "a signed URL (`?…`) is sent as it is; `curl -u USER URL | tq query - …` asks with a password";

/// How the error of an object begins that is not in its bucket.
const NO_SUCH: &str = "there is no such";

/// What a server answered.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    /// `404 Not Found`; empty where it is not known.
    status: String,
    /// `NoSuchBucket`, or how the text begins.
    reason: String,
}

fn unusable(location: &Location, what: String, hint: Option<String>) -> ImportError {
    ImportError::Unusable { path: location.shown.clone(), what, hint }
}

/// Whether a service answered that it has no such object, or that it does not tell.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. } | Error::PermissionDenied { .. })
}

/// The error of a request that failed.
pub(super) fn failed(location: &Location, error: &Error) -> ImportError {
    let answer = answer_of(error);
    let said = answer.as_ref().map_or_else(|| innermost(error), Answer::said);
    let is_about = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let (bucket, what_it_is) = match location.service {
        Service::Azure => ("container", "blob"),
        Service::Web => ("host", "file"),
        Service::S3 | Service::Google => ("bucket", "object"),
    };
    let name = &location.bucket;
    match error {
        Error::NotFound { .. } if is_about(&["NoSuchBucket", "bucket does not exist", "ContainerNotFound"]) => {
            unusable(location, format!("there is no {bucket} `{name}` ({said})"), None)
        }
        Error::NotFound { .. } => unusable(location, format!("{NO_SUCH} {what_it_is} ({said})"), None),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let hint = match location.service {
                Service::Web => SIGNED.to_owned(),
                _ => format!("{}; {}", looked_at(location.service), without(location.service)),
            };
            unusable(location, format!("the server refuses it ({said})"), Some(hint))
        }
        _ => {
            let hint = if is_about(&["certificate", "UnknownIssuer"]) {
                Some("SSL_CERT_FILE=FILE.pem names the certificates to trust, beside those of the system")
            } else if is_about(&["URL scheme is not allowed"]) {
                Some("AWS_ALLOW_HTTP=true (GOOGLE_ALLOW_HTTP, AZURE_ALLOW_HTTP) allows an endpoint without TLS")
            } else if is_about(&["redirect"]) {
                Some("AWS_REGION names the region of the bucket")
            } else if is_about(&["Content-Length"]) {
                Some("`curl URL | tq query - …` reads it from standard input")
            } else {
                None
            };
            unusable(location, format!("cannot read it: {said}"), hint.map(str::to_owned))
        }
    }
}

/// The error of a request for a trace that failed.
pub(super) fn no_trace(location: &Location, error: &Error) -> ImportError {
    match failed(location, error) {
        ImportError::Unusable { path, what, hint: None } if what.starts_with(NO_SUCH) => {
            ImportError::Unusable { path, what, hint: Some("a store is found by its `log/last.json`".to_owned()) }
        }
        other => other,
    }
}

/// The error of a connection that broke and could not be taken up again.
pub(super) fn broken(location: &Location, error: &Error, read: u64, total: u64) -> ImportError {
    let what = format!("the connection broke after {read} of {total} bytes: {}", innermost(error));
    unusable(location, what, Some("the same command again reads it from the start".to_owned()))
}

/// The error of a server that says nothing.
pub(super) fn silent(location: &Location, time: Duration) -> ImportError {
    unusable(location, format!("the server sent nothing for {} s", time.as_secs()), None)
}

/// The error where no credentials were found.
pub(super) fn no_credentials(location: &Location, error: &Error) -> ImportError {
    let reason = answer_of(error).map_or_else(|| innermost(error), |answer| answer.said());
    let hint = format!("{}; {}", looked_at(location.service), without(location.service));
    unusable(location, format!("there are no credentials for it: {reason}"), Some(hint))
}

/// Where credentials are looked for, in this order.
fn looked_at(service: Service) -> String {
    match service {
        Service::S3 => format!(
            "credentials are looked for in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, \
             profile `{}` of ~/.aws, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, the metadata of the machine",
            profile::name()
        ),
        Service::Google => "credentials are looked for in GOOGLE_SERVICE_ACCOUNT, GOOGLE_SERVICE_ACCOUNT_KEY, \
             GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, the metadata of the machine"
            .to_owned(),
        Service::Azure => "credentials are looked for in AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or \
             AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_ID and its kin, AZURE_FEDERATED_TOKEN_FILE, the metadata of the machine"
            .to_owned(),
        Service::Web => String::new(),
    }
}

fn without(service: Service) -> &'static str {
    match service {
        Service::S3 => "AWS_SKIP_SIGNATURE=true reads what is public",
        Service::Google => "GOOGLE_SKIP_SIGNATURE=true reads what is public",
        Service::Azure => "AZURE_SKIP_SIGNATURE=true reads what is public",
        Service::Web => "",
    }
}

impl Answer {
    fn said(&self) -> String {
        match (self.status.is_empty(), self.reason.is_empty()) {
            (false, false) => format!("{}: {}", self.status, self.reason),
            (false, true) => self.status.clone(),
            (true, _) => self.reason.clone(),
        }
    }
}

/// What the server answered, if it did.
fn answer_of(error: &Error) -> Option<Answer> {
    let mut next = error.source();
    while let Some(error) = next {
        let text = error.to_string();
        if let Some(said) = SAID.iter().find_map(|begin| text.strip_prefix(begin)) {
            return Some(answer(said, text.starts_with(SAID[0])));
        }
        next = error.source();
    }
    None
}

fn answer(said: &str, has_status: bool) -> Answer {
    let (status, body) = if has_status { said.split_once(": ").unwrap_or((said, "")) } else { ("", said) };
    let element = |name: &str| {
        let from = body.find(&format!("<{name}>"))? + name.len() + 2;
        Some(body[from..].split('<').next()?.trim().to_owned())
    };
    let reason = match (element("Code"), element("Message")) {
        (Some(code), Some(message)) if !message.is_empty() => format!("{code}: {message}"),
        (Some(code), _) => code,
        // Pages of HTML say nothing more than the status.
        _ if body.trim_start().starts_with('<') => String::new(),
        _ => body.trim().to_owned(),
    };
    let reason: String = reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
    Answer { status: status.trim().trim_end_matches(':').to_owned(), reason }
}

/// The innermost reason, which names no URL.
fn innermost(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = error.to_string();
        next = error.source();
    }
    text.split(" for url (").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let check = |said: &str, expected: &str| assert_eq!(answer(said, true).said(), expected);
        check(
            "404 Not Found: <?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>It does not exist.</Message></Error>",
            "404 Not Found: NoSuchKey: It does not exist.",
        );
        check("403 Forbidden: <html><p>no</p></html>", "403 Forbidden");
        check("500 Internal Server Error: ", "500 Internal Server Error");
        check("503 Service Unavailable: slow\ndown", "503 Service Unavailable: slow down");
    }
}
