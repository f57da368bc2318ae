//! `tq cluster worker`: a process that does parts of others' queries. `tq cluster status`: what such processes say of themselves.

#[cfg(not(feature = "cluster"))]
pub(crate) fn run(_: &crate::args::ClusterArgs) -> Result<(), crate::errors::Failure> {
    Err(crate::workers::missing())
}

#[cfg(feature = "cluster")]
pub(crate) use with::run;

#[cfg(feature = "cluster")]
mod with {
    use std::io::{BufRead, BufReader};
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::path::PathBuf;

    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use tokio::runtime::Builder;
    use tq_engine::cluster::{self, Serving, State, Work};
    use tq_engine::remote::is_url;

    use crate::args::{ClusterArgs, ClusterCommand, StatusArgs, WorkerArgs};
    use crate::errors::{Failure, Problem};
    use crate::format::Format;
    use crate::output::{self, print};
    use crate::terminal::note;
    use crate::workers::{
        Given, OFF, TOKEN, addresses, authority, has_certificate, named_at, token, usual, why_no_help,
    };
    use crate::{memory, open};

    /// Deep plans recurse.
    const STACK_BYTES: usize = 256 << 20;
    /// Threads of a worker that talk to clients. Large plans take some of them for a while, and others say meanwhile that the worker is there.
    const TALKING: usize = 8;

    pub(crate) fn run(args: &ClusterArgs) -> Result<(), Failure> {
        match &args.command {
            ClusterCommand::Worker(worker) => serve(worker),
            ClusterCommand::Status(status) => tell(status),
        }
    }

