//! Traces and stores behind URLs, from a server on loopback.

use std::ffi::OsString;

use super::server::{Fault, Server};
use super::{Answer, Place, TRACE, split};

const COUNT: &str = "-c 'SELECT count(*) AS tasks FROM tasks'";
const THREE: &str = "tasks\n3\n";

impl Place {
    /// Runs `tq` with nothing of the environment's own proxies and credentials.
    fn tq_at(&self, server: &Server, arguments: &str, variables: &[(&str, &str)]) -> Answer {
        let arguments = split(&arguments.replace("HOST", &server.address));
        let mut command = self.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|begin| name.starts_with(begin))
                || name.to_lowercase().ends_with("_proxy")
            {
                command.env_remove(name);
            }
        }
        let endpoint = format!("http://{}", server.address);
        command
            .env("HOME", self.0.path())
            .env("TMPDIR", self.temporary())
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_METADATA_ENDPOINT", &endpoint)
            .env("AWS_ALLOW_HTTP", "true")
            .envs(variables.iter().map(|(name, value)| (name, OsString::from(value))));
        let answer: Answer = command.output().unwrap().into();
        assert_eq!(std::fs::read_dir(self.temporary()).unwrap().count(), 0, "no copy is left");
        Answer {
            stderr: answer.stderr.replace(&server.address, "HOST"),
            stdout: answer.stdout.replace(&server.address, "HOST"),
            ..answer
        }
    }

    fn temporary(&self) -> std::path::PathBuf {
        let folder = self.0.path().join("temporary");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "mine"), ("AWS_SECRET_ACCESS_KEY", "secret")];

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[track_caller]
fn gives(answer: &Answer, expected: &str) {
    assert_eq!((answer.stdout.as_str(), answer.status), (expected, Some(0)), "{}", answer.stderr);
}

#[track_caller]
fn fails(answer: &Answer, expected: &str) {
    assert_eq!((answer.stderr.as_str(), answer.status), (expected, Some(2)), "{}", answer.stdout);
}

#[test]
fn traces_are_read_from_the_web() {
    let (place, server) = (Place::new(), Server::new());
    server.put("/a b/run.json", TRACE);
    server.put("/plain.json.gz", gzip(TRACE));
    server.fault("/plain.json.gz", Fault::Plain);
    gives(&place.tq_at(&server, &format!("query http://HOST/a%20b/run.json {COUNT}"), &[]), THREE);
    gives(&place.tq_at(&server, &format!("query 'http://HOST/a b/run.json' {COUNT}"), &[]), THREE);
    gives(&place.tq_at(&server, &format!("query http://HOST/plain.json.gz {COUNT}"), &[]), THREE);
    // What is secret in a URL is asked with, and not shown.
    let url = "http://HOST/plain.json.gz?sig=a%2Fb";
    let answer =
        place.tq_at(&server, &format!("query night/1={url} -c 'SELECT run, source FROM import_stats LIMIT 1'"), &[]);
    gives(&answer, "run,source\nnight/1,http://HOST/plain.json.gz\n");
    assert_eq!(server.requests().pop().unwrap().query, "sig=a%2Fb");
    fails(
        &place.tq_at(&server, &format!("query http://me:word@HOST/plain.json.gz {COUNT}"), &[]),
        "error: http://HOST/plain.json.gz: a user and a password in a URL are not sent\n\
         hint: a signed URL (`?…`) is sent as it is; `curl -u USER URL | tq query - …` asks with a password\n",
    );
    // Wherever a trace is named.
    let answer = place.tq_at(&server, "diff http://HOST/plain.json.gz http://HOST/plain.json.gz?x=y", &[]);
    assert_eq!(answer.status, Some(0), "{}", answer.stderr);
    let answer = place.tq_at(&server, "check http://HOST/plain.json.gz?sig=z --baseline run.json", &[]);
    assert!(answer.status == Some(0) && !answer.stdout.contains("sig"), "{}{}", answer.stdout, answer.stderr);
    gives(
        &place.tq_at(&server, "import n=http://HOST/plain.json.gz?sig=z --into runs.store", &[]),
        "1 run imported into runs.store\n",
    );
    let answer = place.tq_at(&server, "report http://HOST/plain.json.gz?sig=z -o page.md", &[]);
    assert!(answer.status == Some(0) && !answer.stderr.contains("sig"), "{}", answer.stderr);
    assert!(!place.read("page.md").contains("sig=z"));
}

