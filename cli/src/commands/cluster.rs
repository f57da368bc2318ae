//! `tq cluster worker`, and the workers of `tq query --cluster`.
//!
//! `local:N` starts N workers of its own: this program once more, on loopback. A random token goes to them through a pipe, never on a
//! command line that others can read, and they end when the pipe does, whatever ends this process.

#[cfg(not(feature = "cluster"))]
pub(crate) use without::{Workers, run};

#[cfg(feature = "cluster")]
pub(crate) use with::{Workers, run};

/// This program has no clusters.
#[cfg(not(feature = "cluster"))]
mod without {
    use tq_engine::session::Session;

    use crate::args::{ClusterArgs, OpenArgs};
    use crate::errors::{Failure, Problem};

    fn missing() -> Failure {
        Problem::new("this tq was built without clusters")
            .hint("`cargo build --release --workspace --features tq-cli/cluster` builds one with them")
            .into()
    }

    pub(crate) fn run(_: &ClusterArgs) -> Result<(), Failure> {
        Err(missing())
    }

    pub(crate) enum Workers {}

    impl Workers {
        pub(crate) fn of(_: &str, _: &mut OpenArgs) -> Result<Workers, Failure> {
            Err(missing())
        }

        pub(crate) fn help(&self, _: &Session, _: &OpenArgs) -> Result<(), Failure> {
            match *self {}
        }
    }
}

#[cfg(feature = "cluster")]
mod with {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::path::PathBuf;
    use std::process::{Child, ChildStdin, Command, Stdio};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use tokio::runtime::Builder;
    use tq_engine::cluster::{self, Serving};
    use tq_engine::open::TraceSpec;
    use tq_engine::remote::is_url;
    use tq_engine::session::Session;
    use tq_engine::store;

    use crate::args::{ClusterArgs, ClusterCommand, OpenArgs, WorkerArgs};
    use crate::errors::{Failure, Problem};
    use crate::output::print;
    use crate::text::words::bytes;
    use crate::{memory, open, secret};

    /// The variable with what a worker wants to hear.
    const TOKEN: &str = "TQ_TOKEN";
    /// The variable with the bytes below which a scan stays at the client.
    const LEAST_BYTES: &str = "TQ_CLUSTER_LEAST_BYTES";
    /// So many bytes are read faster here than they are asked for elsewhere.
    const LEAST_BYTES_DEFAULT: usize = 16 << 20;
    /// How long a worker of our own may take to say where it listens.
    const START: Duration = Duration::from_secs(30);
    /// How long it may take to end.
    const END: Duration = Duration::from_secs(1);
    /// Workers of our own at most.
    const MOST_LOCAL: usize = 64;
    /// Deep plans recurse.
    const STACK_BYTES: usize = 256 << 20;

    pub(crate) fn run(args: &ClusterArgs) -> Result<(), Failure> {
        let ClusterCommand::Worker(worker) = &args.command;
        serve(worker)
    }

