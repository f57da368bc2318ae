//! The workers of `--cluster`: who they are, and those of this process's own.
//!
//! `local:N` starts N of its own: this program once more, on loopback. A random token goes to them through a pipe, never on a command
//! line that others can read, and they end when the pipe does, whatever ends this process. `TQ_CLUSTER` and the configuration name workers
//! for all commands that ask stores; traces that are none are asked here.

use std::env::VarError;
use std::sync::Arc;

use tq_engine::open::TraceSpec;
use tq_engine::store;

use crate::args::OpenArgs;
use crate::config;
use crate::errors::{Failure, Problem};

#[cfg(not(feature = "cluster"))]
pub(crate) use without::{Workers, missing};

#[cfg(feature = "cluster")]
pub(crate) use with::{TOKEN, Workers, addresses, authority, has_certificate, token, why_no_help};

/// The variable with workers for all commands.
const CLUSTER: &str = "TQ_CLUSTER";
/// In place of workers: none, whatever `TQ_CLUSTER` and the configuration say.
pub(crate) const OFF: &str = "off";

/// The workers that help with these traces, and the traces under the paths that all of them see; `None`: nobody is asked.
pub(crate) fn of_traces(args: &OpenArgs) -> Result<Option<(Arc<Workers>, OpenArgs)>, Failure> {
    let Some(given) = asked(args)? else { return Ok(None) };
    let mut seen = args.clone();
    let workers = Workers::of(&given, &mut seen)?;
    Ok(Some((workers, seen)))
}

/// Workers as they were named.
pub(crate) struct Given {
    pub(crate) text: String,
    /// Where this stands; `None`: on the command line.
    pub(crate) place: Option<String>,
}

/// What is wrong with workers, and where they were named.
pub(crate) fn named_at(place: Option<String>, failure: Failure) -> Failure {
    if place.is_some() { failure.at(place) } else { failure }
}

/// Whom the command, the environment or the configuration names.
fn asked(args: &OpenArgs) -> Result<Option<Given>, Failure> {
    if let Some(given) = &args.cluster {
        return Ok((given != OFF).then(|| Given { text: given.clone(), place: None }));
    }
    let usual = usual()?;
    Ok(usual.filter(|given| given.text != OFF && are_stores(&args.traces)))
}

/// What `--cluster` says of a command that opens more traces than these by themselves: whom the environment or the configuration names is
/// asked only where all are stores.
pub(crate) fn of_all(args: &OpenArgs, others: &[String]) -> Option<String> {
    let is_usual = args.cluster.is_none() && !others.is_empty() && !(are_stores(&args.traces) && are_stores(others));
    if is_usual { Some(OFF.to_owned()) } else { args.cluster.clone() }
}

fn are_stores(traces: &[String]) -> bool {
    !traces.is_empty() && traces.iter().all(|text| is_store(text))
}

/// Whom the environment or the configuration names for all commands; an empty text names nobody.
pub(crate) fn usual() -> Result<Option<Given>, Failure> {
    let usual = match std::env::var(CLUSTER) {
        Ok(text) => Some(Given { text, place: Some(CLUSTER.to_owned()) }),
        Err(VarError::NotPresent) => config::get().cluster.clone().map(|text| {
            let place = config::path().map(|path| format!("{}: `cluster`", path.display()));
            Given { text, place }
        }),
        Err(VarError::NotUnicode(_)) => return Err(Problem::new(format!("{CLUSTER} is no text")).into()),
    };
    Ok(usual.filter(|given| !given.text.trim().is_empty()))
}

/// Who cannot be asked whether it is one says so when it is opened.
fn is_store(text: &str) -> bool {
    store::is_store(&TraceSpec::parse(text).path).unwrap_or(false)
}

/// This program has no clusters.
#[cfg(not(feature = "cluster"))]
mod without {
    use std::sync::Arc;

    use tq_engine::session::Session;

    use super::{Given, OFF};
    use crate::args::OpenArgs;
    use crate::errors::{Failure, Problem};

    pub(crate) enum Workers {}