#[test]
fn a_database_is_read_from_the_web() {
    let (place, server) = (Place::new(), Server::new());
    let file = place.0.path().join("log.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .execute_batch("CREATE TABLE work (name TEXT, begin_us INT, end_us INT); INSERT INTO work VALUES ('a', 1, 2)")
        .unwrap();
    drop(database);
    server.put("/log.db", std::fs::read(&file).unwrap());
    let options = "--option table=tasks --option table.from=work --option table.start=begin_us:us --option table.finish=end_us:us --option table.name=name";
    let answer =
        place.tq_at(&server, &format!("query http://HOST/log.db {options} -c 'SELECT name, duration FROM tasks'"), &[]);
    gives(&answer, "name,duration\na,1000\n");
}

#[test]
fn traces_are_read_from_buckets() {
    let (place, server) = (Place::new(), Server::new());
    server.put("/bucket/night/run.json.gz", gzip(TRACE));
    gives(&place.tq_at(&server, &format!("query s3://bucket/night/run.json.gz {COUNT}"), &KEYS), THREE);
    let asked = server.requests().pop().unwrap();
    assert!(
        asked.headers["authorization"].contains("Credential=mine/")
            && asked.headers["authorization"].contains("/us-east-1/")
    );
    let unsigned = [("AWS_SKIP_SIGNATURE", "true")];
    gives(&place.tq_at(&server, &format!("query s3://bucket/night/run.json.gz {COUNT}"), &unsigned), THREE);
    assert!(!server.requests().pop().unwrap().headers.contains_key("authorization"));
    let account = format!(
        "{{\"gcs_base_url\":\"http://{}\",\"disable_oauth\":true,\"client_email\":\"\",\"private_key\":\"\",\"private_key_id\":\"\"}}",
        server.address
    );
    let google = [("GOOGLE_SERVICE_ACCOUNT_KEY", account.as_str()), ("GOOGLE_ALLOW_HTTP", "true")];
    gives(&place.tq_at(&server, &format!("query gs://bucket/night/run.json.gz {COUNT}"), &google), THREE);
    let endpoint = format!("http://{}", server.address);
    let azure = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "me"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
        ("AZURE_STORAGE_ENDPOINT", endpoint.as_str()),
        ("AZURE_ALLOW_HTTP", "true"),
    ];
    gives(&place.tq_at(&server, &format!("query az://bucket/night/run.json.gz {COUNT}"), &azure), THREE);
}

#[test]
fn keys_of_a_profile_are_found() {
    let (place, server) = (Place::new(), Server::new());
    server.put("/bucket/run.json", TRACE);
    place.write(".aws/credentials", "[default]\naws_access_key_id = d\naws_secret_access_key = s\n[n]\naws_access_key_id = n\naws_secret_access_key = s\n");
    place.write(".aws/config", "[profile n]\nregion = eu-central-1\n[profile sso]\nsso_session = work\n");
    let query = format!("query s3://bucket/run.json {COUNT}");
    let credential = |profile: &[(&str, &str)]| {
        gives(&place.tq_at(&server, &query, profile), THREE);
        server.requests().pop().unwrap().headers["authorization"].clone()
    };
    assert!(credential(&[]).contains("Credential=d/"));
    let named = credential(&[("AWS_PROFILE", "n")]);
    assert!(named.contains("Credential=n/") && named.contains("/eu-central-1/"), "{named}");
    // The environment comes first.
    assert!(credential(&[("AWS_PROFILE", "n"), KEYS[0], KEYS[1]]).contains("Credential=mine/"));
    fails(
        &place.tq_at(&server, &query, &[("AWS_PROFILE", "sso")]),
        "error: s3://bucket/run.json: the keys of profile `sso` come from elsewhere (`sso_session`), and tq reads only those that are written down\n\
         hint: eval \"$(aws configure export-credentials --profile sso --format env)\"\n",
    );
    fails(
        &place.tq_at(&server, &query, &[("AWS_PROFILE", "x")]),
        "error: s3://bucket/run.json: there is no profile `x` in ~/.aws/credentials and ~/.aws/config\n\
         hint: AWS_PROFILE names it; `aws configure list-profiles` lists what there is\n",
    );
}