    fn serve(args: &WorkerArgs) -> Result<(), Failure> {
        let address = (args.address.to_socket_addrs().ok()).and_then(|mut addresses| addresses.next());
        let Some(address) = address else {
            return Err(Problem::new(format!("`{}` is no address to listen on", args.address))
                .hint("write HOST:PORT, e.g. `127.0.0.1:7070`")
                .into());
        };
        let token = if args.of_client { Some(from_client()?) } else { token()? };
        beyond_this_machine(address, token.is_some(), args)?;
        let mut allowed = Vec::with_capacity(args.allow.len());
        for folder in &args.allow {
            allowed.push(folder.canonicalize().map_err(|error| Problem::file("read", folder, &error))?);
        }
        let serving = Serving {
            token,
            allowed: (!allowed.is_empty()).then_some(allowed),
            memory_limit: open::memory_of(args.memory),
            threads: open::threads_of(args.threads),
        };
        memory::over(serving.memory_limit);
        let runtime = Builder::new_multi_thread()
            .worker_threads(serving.threads.max(2))
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Problem::no_threads(&error))?;
        let failed =
            |error: std::io::Error| Failure::from(Problem::new(format!("cannot listen on {address}: {error}")));
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            print(&format!("listening on {bound}\n"))?;
            cluster::serve(listener, serving).await.map_err(failed)
        })
    }

    /// Whoever can be reached from elsewhere asks for a token, and reads what it was told to.
    fn beyond_this_machine(address: SocketAddr, has_token: bool, args: &WorkerArgs) -> Result<(), Failure> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        if !has_token {
            return Err(Problem::new(format!("{address} can be reached by others, and {TOKEN} is not set"))
                .hint(format!(
                    "`{TOKEN}=… tq cluster worker {address}`, with the same {TOKEN} for `tq query --cluster`"
                ))
                .into());
        }
        if args.allow.is_empty() {
            return Err(Problem::new(format!("{address} can be reached by others, and no folder is allowed"))
                .hint(format!("`tq cluster worker {address} --allow FOLDER` reads stores below FOLDER"))
                .into());
        }
        Ok(())
    }

    /// The token of the environment; an empty one is none.
    fn token() -> Result<Option<String>, Failure> {
        match std::env::var(TOKEN) {
            Ok(token) if token.is_empty() => Ok(None),
            Ok(token) => Ok(Some(token)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(Problem::new(format!("{TOKEN} is no text")).into()),
        }
    }

    /// The token from the pipe of the client, with whom this process ends.
    fn from_client() -> Result<String, Failure> {
        let mut line = String::new();
        let mut client = BufReader::new(std::io::stdin());
        client.read_line(&mut line).map_err(|error| Problem::new(format!("cannot read from the client: {error}")))?;
        std::thread::spawn(move || {
            let _gone = std::io::copy(&mut client, &mut std::io::sink());
            tq_engine::trace::temporary::remove_all();
            std::process::exit(0);
        });
        match line.trim_end() {
            "" => Err(Problem::new("the client sent no token").into()),
            token => Ok(token.to_owned()),
        }
    }

    /// The workers of a query; its own ones end with it.
    pub(crate) struct Workers {
        addresses: Vec<String>,
        token: Option<String>,
        least_bytes: usize,
        _own: Vec<Own>,
    }

    impl Workers {
        /// What `--cluster` says. The traces get the paths under which others see them.
        pub(crate) fn of(given: &str, open: &mut OpenArgs) -> Result<Workers, Failure> {
            open.traces = open.traces.iter().map(|text| seen_by_others(text)).collect::<Result<_, _>>()?;
            if open.traces.is_empty() {
                return Err(Problem::new("--cluster needs a store to ask about")
                    .hint("`tq query STORE --cluster …`")
                    .into());
            }
            let least_bytes = match std::env::var(LEAST_BYTES) {
                Ok(text) if text == "0" => 0,
                Ok(text) => bytes(&text).map_err(|what| Problem::new(format!("{LEAST_BYTES}={text}: {what}")))?,
                Err(_) => LEAST_BYTES_DEFAULT,
            };
            if let Some(count) = given.strip_prefix("local:") {
                let count = count.parse().ok().filter(|count| (1..=MOST_LOCAL).contains(count));
                let Some(count) = count else {
                    return Err(Problem::new(format!(
                        "`{given}`: how many workers? Write `local:1` to `local:{MOST_LOCAL}`"
                    ))
                    .into());
                };
                let token = secret::random()?;
                let memory = open::memory_of(open.memory) / (count + 1);
                let start = |_| Own::start(&token, memory, open::threads(open).div_ceil(count));
                let started = (0..count).map(start).collect::<Result<Vec<_>, _>>()?;
                let (own, addresses) = started.into_iter().unzip();
                return Ok(Workers { addresses, token: Some(token), least_bytes, _own: own });
            }
            let addresses: Vec<String> = given.split(',').map(|address| address.trim().to_owned()).collect();
            let is_address = |address: &String| {
                address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
            };
            if let Some(wrong) = addresses.iter().find(|address| !is_address(address)) {
                return Err(Problem::new(format!("`{wrong}` is no address of a worker"))
                    .hint("write `--cluster HOST:PORT,HOST:PORT`, or `--cluster local:2` for two of its own")
                    .into());
            }
            Ok(Workers { addresses, token: token()?, least_bytes, _own: vec![] })
        }

        /// From now on they help the session.
        pub(crate) fn help(&self, session: &Session, open: &OpenArgs) -> Result<(), Failure> {
            let traces: Vec<TraceSpec> = open.traces.iter().map(|text| TraceSpec::parse(text)).collect();
            let workers = cluster::Workers {
                addresses: self.addresses.clone(),
                token: self.token.clone(),
                least_bytes: self.least_bytes as u64,
            };
            cluster::join(session, &traces, open.run_pattern.as_deref(), &open.run_args, &workers)
                .map_err(|error| Problem::new(error.strip_backtrace()).into())
        }
    }

    /// A trace under the path that others see: it must be a store on disk.
    fn seen_by_others(text: &str) -> Result<String, Failure> {
        let spec = TraceSpec::parse(text);
        if is_url(&spec.path) {
            return Err(Problem::new(format!(
                "workers read stores on disk, and `{}` is behind a URL",
                spec.shown().display()
            ))
            .hint("without --cluster it is asked from here")
            .into());
        }
        let Some(place) = store::find(&spec.path) else {
            return Err(Problem::new(format!("--cluster works on stores, and `{}` is none", spec.path.display()))
                .hint(format!(
                    "`tq import {text} --into runs.store` makes one; then ask `tq query runs.store --cluster …`"
                ))
                .into());
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
            let mut process = Command::new(std::env::current_exe().map_err(failed)?)
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
}
