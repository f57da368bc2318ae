//! Clusters: the same answers from workers as from one process, and nothing but an error when they cannot answer.
//!
//! Each test has a store of several small fixtures in a directory of its own. Workers listen on free ports of loopback and end with the test.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Traces of several formats and runs.
const TRACES: [&str; 8] = [
    "tfprof/wavefront_40.tfp",
    "tfprof/fib_36.json",
    "chrome/kineto_tiny.json",
    "chrome/nccl_ranks",
    "nsys/two_streams.sqlite",
    "actorprof/triangle_range",
    "daisen/queue_v49.sqlite3.zst",
    "parsec/chol8-1r",
];

const COMPARED: &str = "compare_runs(base => 'wavefront_40', new => 'fib_36')";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name)
}

fn tq(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tq"));
    command.args(arguments).env("TQ_CLUSTER_LEAST_BYTES", "0").env("NO_COLOR", "1");
    command.env_remove("TQ_TOKEN").env_remove("TQ_CLUSTER").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A store of the traces; the folder is removed with the first part.
fn store() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("runs.store").to_str().unwrap().to_owned();
    let traces: Vec<String> = TRACES.iter().map(|name| fixture(name).to_str().unwrap().to_owned()).collect();
    let mut arguments = vec!["import", "--into", store.as_str()];
    arguments.extend(traces.iter().map(String::as_str));
    let made = tq(&arguments).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    (folder, store)
}

/// The rows of an answer as a bag: lines in their order.
fn bag(output: &Output) -> Result<Vec<String>, String> {
    if !output.status.success() {
        return Err(text(&output.stderr));
    }
    let mut rows: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    rows.sort_unstable();
    Ok(rows)
}

/// What is said of the rows, whoever computes them.
fn notes(output: &Output) -> Vec<String> {
    let of_rows = |line: &&str| line.starts_with("note: ") && !line.contains("worker");
    let mut notes: Vec<String> = text(&output.stderr).lines().filter(of_rows).map(str::to_owned).collect();
    notes.sort_unstable();
    notes
}

fn asked(store: &str, cluster: Option<&str>, sql: &str) -> Output {
    let mut arguments = vec!["query", store, "--format", "ndjson", "-c", sql];
    arguments.extend(cluster.iter().flat_map(|workers| ["--cluster", workers]));
    tq(&arguments).output().unwrap()
}

/// A worker in the background.
struct Worker {
    process: Child,
    address: String,
}

impl Worker {
    fn start(token: Option<&str>) -> Worker {
        let mut command = tq(&["cluster", "worker"]);
        if let Some(token) = token {
            command.env("TQ_TOKEN", token);
        }
        Worker::of(&mut command)
    }