#[test]
fn what_a_server_refuses_is_said() {
    let (place, server) = (Place::new(), Server::new());
    for path in ["/b/busy.json", "/b/down.json", "/b/no.json", "/b/cut.json", "/b/plain.json", "/b/slow.json"] {
        server.put(path, TRACE);
    }
    let read = |url: &str, variables: &[(&str, &str)]| place.tq_at(&server, &format!("query {url} {COUNT}"), variables);
    // Asked again until it answers.
    server.fault("/b/busy.json", Fault::Status(2, 503, "busy"));
    gives(&read("http://HOST/b/busy.json", &[]), THREE);
    server.fault("/b/cut.json", Fault::Cut(1));
    gives(&read("s3://b/cut.json", &KEYS), THREE);
    assert!(server.requests().pop().unwrap().headers["range"].starts_with("bytes="), "taken up where it broke");
    server.fault(
        "/b/down.json",
        Fault::Status(9, 500, "<Error><Code>InternalError</Code><Message>Alas.</Message></Error>"),
    );
    fails(
        &read("http://HOST/b/down.json", &[]),
        "error: http://HOST/b/down.json: cannot read it: 500 Internal Server Error: InternalError: Alas.\n",
    );
    fails(
        &read("http://HOST/b/none.json?sig=x", &[]),
        "error: http://HOST/b/none.json: there is no such file (404 Not Found: NoSuchKey)\nhint: a store is found by its `log/last.json`\n",
    );
    fails(
        &read("s3://b/none.json", &KEYS),
        "error: s3://b/none.json: there is no such object (404 Not Found: NoSuchKey)\nhint: a store is found by its `log/last.json`\n",
    );
    server.fault("/none/x", Fault::Status(1, 404, "<Error><Code>NoSuchBucket</Code></Error>"));
    fails(&read("s3://none/x", &KEYS), "error: s3://none/x: there is no bucket `none` (404 Not Found: NoSuchBucket)\n");
    server.fault("/b/no.json", Fault::Status(2, 403, "<Error><Code>AccessDenied</Code></Error>"));
    fails(
        &read("s3://b/no.json", &KEYS),
        "error: s3://b/no.json: the server refuses it (403 Forbidden: AccessDenied)\n\
         hint: credentials are looked for in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, \
         profile `default` of ~/.aws, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, the metadata of the machine; AWS_SKIP_SIGNATURE=true reads what is public\n",
    );
    fails(
        &read("http://HOST/b/no.json", &[]),
        "error: http://HOST/b/no.json: the server refuses it (403 Forbidden: AccessDenied)\n\
         hint: a signed URL (`?…`) is sent as it is; `curl -u USER URL | tq query - …` asks with a password\n",
    );
}

#[test]
fn what_cannot_be_reached_is_said() {
    let (place, server) = (Place::new(), Server::new());
    server.put("/run.json", TRACE);
    let read = |url: &str, more: &str| place.tq_at(&server, &format!("query {url} {more} {COUNT}"), &[]);
    server.fault("/run.json", Fault::Silent);
    fails(
        &read("http://HOST/run.json", "--timeout 1s"),
        "error: http://HOST/run.json: reading took longer than 1 s, the limit of `--timeout`\n\
         hint: give it more time; a small file that takes long may hold something endless, such as a database view\n",
    );
    server.fault("/run.json", Fault::Plain);
    let answer = read("https://HOST/run.json", "");
    assert!(answer.stderr.starts_with("error: https://HOST/run.json: cannot read it: "), "{}", answer.stderr);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answer = read(&format!("http://{closed}/run.json"), "");
    assert!(answer.stderr.contains("cannot read it: Connection refused"), "{}", answer.stderr);
    let half = Server::new();
    half.put("/run.json", TRACE);
    half.fault("/run.json", Fault::Half);
    let answer = read(&format!("http://{}/run.json", half.address), "");
    let broke = format!("the connection broke after {} of {} bytes: ", TRACE.len() / 2, TRACE.len());
    assert!(answer.stderr.contains(&broke) && answer.status == Some(2), "{}", answer.stderr);
}

