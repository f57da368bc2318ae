//! Who may ask: pages of this server on this machine, and whoever has the token.
//!
//! | what | else |
//! | --- | --- |
//! | `Host` is 127.0.0.1, localhost or \[::1\], with any port: people tunnel | 403: a name of a stranger's that leads here (DNS rebinding) |
//! | `Origin`, where sent, is that host | 403: another page asks |
//! | the path begins with the token | 404 without any text |

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::address::Token;

/// Charts carry styles of their own; scripts come from here alone, and nothing is fetched from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
    connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Lets through what may pass, and gives every answer its headers.
pub(super) async fn guard(State(token): State<Token>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&token, request.uri(), request.headers()) {
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(token: &Token, uri: &Uri, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    let host = sole(headers, &HOST).filter(|host| is_here(host));
    // A request line with an address of its own names the same host.
    let Some(host) = host.filter(|host| uri.authority().is_none_or(|authority| authority.as_str() == *host)) else {
        return Some((StatusCode::FORBIDDEN, "this server answers to localhost only\n"));
    };
    let is_own = || sole(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://")) == Some(host);
    if headers.contains_key(ORIGIN) && !is_own() {
        return Some((StatusCode::FORBIDDEN, "another page may not ask\n"));
    }
    let below = uri.path().strip_prefix('/').and_then(|path| path.split_once('/'));
    match below.is_some_and(|(first, _)| token.is(first)) {
        true => None,
        false => Some((StatusCode::NOT_FOUND, "not found\n")),
    }
}

/// The value of a header that is there once.
fn sole<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(value)
}

/// Whether a host, with or without a port, is this machine.
fn is_here(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|here| match host.strip_prefix(here) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':').is_some_and(is_port),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(path: &str, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let token = Token::from("abcdefghijklmnopqrstuv".to_owned());
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        refusal(&token, &path.parse().unwrap(), &headers.collect()).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_pages_of_this_server_ask() {
        const PAGE: &str = "/abcdefghijklmnopqrstuv/info";
        for host in ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "[::1]:65535", "localhost"] {
            assert_eq!(status(PAGE, &[("host", host)]), None, "{host}");
        }
        for host in
            ["example.org", "127.0.0.1.example.org", "localhost:", "localhost:1x", "127.0.0.1:80@evil", "", "0.0.0.0"]
        {
            assert_eq!(status(PAGE, &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(status(PAGE, &[]), Some(403));
        assert_eq!(status(PAGE, &[("host", "localhost:1"), ("origin", "http://localhost:1")]), None);
        for origin in ["http://localhost:2", "https://localhost:1", "null", "http://evil.example"] {
            assert_eq!(status(PAGE, &[("host", "localhost:1"), ("origin", origin)]), Some(403), "{origin}");
        }
        for path in
            ["/", "/info", "/abcdefghijklmnopqrstuv", "/abcdefghijklmnopqrstuw/info", "//abcdefghijklmnopqrstuv/info"]
        {
            assert_eq!(status(path, &[("host", "localhost")]), Some(404), "{path}");
        }
    }
}