    /// One that meets this fate.
    fn with(fate: Option<Fate>) -> Worker {
        let Some(Fate::Full(blocks)) = fate else { return Worker::start(None) };
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; exec \"$2\" cluster worker --memory 1MB", "sh"]);
        shell.args([&blocks.to_string(), env!("CARGO_BIN_EXE_tq")]).env_remove("TQ_TOKEN").stdin(Stdio::null());
        Worker::of(&mut shell)
    }

    fn of(command: &mut Command) -> Worker {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        Worker { process, address }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// As a whole program; `tests/` asks much more of workers in its own process.
#[test]
fn workers_answer_as_one_process_does() {
    let (_folder, store) = store();
    let compared = format!("SELECT * FROM {COMPARED}");
    let queries = [
        "SELECT * FROM tasks",
        "SELECT run, location, busy(start, finish) FROM tasks GROUP BY run, location",
        "SELECT run, step, name, duration FROM critical_path()",
        "SELECT l.kind, count(*), sum(t.start - s.finish) FROM links l JOIN tasks s ON l.run = s.run AND l.source = s.task \
         JOIN tasks t ON l.run = t.run AND l.target = t.task GROUP BY l.kind",
        &compared,
    ];
    for sql in queries {
        let alone = bag(&asked(&store, None, sql));
        assert!(alone.is_ok(), "{sql}: {alone:?}");
        for workers in ["local:1", "local:4"] {
            let together = bag(&asked(&store, Some(workers), sql));
            assert_eq!(alone, together, "{workers}: {sql}");
        }
    }
}

/// Runs of one size, so that aggregates by run are divided by run; some of their names are one number.
#[test]
fn aggregates_by_run_are_whole_at_workers() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("runs.store").to_str().unwrap().to_owned();
    let trace = fixture("tfprof/wavefront_40.tfp").to_str().unwrap().to_owned();
    let named: Vec<String> = ["1", "2", "01", "02"].iter().map(|name| format!("{name}={trace}")).collect();
    let mut arguments = vec!["import", "--into", store.as_str()];
    arguments.extend(named.iter().map(String::as_str));
    assert!(tq(&arguments).output().unwrap().status.success());
    let are_whole = |sql: &str| {
        let plan = text(&asked(&store, Some("local:2"), &format!("EXPLAIN {sql}")).stdout);
        let at_workers = plan.split_once("Stage 1 ── ").unwrap_or_default().1;
        at_workers.contains("FinalPartitioned")
    };
    let whole = [
        "SELECT count(*) FROM tasks GROUP BY run",
        "SELECT run, location, busy(start, finish) AS b FROM tasks GROUP BY run, location HAVING count(*) > 2",
        "SELECT arrow_cast(run, 'Utf8') AS r, name, max_concurrency(start, finish) FROM tasks GROUP BY r, name",
        "SELECT n, count(*) FROM (SELECT run, name, count(*) AS n FROM tasks GROUP BY run, name) GROUP BY n",
        "SELECT DISTINCT run, name FROM tasks",
        // A join counts on groups that were dealt out by their keys.
        "SELECT a.name, a.n, b.n FROM (SELECT run, name, count(*) AS n FROM tasks GROUP BY run, name) a \
         JOIN (SELECT run, max(name) AS name, count(*) AS n FROM tasks GROUP BY run) b ON a.run = b.run AND a.name = b.name",
    ];
    let halves = [
        // One group of two runs.
        "SELECT arrow_cast(run, 'Int64') AS r, count(*) AS n FROM tasks GROUP BY 1",
        "SELECT run, percentile_cont(0.9) WITHIN GROUP (ORDER BY start DESC) FROM tasks GROUP BY run",
        "SELECT run, array_agg(name ORDER BY start, task) FROM tasks GROUP BY run",
        "SELECT run, name, count(*) FROM tasks GROUP BY ROLLUP (run, name)",
    ];
    for sql in whole.into_iter().chain(halves) {
        assert_eq!(are_whole(sql), whole.contains(&sql), "{sql}");
        for workers in ["local:2", "local:4"] {
            assert_eq!(bag(&asked(&store, Some(workers), sql)), bag(&asked(&store, None, sql)), "{workers}: {sql}");
        }
    }
    // Ties go to the earlier run.
    let sql = "SELECT run, name, task FROM tasks ORDER BY location LIMIT 9";
    let alone = asked(&store, None, sql);
    for _ in 0..4 {
        assert_eq!(text(&asked(&store, Some("local:2"), sql).stdout), text(&alone.stdout));
    }
}

#[test]
fn reports_and_checks_are_answered_by_workers() {
    let (folder, store) = store();
    let answers = |workers: &str, name: &str| {
        let page = folder.path().join(name);
        let page = page.to_str().unwrap();
        let report = ["report", &store, "--run", "wavefront_40", "--cluster", workers, "--html", "-o", page];
        let report = tq(&report).output().unwrap();
        assert!(report.status.success(), "{workers}: {}", text(&report.stderr));
        let (base, new) = (format!("{store}/wavefront_40"), format!("{store}/fib_36"));
        let check = ["check", &new, "--baseline", &base, "--query", "busy-time", "--cluster", workers];
        let check = tq(&check).output().unwrap();
        assert_ne!(check.status.code(), Some(2), "{workers}: {}", text(&check.stderr));
        let diff = tq(&["diff", &base, &new, "--cluster", workers]).output().unwrap();
        assert!(diff.status.success(), "{workers}: {}", text(&diff.stderr));
        (std::fs::read_to_string(page).unwrap(), text(&check.stdout), text(&diff.stdout))
    };
    let (alone, together) = (answers("off", "alone.html"), answers("local:2", "alone.html"));
    assert_eq!(alone.0, together.0);
    assert_eq!((alone.1, alone.2), (together.1, together.2));
}