#[test]
fn missing_credentials_are_said() {
    let (place, server) = (Place::new(), Server::new());
    // The metadata of the machine is the server of the test, which has none.
    let answer = place.tq_at(&server, &format!("query s3://b/run.json {COUNT}"), &[]);
    assert!(
        answer.stderr.starts_with("error: s3://b/run.json: there are no credentials for it: "),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("hint: credentials are looked for in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "),
        "{}",
        answer.stderr
    );
    let answer = place.tq_at(&server, &format!("query az://b/run.json {COUNT}"), &[]);
    assert!(answer.stderr.contains("there are no credentials for it: Account must be specified"), "{}", answer.stderr);
    fails(
        &place.tq_at(&server, "query s3://bucket -c 'SELECT 1'", &KEYS),
        "error: s3://bucket: it names no object, and the bucket is no store\nhint: `s3://bucket/OBJECT` does\n",
    );
    fails(
        &place.tq_at(
            &server,
            &format!("query s3://b/run.json {COUNT}"),
            &[KEYS[0], KEYS[1], ("AWS_ALLOW_HTTP", "false")],
        ),
        "error: s3://b/run.json: cannot read it: URL scheme is not allowed\n\
         hint: AWS_ALLOW_HTTP=true (GOOGLE_ALLOW_HTTP, AZURE_ALLOW_HTTP) allows an endpoint without TLS\n",
    );
    fails(
        &place.tq_at(&server, "query http://HOST/run.json?x", &[]),
        "error: there is no question after the trace `http://HOST/run.json`\n\
         hint: give SQL with `-c`, a file with `-f`, or the name of a saved query; `tq queries` lists them\n",
    );
}

