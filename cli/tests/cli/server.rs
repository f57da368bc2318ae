//! A server of objects on loopback: GET with ranges, HEAD, PUT with `If-None-Match: *` under a lock, DELETE, and lists as S3 has them.
//!
//! Objects are called as the path of the URL says. Signatures are not checked. Faults are laid on objects: so many requests answer with a
//! status, break in the middle of the body, or never end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is wrong with an object.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// So many requests get this status and text.
    Status(usize, u16, &'static str),
    /// So many bodies end in their middle.
    Cut(usize),
    /// Nothing comes after the head.
    Silent,
    /// The head has no ETag, and ranges are not known.
    Plain,
    /// Plain, and every body ends in its middle.
    Half,
}

#[derive(Debug, Default)]
struct State {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    faults: Mutex<BTreeMap<String, Fault>>,
    /// `GET /bucket/key`, with what else a test wants to know.
    requests: Mutex<Vec<Request>>,
}

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// A server that lives as long as the test.
pub(super) struct Server {
    pub(super) address: String,
    state: Arc<State>,
}

impl Server {
    pub(super) fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State::default());
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&served);
                // A client that goes away is no fault of the server.
                thread::spawn(move || drop(serve(stream, &state)));
            }
        });
        Server { address, state }
    }

    /// An object, under the path of its URL (`/bucket/key`).
    pub(super) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.state.objects.lock().unwrap().insert(path.to_owned(), bytes.into());
    }

    /// Removes an object.
    pub(super) fn take(&self, path: &str) {
        self.state.objects.lock().unwrap().remove(path);
    }

    /// The objects whose paths begin so.
    pub(super) fn names(&self, begin: &str) -> Vec<String> {
        self.state.objects.lock().unwrap().keys().filter(|path| path.starts_with(begin)).cloned().collect()
    }

    /// The text of an object.
    pub(super) fn object(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.state.objects.lock().unwrap()[path]).into_owned()
    }

    pub(super) fn fault(&self, path: &str, fault: Fault) {
        self.state.faults.lock().unwrap().insert(path.to_owned(), fault);
    }

    /// All requests so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(request) = read(&mut reader)? {
        state.requests.lock().unwrap().push(request.clone());
        if !answer(&request, state, &mut stream)? {
            return Ok(());
        }
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request = Request { method, path: decoded(path), query: query.to_owned(), ..Request::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = request.headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next().unwrap_or_default()).to_digit(16).unwrap_or_default() as u8;
        bytes.push(if byte == b'%' { digit() * 16 + digit() } else { byte });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Answers; whether the connection can be used again.
fn answer(request: &Request, state: &State, stream: &mut TcpStream) -> std::io::Result<bool> {
    let fault = {
        let mut faults = state.faults.lock().unwrap();
        let fault = faults.get(&request.path).cloned();
        match faults.get_mut(&request.path) {
            Some(Fault::Status(times, ..) | Fault::Cut(times)) if *times > 1 => *times -= 1,
            Some(Fault::Status(..) | Fault::Cut(..)) => drop(faults.remove(&request.path)),
            _ => {}
        }
        fault
    };
    if let Some(Fault::Status(_, status, text)) = fault {
        return respond(stream, status, "", text.as_bytes()).map(|()| true);
    }
    let mut objects = state.objects.lock().unwrap();
    match request.method.as_str() {
        "GET" if request.query.contains("list-type=2") => {
            let list = listed(request, &objects);
            drop(objects);
            respond(stream, 200, "", list.as_bytes()).map(|()| true)
        }
        "GET" | "HEAD" => {
            let found = objects.get(&request.path).cloned();
            drop(objects);
            let Some(bytes) = found else {
                return respond(stream, 404, "", b"<Error><Code>NoSuchKey</Code></Error>").map(|()| true);
            };
            give(request, &bytes, fault.as_ref(), stream)
        }
        "PUT" => {
            let is_taken = objects.contains_key(&request.path);
            if request.headers.contains_key("if-none-match") && is_taken {
                drop(objects);
                return respond(stream, 412, "", b"<Error><Code>PreconditionFailed</Code></Error>").map(|()| true);
            }
            objects.insert(request.path.clone(), request.body.clone());
            drop(objects);
            respond(stream, 200, &format!("ETag: {}\r\n", tag(&request.body)), b"").map(|()| true)
        }
        "DELETE" => {
            objects.remove(&request.path);
            drop(objects);
            respond(stream, 204, "", b"").map(|()| true)
        }
        // Several at once, as S3 has it.
        "POST" if request.query.starts_with("delete") => {
            let bucket = request.path.trim_end_matches('/');
            let list = String::from_utf8_lossy(&request.body).into_owned();
            let keys: Vec<&str> = list.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()).collect();
            keys.iter().for_each(|key| drop(objects.remove(&format!("{bucket}/{key}"))));
            drop(objects);
            let deleted: String = keys.iter().map(|key| format!("<Deleted><Key>{key}</Key></Deleted>")).collect();
            let result = format!("<DeleteResult>{deleted}</DeleteResult>");
            respond(stream, 200, "", result.as_bytes()).map(|()| true)
        }
        _ => respond(stream, 405, "", b"").map(|()| true),
    }
}

fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

const DATE: &str = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

/// Sends an object, or the range of it that is asked for.
fn give(request: &Request, bytes: &[u8], fault: Option<&Fault>, stream: &mut TcpStream) -> std::io::Result<bool> {
    let is_plain = matches!(fault, Some(Fault::Plain | Fault::Half));
    let range = request.headers.get("range").filter(|_| !is_plain).and_then(|range| range.strip_prefix("bytes="));
    let mut head = if is_plain { String::new() } else { format!("ETag: {}\r\n{DATE}", tag(bytes)) };
    let (status, part) = match range.and_then(|range| range.split_once('-')) {
        None => (200, bytes),
        Some((from, to)) => {
            let from: usize = from.parse().unwrap_or(0);
            let end = to.parse().map_or(bytes.len(), |to: usize| to + 1).min(bytes.len());
            if from >= end {
                return respond(stream, 416, "", b"").map(|()| true);
            }
            let _ = write!(head, "Content-Range: bytes {from}-{}/{}\r\n", end - 1, bytes.len());
            (206, &bytes[from..end])
        }
    };
    let sent = match fault {
        _ if request.method == "HEAD" => &[],
        Some(Fault::Silent) => &[],
        Some(Fault::Cut(_) | Fault::Half) => &part[..part.len() / 2],
        _ => part,
    };
    write!(stream, "HTTP/1.1 {status} x\r\n{head}Content-Length: {}\r\n\r\n", part.len())?;
    stream.write_all(sent)?;
    if matches!(fault, Some(Fault::Silent)) {
        thread::sleep(Duration::from_secs(120));
    }
    Ok(request.method == "HEAD" || sent.len() == part.len())
}

fn respond(stream: &mut TcpStream, status: u16, head: &str, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status} x\r\n{head}Content-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

/// The objects of a bucket whose names begin with a prefix.
fn listed(request: &Request, objects: &BTreeMap<String, Vec<u8>>) -> String {
    let prefix =
        request.query.split('&').find_map(|pair| pair.strip_prefix("prefix=")).map(decoded).unwrap_or_default();
    let bucket = format!("{}/", request.path.trim_end_matches('/'));
    let mut list = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (path, bytes) in objects {
        if let Some(key) = path.strip_prefix(&bucket).filter(|key| key.starts_with(&prefix)) {
            let _ = write!(
                list,
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size></Contents>",
                tag(bytes),
                bytes.len()
            );
        }
    }
    list.push_str("</ListBucketResult>");
    list
}