    /// `tq cluster status`: a row for each worker; it fails when one would not help.
    fn tell(args: &StatusArgs) -> Result<(), Failure> {
        let given = match &args.workers {
            Some(text) => Some(Given { text: text.clone(), place: None }),
            None => usual()?,
        };
        let Some(Given { text: given, place }) = given else {
            return Err(Problem::new("no worker is named").hint("`tq cluster status HOST:PORT,HOST:PORT`").into());
        };
        if given == OFF || given.split(',').any(|worker| worker.trim().starts_with("local:")) {
            let of_commands = match given == OFF {
                true => "",
                false => "workers of `local:N` begin and end with each command; ",
            };
            let problem = Problem::new(format!("`{given}` names no workers that could be asked"))
                .hint(format!("{of_commands}`tq cluster status HOST:PORT` asks those that listen"));
            return Err(named_at(place, problem.into()));
        }
        let authority = authority(args.tls_ca.as_deref())?;
        let addresses = addresses(&given).map_err(|failure| named_at(place, failure))?;
        let workers = cluster::Workers { addresses, token: token()?, authority, least_bytes: 0 };
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| Problem::no_threads(&error))?;
        let found =
            runtime.block_on(cluster::status(&workers)).map_err(|error| Problem::new(error.strip_backtrace()))?;
        let states = found.iter().map(|worker| match &worker.state {
            State::Ready => "ready",
            State::OfVersion(_) => "differs",
            State::Refuses => "refused",
            State::Silent(_) => "silent",
        });
        let versions = found.iter().map(|worker| match &worker.state {
            State::Ready => Some(cluster::VERSION),
            State::OfVersion(version) => Some(version.as_str()),
            State::Refuses | State::Silent(_) => None,
        });
        let fragments = found.iter().map(|worker| {
            let all = worker.work.as_ref()?.iter().map(|work| work.fragments).sum::<u64>();
            i64::try_from(all).ok()
        });
        let running = found.iter().map(|worker| {
            let told = |work: &Work| format!("{} ({} s)", work.store, work.seconds);
            Some(worker.work.as_ref()?.iter().map(told).collect::<Vec<_>>().join(", "))
        });
        let memory = found.iter().map(|worker| worker.memory.and_then(|bytes| i64::try_from(bytes).ok()));
        let reasons = found.iter().map(why_no_help);
        let format = output::choose(args.format, None)?;
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("worker", Arc::new(StringArray::from_iter_values(found.iter().map(|worker| &worker.address)))),
            ("state", Arc::new(StringArray::from_iter_values(states))),
            ("version", Arc::new(StringArray::from_iter(versions))),
            ("fragments", Arc::new(Int64Array::from_iter(fragments))),
            ("memory_bytes", Arc::new(Int64Array::from_iter(memory))),
            ("running", Arc::new(StringArray::from_iter(running))),
        ];
        // A terminal may be narrow: people read it below the table.
        if format != Format::Table {
            columns.push(("reason", Arc::new(StringArray::from_iter(reasons))));
        }
        output::write_table(&RecordBatch::try_from_iter(columns)?, format, None)?;
        found.iter().filter_map(why_no_help).for_each(|why| note(&why));
        match found.iter().all(|worker| worker.state == State::Ready) {
            true => Ok(()),
            false => Err(Failure::CouldNotRun),
        }
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
        let read = |file: &PathBuf| std::fs::read(file).map_err(|error| Problem::file("read", file, &error));
        let identity = match (&args.tls_cert, &args.tls_key) {
            (Some(certificates), Some(key)) => {
                let identity = (read(certificates)?, read(key)?);
                let (certificates, key) = (certificates.display(), key.display());
                if !has_certificate(&identity.0) {
                    return Err(Problem::new(format!("{certificates}: it has no certificate (PEM)")).into());
                }
                if let Err(why) = cluster::can_show(&identity) {
                    let what = format!("{key} and the first certificate in {certificates} do not go together: {why}");
                    return Err(Problem::new(what)
                        .hint("--tls-key names the private key (PEM) of that certificate (X.509, version 3)")
                        .into());
                }
                Some(identity)
            }
            _ => None,
        };
        let threads = open::threads_of(args.threads);
        let serving = Serving {
            token,
            identity,
            allowed: allowed(args)?,
            memory_limit: open::memory_of(args.memory),
            fragments: Arc::new(cluster::Fragments::new(threads, memory::give_back)),
            bytes_used: memory::anonymous_bytes,
        };
        memory::over(serving.memory_limit);
        memory::from_few_arenas(threads);
        let runtime = Builder::new_multi_thread()
            .worker_threads(TALKING)
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
            let fragments = Arc::clone(&serving.fragments);
            tokio::spawn(memory::relieve(move |why, must| fragments.refuse_largest(why, must)));
            cluster::serve(listener, serving).await.map_err(failed)
        })
    }

    /// Where stores may be: on this machine anywhere, unless folders are named; behind URLs that are named. A client's own worker reads what
    /// its client reads.
    fn allowed(args: &WorkerArgs) -> Result<Option<Vec<PathBuf>>, Failure> {
        if args.of_client {
            return Ok(None);
        }
        let (urls, folders): (Vec<PathBuf>, Vec<PathBuf>) = args.allow.iter().cloned().partition(|path| is_url(path));
        if let Some(url) = urls.iter().find(|url| url.to_string_lossy().trim_end_matches('/').ends_with(':')) {
            return Err(Problem::new(format!("--allow {} names no bucket and no host", url.display()))
                .hint("e.g. `--allow s3://bucket/nightly`")
                .into());
        }
        let mut allowed = urls;
        for folder in &folders {
            let missing = |error: std::io::Error| {
                Problem::file("read", folder, &error)
                    .hint("`--allow FOLDER` names a folder with stores, or one above it")
            };
            let real = folder.canonicalize().map_err(missing)?;
            if !real.is_dir() {
                return Err(Problem::new(format!("--allow {} is no folder", folder.display()))
                    .hint("`--allow FOLDER`, or a URL like `s3://bucket/nightly`")
                    .into());
            }
            allowed.push(real);
        }
        if args.allow.is_empty() {
            allowed.push(PathBuf::from("/"));
        }
        Ok(Some(allowed))
    }

    /// Whoever can be reached from elsewhere asks for a token, and reads what it was told to.
    fn beyond_this_machine(address: SocketAddr, has_token: bool, args: &WorkerArgs) -> Result<(), Failure> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        if !has_token {
            let allow = if args.allow.is_empty() { " --allow FOLDER" } else { "" };
            return Err(Problem::new(format!("{address} can be reached by others, and {TOKEN} is not set"))
                .hint(format!(
                    "`{TOKEN}=… tq cluster worker {address}{allow}`, with the same {TOKEN} for `tq query --cluster`"
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
}