#[test]
fn only_the_command_line_causes_requests() {
    let (place, server) = (Place::new(), Server::new());
    let url = format!("http://{}/x.csv", server.address);
    server.put("/x.csv", "a,start,finish\nx,1,2\n");
    place.write("data.csv", "a,start,finish\nx,1,2\n");
    place.write("data.csv.tq.toml", &format!("file = \"{url}\"\ntable = \"tasks\"\n"));
    place.write("all/a.sql", &format!("-- title: A\n-- expect same as: {url}\nSELECT 1 AS a\n"));
    place.write("page.md", &format!("```sql\n{url}\n```\n\n```sql {url}\n```\n"));
    let asks = [
        format!("query run.json -c \"SELECT * FROM '{url}'\""),
        format!("query run.json -c \"SELECT * FROM read_csv('{url}')\""),
        format!(
            "query run.json -c \"CREATE EXTERNAL TABLE t (a TEXT) STORED AS CSV LOCATION '{url}'; SELECT * FROM t\""
        ),
        format!("query run.json -c \"COPY tasks TO '{url}'\""),
        "query run.json -c \"CREATE EXTERNAL TABLE t (a TEXT) STORED AS CSV LOCATION 's3://b/x.csv'\"".to_owned(),
        "query data.csv.tq.toml -c \"SELECT 1\"".to_owned(),
        "query data.csv -c \"SELECT 1\"".to_owned(),
        format!("query data.csv --option table.file={url} -c \"SELECT 1\""),
        format!("query data.csv --option table.mapping={url} -c \"SELECT 1\""),
        format!("query run.json --option tfprof.dot={url} -c \"SELECT 1\""),
        format!("query run.json -f {url}"),
        "check run.json --query all".to_owned(),
        "report run.json --template page.md -o out.md".to_owned(),
    ];
    for ask in asks {
        let words: Vec<String> = ask
            .split('"')
            .enumerate()
            .flat_map(|(index, part)| if index % 2 == 1 { vec![part.to_owned()] } else { split(part) })
            .collect();
        place.tq_args(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(server.requests().len(), 0, "{:?}", server.requests());
    // Nor does a folder that is called like the beginning of a URL stand in for a server.
    place.write("http:/host/run.json", TRACE);
    fails(
        &place.tq("query http://host/run.json -c 'SELECT 1'"),
        "error: http://host/run.json: the current folder has a `http:`, and files in it could be taken for files beside the URL\n\
         hint: run tq in another folder; `./` before the path names the file\n",
    );
    gives(&place.tq(&format!("query ./http://host/run.json {COUNT}")), THREE);
}

/// A store of two commits on a disk, and the same behind a URL.
fn store(place: &Place, server: &Server, path: &str) {
    place.tq("import night/1=run.json night/2=run.json --into runs.store");
    place.tq("import day=run.json --into runs.store");
    mirror(place, server, path);
}

fn mirror(place: &Place, server: &Server, path: &str) {
    for folder in ["log", "runs"] {
        for file in walk(&place.0.path().join("runs.store").join(folder)) {
            let name = file.strip_prefix(place.0.path().join("runs.store")).unwrap().to_string_lossy().into_owned();
            server.put(&format!("{path}/{name}"), std::fs::read(&file).unwrap());
        }
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

const RUNS: &str = "-c 'SELECT run, tasks, makespan FROM runs'";
const THREE_RUNS: &str = "run,tasks,makespan\nnight/1,3,80000\nnight/2,3,80000\nday,3,80000\n";

#[test]
fn stores_are_read_behind_urls() {
    let (place, server) = (Place::new(), Server::new());
    store(&place, &server, "/bucket/ci/runs.store");
    for url in ["s3://bucket/ci/runs.store", "s3://bucket/ci/runs.store/", "http://HOST/bucket/ci/runs.store"] {
        gives(&place.tq_at(&server, &format!("query {url} {RUNS}"), &KEYS), THREE_RUNS);
        let sql = "-c 'SELECT run, name, location, start, finish, task, parent FROM tasks'";
        let of_disk = place.tq(&format!("query runs.store {sql}"));
        gives(&place.tq_at(&server, &format!("query {url} {sql}"), &KEYS), &of_disk.stdout);
    }
    let url = "http://HOST/bucket/ci/runs.store";
    gives(&place.tq_at(&server, &format!("query {url} --run night/2 {COUNT}"), &[]), THREE);
    let answer = place.tq_at(&server, &format!("query old={url} --run day -c 'SELECT run FROM runs'"), &[]);
    gives(&answer, "run\nold/day\n");
    let (behind, of_disk) = (place.tq_at(&server, &format!("runs {url}"), &[]), place.tq("runs runs.store"));
    gives(&behind, &of_disk.stdout);
    let answer = place.tq_at(&server, &format!("check {url} --run night/2 --baseline {url} --baseline run.json"), &[]);
    assert_eq!(answer.status, Some(0), "{}{}", answer.stdout, answer.stderr);
    // Nothing is listed, and only what a query needs is asked for.
    let before = server.requests().len();
    gives(&place.tq_at(&server, &format!("query {url} -c 'SELECT count(*) AS n FROM links'"), &[]), "n\n0\n");
    let asked: Vec<String> =
        server.requests()[before..].iter().map(|request| request.path.replace("/bucket/ci/runs.store", "")).collect();
    assert!(asked.iter().all(|path| path.starts_with("/log/")), "{asked:?}");
    assert!(server.requests().iter().all(|request| !request.query.contains("list-type")));
}

#[cfg(feature = "cluster")]
#[test]
fn workers_read_stores_behind_urls() {
    use std::io::{BufRead, BufReader};

    let (place, server) = (Place::new(), Server::new());
    store(&place, &server, "/bucket/ci/runs.store");
    let sql =
        "-c 'SELECT run, name, count(*) AS n, sum(duration) AS d FROM tasks GROUP BY run, name ORDER BY run, name'";
    let of_disk = place.tq(&format!("query runs.store {sql}")).stdout;
    let all = ("TQ_CLUSTER_LEAST_BYTES", "0");
    for url in ["s3://bucket/ci/runs.store", "http://HOST/bucket/ci/runs.store"] {
        let variables = [KEYS[0], KEYS[1], all];
        gives(&place.tq_at(&server, &format!("query {url} --cluster local:2 {sql}"), &variables), &of_disk);
        let explained = format!("query {url} -c 'EXPLAIN SELECT name, count(*) FROM tasks GROUP BY name'");
        let asked = [KEYS[0], KEYS[1], all, ("TQ_CLUSTER", "local:1")];
        let plan = place.tq_at(&server, &explained, &asked).stdout;
        assert!(plan.contains("Stage 1"), "{plan}");
    }
    // A worker of its own reads what it was allowed to.
    let url = format!("http://{}/bucket/ci", server.address);
    let ask = |allowed: &str| {
        let mut worker = place.command(&["cluster", "worker", "--allow", allowed]);
        let mut worker =
            worker.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap();
        let answer = place.tq_at(&server, &format!("query {url}/runs.store --cluster {address} {sql}"), &[all]);
        worker.kill().and_then(|()| worker.wait()).unwrap();
        answer
    };
    gives(&ask(&url), &of_disk);
    for other in [format!("{url}/run"), "/".to_owned()] {
        let refused = ask(&other);
        assert!(
            refused.status == Some(2) && refused.stderr.contains("is not below a URL of --allow"),
            "{}",
            refused.stderr
        );
    }
    let no_store = place.tq_at(&server, &format!("query {url} --cluster local:1 {COUNT}"), &[]);
    fails(
        &no_store,
        "error: --cluster works on stores, and `http://HOST/bucket/ci` is none\n\
         hint: `tq import http://HOST/bucket/ci --into runs.store` makes one; then ask `runs.store` in its place\n\
         hint: `--cluster off`, at the prompt `\\cluster off`, asks without workers\n",
    );
}

/// A commit under another number.
fn renumbered(commit: &str, from: u64, to: u64) -> String {
    let (head, body) = commit.split_once("\"body\":").unwrap();
    let body = body.trim_end().strip_suffix('}').unwrap().replacen(
        &format!("\"number\":{from}"),
        &format!("\"number\":{to}"),
        1,
    );
    let mut sum = flate2::Crc::new();
    sum.update(body.as_bytes());
    let (begin, _) = head.split_once("\"crc32\":").unwrap();
    format!("{begin}\"crc32\":\"{:08x}\",\"body\":{body}}}\n", sum.sum())
}

#[test]
fn a_hint_may_be_old_or_missing() {
    let (place, server) = (Place::new(), Server::new());
    place.tq("import a=run.json --into runs.store");
    place.tq("import b=run.json --into runs.store");
    mirror(&place, &server, "/s");
    // As if there had been a hundred commits before.
    for (number, name) in [(1, "00000100.checkpoint"), (2, "00000101")] {
        let commit = place.read(&format!("runs.store/log/{number:08}.json"));
        server.put(&format!("/s/log/{name}.json"), renumbered(&commit, number, number + 99));
        server.take(&format!("/s/log/{number:08}.json"));
    }
    server.put("/s/log/last.json", r#"{"tq store":2,"commit":101,"checkpoint":100}"#);
    let runs = "-c 'SELECT run FROM runs'";
    let read = || place.tq_at(&server, &format!("query http://HOST/s {runs}"), &[]);
    gives(&read(), "run\na\nb\n");
    let mut asked: Vec<String> = server.requests().iter().map(|request| request.path.replace("/s/log/", "")).collect();
    // Those that are known to be there are asked for at once.
    asked.sort();
    assert_eq!(asked, ["00000100.checkpoint.json", "00000101.json", "00000102.json", "last.json", "last.json"]);
    let old = r#"{"tq store":2,"commit":100,"checkpoint":100}"#;
    server.put("/s/log/last.json", old);
    gives(&read(), "run\na\nb\n");
    // A service that does not tell what is not there refuses in its place.
    server.fault("/s/log/00000102.json", Fault::Status(1, 403, "<Error><Code>AccessDenied</Code></Error>"));
    gives(&read(), "run\na\nb\n");
    server.put("/s/log/last.json", r#"{"tq store":2,"commit":900,"checkpoint":850}"#);
    assert!(
        read().stderr.contains("http://HOST/s/log/00000850.checkpoint.json: there is no such file"),
        "{}",
        read().stderr
    );
    for other in ["<html>", r#"{"tq store":2,"commit":99999999999,"checkpoint":0}"#] {
        server.put("/s/log/last.json", other);
        fails(
            &read(),
            "error: http://HOST/s: there is no such file (404 Not Found: NoSuchKey)\nhint: a store is found by its `log/last.json`\n",
        );
    }
    assert!(
        place
            .tq_at(&server, "runs http://HOST/none", &[])
            .stderr
            .starts_with("error: http://HOST/none: it is no store: it has no `log/last.json`\n")
    );
}

#[test]
fn a_store_behind_a_url_is_damaged_or_out_of_reach() {
    let (place, server) = (Place::new(), Server::new());
    store(&place, &server, "/s");
    let tasks = walk(&place.0.path().join("runs.store/runs"))
        .into_iter()
        .find(|file| file.ends_with("tasks-000.parquet"))
        .unwrap();
    let name = format!("/s/runs/{}", tasks.strip_prefix(place.0.path().join("runs.store/runs")).unwrap().display());
    let bytes = std::fs::read(&tasks).unwrap();
    let read = || place.tq_at(&server, "query http://HOST/s -c 'SELECT sum(duration) FROM tasks'", &[]);
    let mut flipped = bytes.clone();
    flipped[7] ^= 1;
    server.put(&name, flipped);
    assert!(
        read().stderr.starts_with(&format!(
            "error: http://HOST{name}: damaged: the checksum of the 256 KiB from byte 0 does not fit\n"
        )),
        "{}",
        read().stderr
    );
    server.put(&name, &bytes[1..]);
    assert!(
        read().stderr.contains(&format!(
            "{name}: damaged: it has {} bytes instead of {}",
            bytes.len() - 1,
            bytes.len()
        )),
        "{}",
        read().stderr
    );
    server.put(&name, bytes);
    server.fault(&name, Fault::Status(9, 500, ""));
    assert!(
        read().stderr.starts_with(&format!("error: http://HOST{name}: cannot read it: 500 Internal Server Error\n")),
        "{}",
        read().stderr
    );
    server.fault(&name, Fault::Cut(1));
    assert_eq!(read().status, Some(0));
    server.fault(&name, Fault::Plain);
    fails(&read(), &format!("error: http://HOST{name}: the server gives no ranges of a file, which a store needs\n"));
}

/// Two stores are the same when all of their answers are; `RUNS` and the tasks stand for them.
#[test]
fn stores_are_written_to_buckets() {
    let (place, server) = (Place::new(), Server::new());
    let tq = |arguments: &str| place.tq_at(&server, arguments, &KEYS);
    gives(
        &tq("import night/1=run.json night/2=run.json --into s3://b/runs.store"),
        "2 runs imported into s3://b/runs.store\n",
    );
    gives(&tq("import day=run.json --into s3://b/runs.store"), "1 run imported into s3://b/runs.store\n");
    gives(&tq(&format!("query s3://b/runs.store {RUNS}")), THREE_RUNS);
    fails(
        &tq("import day=run.json --into s3://b/runs.store"),
        "error: s3://b/runs.store: the store has a run `day` already\n\
         hint: give it another name, `NAME=TRACE`, or `--replace` it; `tq runs s3://b/runs.store` lists all\n",
    );
    gives(
        &tq("import day=run.json --into s3://b/runs.store --replace"),
        "1 run imported into s3://b/runs.store, 1 run replaced\n",
    );
    gives(&tq("remove s3://b/runs.store night"), "night/1\nnight/2\n2 runs removed; `tq gc` deletes the files\n");
    gives(&tq("query s3://b/runs.store -c 'SELECT run FROM runs'"), "run\nday\n");
    // Files of readers at work and of imports at work stay.
    let leftover = "/b/runs.store/runs/abcdefGHIJ012345/tasks-000.parquet";
    server.put(leftover, "x");
    server.put("/b/runs.store/runs/notes.txt", "mine");
    let files = || server.names("/b/runs.store/runs/").len();
    let before = files();
    gives(&tq("gc s3://b/runs.store --older-than 720000h"), "0 files deleted, 0 bytes\n");
    assert_eq!(files(), before);
    // The server says that all is of the first of January.
    gives(&tq("gc s3://b/runs.store"), "1 file deleted, 1 bytes\n");
    assert_eq!(tq("gc s3://b/runs.store --older-than 0s").status, Some(0));
    assert_eq!(server.names("/b/runs.store/runs/").iter().filter(|name| name.ends_with(".txt")).count(), 1);
    gives(&tq(&format!("query s3://b/runs.store {COUNT}")), THREE);
    let views = server.object("/b/runs.store/views.sql");
    assert!(views.contains("read_parquet(['s3://b/runs.store/runs/"), "{views}");
    for run in ["x", "y"] {
        tq(&format!("import {run}=run.json --into s3://b/runs.store"));
    }
    gives(&tq("compact s3://b/runs.store"), "3 runs moved into common files; `tq gc` deletes the old ones\n");
    tq("gc s3://b/runs.store --older-than 0s");
    gives(
        &tq("query s3://b/runs.store -c 'SELECT run, count(*) AS n FROM tasks GROUP BY run ORDER BY run'"),
        "run,n\nday,3\nx,3\ny,3\n",
    );
    fails(
        &tq("import a=run.json --into http://HOST/b/runs.store"),
        "error: http://HOST/b/runs.store: stores of web servers are only read\nhint: `s3://`, `gs://` and `az://` are written, too\n",
    );
    // A commit that the service refuses leaves nothing that is seen; what was sent is for `gc`.
    let before = files();
    server.fault("/b/runs.store/log/00000008.json", Fault::Status(3, 403, "<Error><Code>AccessDenied</Code></Error>"));
    let answer = tq("import z=run.json --into s3://b/runs.store");
    let refused = "error: s3://b/runs.store/log/00000008.json: cannot write it: the server refuses it (403 Forbidden: AccessDenied)\n";
    assert!(answer.status == Some(2) && answer.stderr.starts_with(refused) && files() > before, "{}", answer.stderr);
    tq("gc s3://b/runs.store --older-than 0s");
    assert_eq!(files(), before);
}

#[test]
fn writers_at_once_get_numbers_of_their_own_behind_a_url() {
    let (place, server) = (Place::new(), Server::new());
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let server = &server;
            scope.spawn(move || {
                let other = Place::new();
                for turn in 0..3 {
                    let answer =
                        other.tq_at(server, &format!("import {writer}/{turn}=run.json --into s3://b/s"), &KEYS);
                    assert_eq!(answer.status, Some(0), "{}", answer.stderr);
                }
                let seen = other.tq_at(server, "query s3://b/s -c 'SELECT count(*) >= 3 AS ok FROM runs'", &KEYS);
                gives(&seen, "ok\ntrue\n");
            });
        }
    });
    let sql = "-c 'SELECT count(DISTINCT run) AS runs, count(*) AS tasks FROM tasks'";
    gives(&place.tq_at(&server, &format!("query s3://b/s {sql}"), &KEYS), "runs,tasks\n9,27\n");
    let commits = server.names("/b/s/log/0");
    assert_eq!(commits.len(), 9, "{commits:?}");
    // One name, one winner.
    let won: usize = std::thread::scope(|scope| {
        let import = || {
            let other = Place::new();
            usize::from(other.tq_at(&server, "import same=run.json --into s3://b/s", &KEYS).status == Some(0))
        };
        let writers: Vec<_> = (0..3).map(|_| scope.spawn(import)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!((won, server.names("/b/s/log/0").len()), (1, 10));
}