    impl Workers {
        pub(crate) fn of(_: &Given, _: &mut OpenArgs) -> Result<Arc<Workers>, Failure> {
            Err(missing())
        }

        pub(crate) fn help(&self, _: &Session, _: &OpenArgs) -> Result<(), Failure> {
            match *self {}
        }

        pub(crate) fn addresses(&self) -> Vec<String> {
            match *self {}
        }

        pub(crate) fn no_help(&self) -> Vec<String> {
            match *self {}
        }
    }

    pub(crate) fn missing() -> Failure {
        Problem::new("this tq was built without clusters")
            .hint("the feature `cluster`, on by default, builds one with them: `cargo install --path cli --locked`")
            .hint(format!("`--cluster {OFF}` does without"))
            .into()
    }
}

#[cfg(feature = "cluster")]
mod with {
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::path::{Path, PathBuf};
    use std::process::{Child, ChildStdin, Stdio};
    use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
    use std::time::{Duration, Instant};

    use tokio::runtime::Builder;
    use tq_engine::cluster::{self, Address, State};
    use tq_engine::nearest::nearest;
    use tq_engine::open::TraceSpec;
    use tq_engine::remote::is_url;
    use tq_engine::session::Session;
    use tq_engine::store;

    use super::{Given, named_at};
    use crate::args::OpenArgs;
    use crate::errors::{Failure, Problem};
    use crate::text::words::any_bytes;
    use crate::{config, errors, host, open, secret};

    /// The variable with what a worker wants to hear.
    pub(crate) const TOKEN: &str = "TQ_TOKEN";
    /// The variable with the file of certificates that vouch for workers.
    const TLS_CA: &str = "TQ_TLS_CA";
    /// The variable with the bytes below which a scan stays at the client.
    const LEAST_BYTES: &str = "TQ_CLUSTER_LEAST_BYTES";
    /// So many bytes are read faster here than they are asked for elsewhere.
    const LEAST_BYTES_DEFAULT: usize = 16 << 20;
    /// How a certificate begins in PEM.
    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
    /// How long a worker of our own may take to say where it listens.
    const START: Duration = Duration::from_secs(30);
    /// How long it may take to end.
    const END: Duration = Duration::from_secs(1);
    /// Workers of our own at most.
    const MOST_LOCAL: usize = 64;

    /// The workers of this process's own, shared by its connections: they end with the last one.
    static OWN: Mutex<Weak<Workers>> = Mutex::new(Weak::new());