#[test]
fn the_prompt_asks_workers() {
    let (_folder, store) = store();
    let lines = "CREATE VIEW mine AS SELECT 1;\n\\cluster\n\\cluster local:2\nEXPLAIN SELECT name, count(*) FROM tasks GROUP BY name;\n\\cluster off\n\\cluster\n";
    let mut prompt = tq(&[&store]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    prompt.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let answer = prompt.wait_with_output().unwrap();
    let (shown, told) = (text(&answer.stdout), text(&answer.stderr));
    assert!(answer.status.success(), "{told}");
    assert!(shown.contains("Stage 1 ── tasks=2"), "{shown}");
    assert!(told.contains("Workers: 127.0.0.1:"), "{told}");
    assert_eq!(told.matches("No workers").count(), 3, "{told}");
    assert_eq!(told.matches("what was made here ended with the session: `mine`").count(), 1, "{told}");
}

#[test]
fn the_environment_names_workers_for_stores_alone() {
    let (_folder, store) = store();
    let trace = fixture("tfprof/fib_36.json");
    let sql = "EXPLAIN SELECT name, count(*) FROM tasks GROUP BY name";
    let plan = |trace: &str, more: &[&str]| {
        let mut arguments = vec!["query", trace, "-c", sql];
        arguments.extend(more);
        let answer = tq(&arguments).env("TQ_CLUSTER", "local:1").output().unwrap();
        assert!(answer.status.success(), "{}", text(&answer.stderr));
        text(&answer.stdout)
    };
    assert!(plan(&store, &[]).contains("Stage"), "{}", plan(&store, &[]));
    assert!(!plan(&store, &["--cluster", "off"]).contains("Stage"));
    assert!(!plan(trace.to_str().unwrap(), &[]).contains("Stage"));
}

#[test]
fn explain_shows_what_workers_do() {
    let (_folder, store) = store();
    let workers = [Worker::start(None), Worker::start(None)];
    let both = format!("{},{}", workers[0].address, workers[1].address);
    for sql in ["SELECT name, count(*) FROM tasks GROUP BY name", "SELECT * FROM critical_path()"] {
        let plan = asked(&store, Some(&both), &format!("EXPLAIN {sql}"));
        let plan = text(&plan.stdout);
        assert!(plan.contains("Stage 1 ── tasks=2"), "{plan}");
        assert!(plan.contains("StoredExec: tasks"), "{plan}");
    }
    // What compares runs is done by one of them.
    let compared = format!("EXPLAIN SELECT * FROM {COMPARED}");
    let plan = text(&asked(&store, Some(&both), &compared).stdout);
    assert!(plan.contains("Stage 1") && plan.contains("ClosedExec: tasks=1"), "{plan}");
    // A small scan stays where it is.
    let few = ["query", &store, "--cluster", &both, "-c", "EXPLAIN SELECT name, count(*) FROM tasks GROUP BY name"];
    let plan = tq(&few).env_remove("TQ_CLUSTER_LEAST_BYTES").output().unwrap();
    assert!(!text(&plan.stdout).contains("Stage"), "{}", text(&plan.stdout));
}

/// What `EXPLAIN` shows is what is done: groups come, and not the rows that they are of.
#[test]
fn groups_of_workers_are_fewer_bytes_than_their_rows() {
    let (_folder, store) = store();
    let bytes = Arc::new(AtomicU64::new(0));
    let workers = [Worker::start(None), Worker::start(None)];
    let through = workers.each_ref().map(|worker| counted(worker.address.clone(), Fate::Slow(0), Arc::clone(&bytes)));
    let sent = |sql: &str| {
        bytes.store(0, Ordering::Relaxed);
        let answer = asked(&store, Some(&through.join(",")), sql);
        assert!(answer.status.success(), "{}", text(&answer.stderr));
        bytes.load(Ordering::Relaxed)
    };
    let told = sent("SELECT count(*) FROM tasks");
    let rows = sent("SELECT run, name, duration, task FROM tasks") - told;
    for groups in [
        "SELECT run, count(*), sum(duration), max(name) FROM tasks GROUP BY run",
        "SELECT run, string_agg(name, ''), sum(duration - task) FROM tasks WHERE task < 3 GROUP BY run",
    ] {
        let of_groups = sent(groups).saturating_sub(told);
        assert!(
            of_groups * 4 < rows,
            "{groups}: {of_groups} bytes more than the {told} of a count, where all rows are {rows}"
        );
    }
}

#[test]
fn notes_of_workers_are_told() {
    let (_folder, store) = store();
    let sql = "SELECT count(*) FROM critical_path()";
    let expected = notes(&asked(&store, None, sql));
    assert!(expected.iter().any(|note| note.contains("critical_path")), "{expected:?}");
    assert_eq!(notes(&asked(&store, Some("local:2"), sql)), expected);
}

#[test]
fn a_worker_that_was_killed_before_is_done_without() {
    let (_folder, store) = store();
    let (mut lost, left) = (Worker::start(None), Worker::start(None));
    lost.kill();
    let sql = "SELECT name, count(*) FROM tasks GROUP BY name";
    let answer = asked(&store, Some(&format!("{},{}", lost.address, left.address)), sql);
    assert_eq!(bag(&answer), bag(&asked(&store, None, sql)));
    assert!(text(&answer.stderr).contains(&format!("worker {}", lost.address)), "{}", text(&answer.stderr));

    let refused = asked(&store, Some(&lost.address), sql);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(text(&refused.stdout), "");
    assert!(text(&refused.stderr).contains(&format!("worker {}", lost.address)), "{}", text(&refused.stderr));
}

/// What happens to a worker, or to the way to it, while a query runs.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It is killed after so many milliseconds.
    Killed(u64),
    /// It stands still from then on.
    Stopped(u64),
    /// The connection ends after so many bytes of its answers …
    Cut(u64),
    /// … or nothing comes any more.
    Swallowed(u64),
    /// Each block of 4 KiB takes so many milliseconds.
    Slow(u64),
    /// Its memory has no room for a sort, and its disk (as the size of a file) for so many blocks of 512 bytes.
    Full(u64),
}