    /// The token of the environment; an empty one is none.
    pub(crate) fn token() -> Result<Option<String>, Failure> {
        match std::env::var(TOKEN) {
            Ok(token) if token.is_empty() => Ok(None),
            Ok(token) if token.contains(|letter: char| !letter.is_ascii_graphic()) => {
                Err(Problem::new(format!("{TOKEN} has letters that cannot travel"))
                    .hint("use letters, digits and signs of ASCII, without blanks and line ends")
                    .into())
            }
            Ok(token) => Ok(Some(token)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(Problem::new(format!("{TOKEN} is no text")).into()),
        }
    }

    /// Who helps; workers of our own end with it.
    pub(crate) struct Workers {
        addresses: Vec<Address>,
        token: Option<String>,
        authority: Option<Vec<u8>>,
        least_bytes: usize,
        own: Vec<Own>,
    }

    impl Workers {
        /// What `--cluster` says. The traces get the paths under which others see them.
        pub(crate) fn of(given: &Given, open: &mut OpenArgs) -> Result<Arc<Workers>, Failure> {
            open.traces = open.traces.iter().map(|text| seen_by_others(text)).collect::<Result<_, _>>()?;
            if open.traces.is_empty() {
                return Err(Problem::new("--cluster needs a store to ask about")
                    .hint("`tq query STORE --cluster …`")
                    .into());
            }
            let least_bytes = match std::env::var(LEAST_BYTES) {
                Ok(text) if text.is_empty() => LEAST_BYTES_DEFAULT,
                Ok(text) => any_bytes(&text).map_err(|what| Problem::new(format!("{LEAST_BYTES}={text}: {what}")))?,
                Err(_) => LEAST_BYTES_DEFAULT,
            };
            let wrong = |failure| named_at(given.place.clone(), failure);
            if let Some(count) = given.text.strip_prefix("local:") {
                return Workers::of_this_process(count, least_bytes, open).map_err(wrong);
            }
            let authority = authority(open.tls_ca.as_deref())?;
            let addresses = addresses(&given.text).map_err(wrong)?;
            Ok(Arc::new(Workers { addresses, token: token()?, authority, least_bytes, own: vec![] }))
        }

        /// So many workers that end with this process; those that are there already serve all its connections.
        fn of_this_process(count: &str, least_bytes: usize, open: &OpenArgs) -> Result<Arc<Workers>, Failure> {
            let parsed = count.parse().ok().filter(|count| (1..=MOST_LOCAL).contains(count));
            let Some(count) = parsed else {
                if count.contains([',', ' ']) {
                    return Err(Problem::new(format!("`local:{count}`: workers of `local:N` stand alone"))
                        .hint("write `local:2`, or `HOST:PORT,HOST:PORT` without them")
                        .into());
                }
                return Err(Problem::new(format!("`local:{count}`: how many workers?"))
                    .hint(format!("write `local:1` to `local:{MOST_LOCAL}`"))
                    .into());
            };
            let mut there = OWN.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(workers) = there.upgrade().filter(|workers| workers.own.len() == count) {
                return Ok(workers);
            }
            let token = secret::random()?;
            let memory = open::memory_of(open.memory) / (count + 1);
            let start = |_| Own::start(&token, memory, open::threads(open).div_ceil(count));
            let started = (0..count).map(start).collect::<Result<Vec<_>, _>>()?;
            let (own, addresses): (Vec<_>, Vec<_>) = started.into_iter().unzip();
            let addresses = addresses.into_iter().map(Address::of).collect();
            let workers = Arc::new(Workers { addresses, token: Some(token), authority: None, least_bytes, own });
            *there = Arc::downgrade(&workers);
            Ok(workers)
        }

        /// `HOST:PORT` of each.
        pub(crate) fn addresses(&self) -> Vec<String> {
            self.addresses.iter().map(|address| address.host_and_port.clone()).collect()
        }

        fn named(&self) -> cluster::Workers {
            cluster::Workers {
                addresses: self.addresses.clone(),
                token: self.token.clone(),
                authority: self.authority.clone(),
                least_bytes: self.least_bytes as u64,
            }
        }

        /// From now on they help the session.
        pub(crate) fn help(&self, session: &Session, open: &OpenArgs) -> Result<(), Failure> {
            let traces: Vec<TraceSpec> = open.traces.iter().map(|text| TraceSpec::parse(text)).collect();
            cluster::join(session, &traces, open.run_pattern.as_deref(), &open.run_args, &self.named())
                .map_err(|error| Problem::new(error.strip_backtrace()).into())
        }

        /// Who of them would not help, and why.
        pub(crate) fn no_help(&self) -> Vec<String> {
            // Who cannot ask says so at the first query.
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return vec![] };
            let found = runtime.block_on(cluster::status(&self.named())).unwrap_or_default();
            found.iter().filter_map(why_no_help).collect()
        }
    }

    /// Why a worker would not help, if it would not.
    pub(crate) fn why_no_help(worker: &cluster::Status) -> Option<String> {
        let address = &worker.address;
        match &worker.state {
            State::Ready => None,
            State::OfVersion(version) => {
                Some(format!("worker {address} is of version {version}, and this is {}", cluster::VERSION))
            }
            State::Refuses if token().is_ok_and(|token| token.is_none()) => {
                Some(format!("worker {address} wants a token, and {TOKEN} is not set here"))
            }
            State::Refuses => Some(format!("worker {address} wants another {TOKEN}")),
            State::Silent(why) => Some(format!("worker {address} {why}")),
        }
    }

    /// Whether there is a certificate in PEM.
    pub(crate) fn has_certificate(pem: &[u8]) -> bool {
        pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE)
    }

    /// The certificates that vouch for workers.
    pub(crate) fn authority(given: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
        let of_environment = || std::env::var_os(TLS_CA).filter(|path| !path.is_empty()).map(PathBuf::from);
        let usual = || of_environment().or_else(|| config::get().tls_ca.clone());
        let Some(file) = given.map(Path::to_owned).or_else(usual) else { return Ok(None) };
        let pem = std::fs::read(&file).map_err(|error| Problem::file("read", &file, &error))?;
        match has_certificate(&pem) {
            true => Ok(Some(pem)),
            false => Err(Problem::new(format!("{}: it has no certificate (PEM)", file.display())).into()),
        }
    }

    /// The addresses that a list names. A name that stands for several machines, as that of a headless service, is all of them.
    pub(crate) fn addresses(given: &str) -> Result<Vec<Address>, Failure> {
        let mut all = Vec::new();
        for text in given.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let is_host = |host: &str| match host.strip_prefix('[') {
                Some(rest) => rest.ends_with(']'),
                None => {
                    !host.is_empty() && !host.contains(|letter: char| letter.is_control() || ":/?#@ ".contains(letter))
                }
            };
            let no_address = |why: &str| {
                Problem::new(format!("`{text}` is no address of a worker{why}"))
                    .hint("write `HOST:PORT,HOST:PORT`, e.g. `node1:7070,[fd00::1]:7070`")
                    .hint("`--cluster local:2`, alone, asks two workers of its own, which nobody else sees")
            };
            let is_number = |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
            let parts = text.rsplit_once(':').filter(|(host, port)| is_host(host) && is_number(port));
            let Some((host, port)) = parts.filter(|(host, _)| *host != "local") else {
                return Err(no_address("").into());
            };
            match port.parse::<u16>() {
                // `lokal:2`.
                Ok(count) if usize::from(count) <= MOST_LOCAL && nearest(host, ["local"]).is_some() => {
                    return Err(no_address(&format!("; did you mean `local:{count}`?")).into());
                }
                Ok(1..) => {}
                _ => return Err(no_address(": ports go from 1 to 65535").into()),
            }
            let found: Vec<SocketAddr> = match host {
                "localhost" => vec![],
                // One that is unknown here is a worker that does not answer.
                _ => text.to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
            };
            // Whoever is named twice is one.
            for machine in machines_of(text, host, &found) {
                if !all.contains(&machine) {
                    all.push(machine);
                }
            }
        }
        match all.is_empty() {
            true => Err(Problem::new("no worker is named").hint("write `HOST:PORT,HOST:PORT`").into()),
            false => Ok(all),
        }
    }

    /// The machines that a name stands for, by its addresses.
    fn machines_of(text: &str, host: &str, found: &[SocketAddr]) -> Vec<Address> {
        // A machine may have an address of either kind.
        let is_of_kind = |address: &&SocketAddr| address.is_ipv4() || !found.iter().any(SocketAddr::is_ipv4);
        let machines: BTreeSet<&SocketAddr> = found.iter().filter(is_of_kind).collect();
        match machines.len() {
            0 | 1 => vec![Address::of(text.to_owned())],
            _ => machines.into_iter().map(|machine| Address::of_machine(machine, host)).collect(),
        }
    }

    /// A trace under the path that others see: it must be a store.
    fn seen_by_others(text: &str) -> Result<String, Failure> {
        let spec = TraceSpec::parse(text);
        let no_store = || {
            let shown = TraceSpec::shown_text(text);
            Problem::new(format!("--cluster works on stores, and `{}` is none", spec.shown().display()))
                .hint(format!("`tq import {shown} --into runs.store` makes one; then ask `runs.store` in its place"))
                .hint("`--cluster off`, at the prompt `\\cluster off`, asks without workers")
        };
        if is_url(&spec.path) {
            return match store::is_store(&spec.path).map_err(|error| errors::import::word(&error, &[]))? {
                true => Ok(text.to_owned()),
                false => Err(no_store().into()),
            };
        }
        let Some(place) = store::find(&spec.path) else {
            // What is not there says so when it is opened.
            return if spec.path.exists() || text == "-" { Err(no_store().into()) } else { Ok(text.to_owned()) };
        };
        let root = place.root.canonicalize().map_err(|error| Problem::file("read", &place.root, &error))?;
        let path: PathBuf = place.pattern.map_or_else(|| root.clone(), |pattern| root.join(pattern));
        let path = path.display().to_string();
        Ok(spec.name.map_or_else(|| path.clone(), |name| format!("{name}={path}")))
    }

    /// A worker of our own.
    struct Own {
        process: Child,
        /// Its end ends the worker.
        pipe: Option<ChildStdin>,
    }

    impl Own {
        /// Starts one; where it listens is the other part.
        fn start(token: &str, memory: usize, threads: usize) -> Result<(Own, String), Failure> {
            let failed = |error: std::io::Error| Problem::new(format!("cannot start a worker: {error}"));
            let mut process = host::program()
                .map_err(failed)?
                .args([
                    "cluster",
                    "worker",
                    "--of-client",
                    "--memory",
                    &memory.to_string(),
                    "--threads",
                    &threads.to_string(),
                ])
                .env_remove(TOKEN)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(failed)?;
            let (mut pipe, output) = (process.stdin.take(), process.stdout.take());
            if let Some(pipe) = &mut pipe {
                writeln!(pipe, "{token}").and_then(|()| pipe.flush()).map_err(failed)?;
            }
            let own = Own { process, pipe };
            // It may never say anything.
            let (sender, said) = mpsc::channel();
            std::thread::spawn(move || {
                let mut line = String::new();
                let read = output.map(|output| BufReader::new(output).read_line(&mut line));
                let _nobody_waits = sender.send(read.is_some_and(|read| read.is_ok()).then_some(line));
            });
            let line = said.recv_timeout(START).ok().flatten();
            match line.as_deref().and_then(|line| line.trim_end().strip_prefix("listening on ")) {
                Some(address) => Ok((own, address.to_owned())),
                None => Err(Problem::new("a worker of `--cluster local` did not start").into()),
            }
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            drop(self.pipe.take());
            // It removes its temporary files and ends; one that does not is ended.
            let last = Instant::now() + END;
            while Instant::now() < last {
                if !matches!(self.process.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            let _ended = self.process.kill().and_then(|()| self.process.wait());
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_is_no_address_is_said_of_each() {
            for (given, expected) in [
                ("node1", "`node1` is no address of a worker"),
                ("node1:7070,node2", "`node2` is no address of a worker"),
                ("node1:0", "`node1:0` is no address of a worker: ports go from 1 to 65535"),
                ("node1:70000", "`node1:70000` is no address of a worker: ports go from 1 to 65535"),
                ("lokal:2", "`lokal:2` is no address of a worker; did you mean `local:2`?"),
                ("node1:7070,local:2", "`local:2` is no address of a worker"),
                ("a/b:7070", "`a/b:7070` is no address of a worker"),
                (" , ", "no worker is named"),
            ] {
                match addresses(given) {
                    Err(Failure::Told(problem)) => assert_eq!(problem.message, expected),
                    other => panic!("{given}: {other:?}"),
                }
            }
            assert_eq!(addresses("localhost:7070").unwrap(), [Address::of("localhost:7070".to_owned())]);
        }

        #[test]
        fn a_name_of_several_machines_is_all_of_them() {
            let found = ["10.0.0.2:7070", "10.0.0.1:7070", "[fd00::1]:7070", "10.0.0.2:7070"];
            let found: Vec<SocketAddr> = found.iter().map(|address| address.parse().unwrap()).collect();
            let machines = machines_of("workers:7070", "workers", &found);
            let shown: Vec<&str> = machines.iter().map(|machine| machine.host_and_port.as_str()).collect();
            assert_eq!(shown, ["10.0.0.1:7070", "10.0.0.2:7070"]);
            // Certificates are for the name.
            assert!(machines.iter().all(|machine| machine.name.as_deref() == Some("workers")));
            let one = machines_of("node1:7070", "node1", &found[..1]);
            assert_eq!(one, [Address::of("node1:7070".to_owned())]);
        }
    }
}