/// A connection to a worker through which answers come as a fate says. Its threads end with the connections.
fn through(worker: String, fate: Fate) -> String {
    counted(worker, fate, Arc::default())
}

/// The same, which counts the bytes of answers.
fn counted(worker: String, fate: Fate, bytes: Arc<AtomicU64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(&worker)) else { return };
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _gone = std::io::copy(&mut from_client, &mut to_server);
                let _closed = to_server.shutdown(Shutdown::Both);
            });
            let bytes = Arc::clone(&bytes);
            std::thread::spawn(move || forward(server, client, fate, &bytes));
        }
    });
    address
}

fn forward(mut from: TcpStream, mut to: TcpStream, fate: Fate, bytes: &AtomicU64) {
    let mut block = [0; 4096];
    let mut left = match fate {
        Fate::Cut(bytes) | Fate::Swallowed(bytes) => bytes as usize,
        _ => usize::MAX,
    };
    while let Ok(read @ 1..) = from.read(&mut block) {
        if let Fate::Slow(milliseconds) = fate {
            std::thread::sleep(Duration::from_millis(milliseconds));
        }
        let passed = read.min(left);
        bytes.fetch_add(passed as u64, Ordering::Relaxed);
        left -= passed;
        if to.write_all(&block[..passed]).is_err() {
            break;
        }
        if left == 0 && matches!(fate, Fate::Cut(_)) {
            break;
        }
    }
    let _closed = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// Random numbers that a seed gives again: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn fate(&mut self) -> Fate {
        match self.below(6) {
            0 => Fate::Killed(self.below(1_500)),
            1 => Fate::Stopped(self.below(1_500)),
            2 => Fate::Cut(self.below(200_000)),
            3 => Fate::Swallowed(self.below(200_000)),
            4 => Fate::Full(self.below(400)),
            _ => Fate::Slow(self.below(20)),
        }
    }
}

/// `bash benches/lost_workers.sh 200 7` asks more often, and again with the same seed.
#[test]
fn workers_that_are_lost_meanwhile_change_no_answer() {
    const ROUNDS: u64 = 20;
    // Longer than a query may hang.
    const PATIENCE: Duration = Duration::from_secs(60);
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let (rounds, seed) = (given("TQ_ROUNDS").unwrap_or(ROUNDS), given("TQ_SEED").unwrap_or_else(now));
    println!("TQ_SEED={seed}");
    let mut random = Random(seed);
    let (_folder, store) = store();
    let queries = [
        "SELECT * FROM tasks",
        "SELECT run, name, count(*), sum(duration) FROM tasks GROUP BY run, name",
        "SELECT run, step, name, duration FROM critical_path()",
        // Each row of one side with each of the other, where both come from workers.
        "SELECT a.name, count(*) FROM tasks a JOIN tasks b ON a.start < b.start GROUP BY a.name",
        "SELECT * FROM tasks ORDER BY duration, run, task",
    ];
    let alone = queries.map(|sql| {
        let answer = asked(&store, None, sql);
        (bag(&answer).unwrap(), notes(&answer))
    });
    assert!(alone.iter().any(|(_, notes)| notes.iter().any(|note| note.contains("critical_path"))), "{alone:?}");
    let (mut right, mut refused, mut longest) = (0, 0, Duration::ZERO);
    for round in 0..rounds {
        let fates = [Some(random.fate()), (random.below(4) == 0).then(|| random.fate())];
        let which = random.below(queries.len() as u64) as usize;
        let round = format!("round {round} of TQ_SEED={seed}, {fates:?}: {}", queries[which]);
        let workers = fates.map(Worker::with);
        let addresses: Vec<String> = (workers.iter().zip(fates))
            .map(|(worker, fate)| match fate {
                Some(fate @ (Fate::Cut(_) | Fate::Swallowed(_) | Fate::Slow(_))) => {
                    through(worker.address.clone(), fate)
                }
                _ => worker.address.clone(),
            })
            .collect();
        let started = Instant::now();
        let asking =
            tq(&["query", &store, "--format", "ndjson", "--cluster", &addresses.join(","), "-c", queries[which]])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        for (worker, fate) in workers.iter().zip(fates) {
            let (wait, signal) = match fate {
                Some(Fate::Killed(wait)) => (wait, "-KILL"),
                Some(Fate::Stopped(wait)) => (wait, "-STOP"),
                _ => continue,
            };
            std::thread::sleep(Duration::from_millis(wait).saturating_sub(started.elapsed()));
            let sent = Command::new("kill").args([signal, &worker.process.id().to_string()]).status().unwrap();
            assert!(sent.success(), "{round}");
        }
        let answer = asking.wait_with_output().unwrap();
        longest = longest.max(started.elapsed());
        assert!(started.elapsed() < PATIENCE, "{round}");
        match bag(&answer) {
            Ok(rows) => {
                // Those of a try that lost its worker are not told.
                assert_eq!((rows, notes(&answer)), alone[which], "{round}");
                right += 1;
            }
            Err(told) => {
                assert_eq!((answer.status.code(), text(&answer.stdout).as_str()), (Some(2), ""), "{round}");
                let names_one = addresses.iter().any(|address| told.contains(address.as_str()));
                assert!(told.contains("worker") && names_one, "{round}: {told}");
                refused += 1;
            }
        }
    }
    println!("{rounds} rounds: {right} right, {refused} refused, the longest {:.1} s", longest.as_secs_f64());
}

#[test]
fn status_says_who_would_help() {
    let (mut lost, left) = (Worker::start(Some("right")), Worker::start(Some("right")));
    lost.kill();
    let status = |token: &str| {
        let both = format!("{},{}", lost.address, left.address);
        tq(&["cluster", "status", "--format", "csv"]).env("TQ_TOKEN", token).env("TQ_CLUSTER", both).output().unwrap()
    };
    let said = status("right");
    assert_eq!(said.status.code(), Some(2));
    let rows = text(&said.stdout);
    let row = rows.lines().find(|row| row.starts_with(&left.address)).unwrap();
    let [_, "ready", version, "0", bytes, "\"\"", ""] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
    assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{row}");
    assert!((1 << 20..1u64 << 30).contains(&bytes.parse().unwrap()), "{row}");
    let silent = rows.lines().find(|row| row.starts_with(&format!("{},silent,", lost.address))).unwrap();
    assert!(silent.contains(&format!("worker {} does not answer", lost.address)), "{rows}");
    let told = text(&said.stderr);
    assert!(told.contains(&format!("note: worker {} does not answer", lost.address)), "{told}");
    assert!(text(&status("wrong").stdout).contains(&format!("{},refused,", left.address)));
    let of_itself = tq(&["cluster", "status", "local:2"]).output().unwrap();
    assert!(text(&of_itself.stderr).contains("`local:2` names no workers that could be asked"));
    let one = tq(&["cluster", "status", &left.address]).env("TQ_TOKEN", "right").output().unwrap();
    assert!(one.status.success(), "{}", text(&one.stderr));
}

#[test]
fn what_travels_is_encrypted_where_workers_have_certificates() {
    let (folder, store) = store();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let [certificate, key] = ["worker.pem", "worker.key"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let worker = Worker::of(&mut tq(&["cluster", "worker", "--tls-cert", &certificate, "--tls-key", &key]));
    let sql = "SELECT name, count(*) FROM tasks GROUP BY name";
    let ask = ["query", &store, "--format", "ndjson", "-c", sql, "--cluster", &worker.address];
    let encrypted = tq(&ask).env("TQ_TLS_CA", &certificate).output().unwrap();
    assert_eq!(bag(&encrypted), bag(&asked(&store, None, sql)));

    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&certificate, other.cert.pem()).unwrap();
    for refused in [tq(&ask).output().unwrap(), tq(&ask).args(["--tls-ca", &certificate]).output().unwrap()] {
        let told = text(&refused.stderr);
        assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{told}");
        assert!(told.contains(&format!("worker {}", worker.address)), "{told}");
    }
}

#[test]
fn a_wrong_token_is_refused() {
    let (_folder, store) = store();
    let worker = Worker::start(Some("right"));
    let sql = "SELECT count(*) FROM tasks WHERE duration > 0";
    let asked = |token: Option<&str>| {
        let mut command = tq(&["query", &store, "--cluster", &worker.address, "-c", sql]);
        if let Some(token) = token {
            command.env("TQ_TOKEN", token);
        }
        command.output().unwrap()
    };
    assert!(asked(Some("right")).status.success(), "{}", text(&asked(Some("right")).stderr));
    for wrong in [None, Some("wrong"), Some("right1"), Some("righ")] {
        let refused = asked(wrong);
        assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{wrong:?}");
        let told = text(&refused.stderr);
        let why = if wrong.is_some() { "refuses the token" } else { "wants a token" };
        assert!(told.contains(&format!("worker {} {why}", worker.address)), "{told}");
    }
}

#[test]
fn a_worker_reads_what_it_may_alone() {
    let (folder, store) = store();
    let other = TempDir::new().unwrap();
    let worker = Worker::of(&mut tq(&["cluster", "worker", "--allow", other.path().to_str().unwrap()]));
    let refused = asked(&store, Some(&worker.address), "SELECT name FROM tasks");
    let told = text(&refused.stderr);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{told}");
    let path = folder.path().canonicalize().unwrap();
    assert!(told.contains(&worker.address) && told.contains(path.to_str().unwrap()), "{told}");
}

#[test]
fn what_is_no_store_is_refused_at_once() {
    let trace = fixture("tfprof/fib_36.json");
    let refused = asked(trace.to_str().unwrap(), Some("local:1"), "SELECT 1");
    let told = text(&refused.stderr);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{told}");
    assert!(told.contains("is none") && told.contains("tq import"), "{told}");
}

#[test]
fn a_worker_beyond_this_machine_wants_a_token() {
    let refused = tq(&["cluster", "worker", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("TQ_TOKEN"), "{}", text(&refused.stderr));
    let refused = tq(&["cluster", "worker", "0.0.0.0:0"]).env("TQ_TOKEN", "secret").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--allow"), "{}", text(&refused.stderr));
}
