//! Stores on the command line: importing, listing, removing, and imports that are killed.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::process::Stdio;
use std::time::Duration;

use expect_test::expect;

use super::{Place, TRACE};

#[test]
fn a_store_answers_as_its_traces() {
    let place = Place::new();
    place.tq("import night/1=run.json night/2=run.json --into runs.store").check(&expect![[r#"
        2 runs imported into runs.store
        --- exit 0
    "#]]);
    for (trace, store) in [("'night/1=run.json'", "runs.store/night/1"), ("run=run.json", "runs.store/night/2")] {
        let sql = "-c 'SELECT name, location, start, finish, task FROM tasks'";
        let (of_trace, of_store) =
            (place.tq(&format!("query {trace} {sql}")), place.tq(&format!("query {store} {sql}")));
        assert_eq!((of_store.status, &of_store.stdout), (Some(0), &of_trace.stdout), "{}", of_store.stderr);
    }
    place.tq("query runs.store --run 'night/*' -c 'SELECT run, run_number, makespan FROM runs'").check(&expect![[r#"
        run,run_number,makespan
        night/1,0,80000
        night/2,1,80000
        --- exit 0
    "#]]);
    place.tq("query runs.store --from 45us -c 'SELECT run, name FROM tasks'").check(&expect![[r#"
        run,name
        night/1,c
        night/1,b
        night/2,c
        night/2,b
        --- exit 0
    "#]]);
    place.tq("import night/2=run.json --into runs.store").check(&expect![[r#"
        --- stderr
        error: runs.store: the store has a run `night/2` already
        hint: give it another name, `NAME=TRACE`, or `--replace` it; `tq runs runs.store` lists all
        --- exit 2
    "#]]);
    place.tq("import night/2=run.json --into runs.store --replace").check(&expect![[r#"
        1 run imported into runs.store, 1 run replaced
        --- exit 0
    "#]]);
    place.tq("import run.json --from 1us --into runs.store").check(&expect![[r#"
        --- stderr
        error: a store holds whole traces: `tq import` takes no --from and --to
        hint: give them when you ask: `tq query STORE --from 2ms --to 3ms …`
        --- exit 2
    "#]]);
    place.tq("query runs.store --option table=tasks -c 'SELECT 1'").check(&expect![[r#"
        --- stderr
        error: `--option table` says how traces are read, and those of `runs.store` are read already
        hint: give it to `tq import`
        --- exit 2
    "#]]);
    place.tq("query runs.store --from-format chrome -c 'SELECT 1'").check(&expect![[r#"
        --- stderr
        error: `--from-format chrome` says how traces are read, and those of `runs.store` are read already
        hint: give it to `tq import`
        --- exit 2
    "#]]);
    place.tq("query run.json --run x -c 'SELECT 1'").check(&expect![[r#"
        --- stderr
        error: `--run` chooses runs of a store, and none is opened
        hint: `tq query STORE --run 'night/*' …`
        --- exit 2
    "#]]);
    place.tq("query runs.store/nigth -c 'SELECT 1'").check(&expect![[r#"
        --- stderr
        error: runs.store: the store has no run `nigth`
        hint: `tq runs runs.store` lists its runs
        --- exit 2
    "#]]);
    place.tq("check runs.store/night/2 --baseline runs.store/night/1").check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.tq("remove runs.store night/2").check(&expect![[r#"
        night/2
        1 run removed; `tq gc` deletes the files
        --- exit 0
    "#]]);
    let listed = place.tq("runs runs.store --format json");
    assert!(listed.stdout.contains(r#""run":"night/1","format":"tfprof","tasks":3"#), "{}", listed.stdout);
    // Nor does a command that does not read it.
    for command in ["runs runs.store --format csv", "query run.json -c 'SELECT 1'"] {
        let answer = place.tq(&format!("{command} -o runs.store/log/00000001.json"));
        let said = answer.stderr.starts_with("error: -o `runs.store/log/00000001.json` lies in the store `");
        assert!(said && answer.status == Some(2), "{command}: {}", answer.stderr);
    }
    let answer = place.tq("gc runs.store --older-than 0s");
    assert!(answer.status == Some(0) && !answer.stdout.starts_with("0 files"), "{}{}", answer.stdout, answer.stderr);
    // A run of a store is compared as its file is, and one in a folder is asked for itself.
    let of_files = place.tq("diff run.json run.json");
    let of_runs = place.tq("diff runs.store/night/1 runs.store/night/1");
    let below_names = |answer: &str| answer.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((of_runs.status, below_names(&of_runs.stdout)), (Some(0), below_names(&of_files.stdout)));
    assert!(of_runs.stdout.contains("makespan"), "{}", of_runs.stdout);
    place.tq("diff runs.store/night/1 'runs.store/night/1*'").check(&expect![[r#"
        --- stderr
        error: `runs.store/night/1*` holds runs, of which `night/1` is one today
        hint: `tq diff` takes the run itself: a file, or `STORE/night/1`
        --- exit 2
    "#]]);
    place.tq("import run.json --into runs.store/log/other").check(&expect![[r#"
        --- stderr
        error: runs.store/log/other: it would lie in the store `runs.store`
        hint: name a folder beside it
        --- exit 2
    "#]]);
    place.tq("runs run.json").check(&expect![[r#"
        --- stderr
        error: run.json: it is no store: it has no folder `log` with commits
        hint: `tq import TRACE… --into STORE` makes one
        --- exit 2
    "#]]);
}

#[test]
fn an_import_says_how_much_memory_it_takes() {
    let place = Place::new();
    for (command, expected) in [
        ("import", "rows wait on disk beyond a quarter of it [default: 2GB, at most three quarters of the machine's]"),
        ("query", "Memory for tables and queries, e.g. `8GB` [default: three quarters of the machine's]"),
    ] {
        let help = place.tq(&format!("{command} --help")).stdout;
        let words: Vec<&str> = help.split_whitespace().collect();
        assert!(words.join(" ").contains(expected), "{help}");
    }
}

/// Numbers that differ from run to run.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[test]
fn an_import_that_is_killed_loses_nothing_and_shows_nothing_of_itself() {
    let place = Place::new();
    place.tq("import first=run.json --into runs.store");
    let started = std::time::Instant::now();
    place.tq("import second=run.json --into runs.store");
    let usual = started.elapsed().as_micros() as u64 * 5 / 4;
    let seed = random();
    println!("seed {seed}");
    let mut state = seed;
    let mut there = vec!["first".to_owned(), "second".to_owned()];
    for round in 0..20 {
        // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let name = format!("r{round}");
        let arguments = ["import", &format!("{name}=run.json"), "--into", "runs.store"];
        let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(state % usual));
        child.kill().unwrap();
        let ended_well = child.wait().unwrap().success();
        let answer = place.tq("query runs.store -c 'SELECT r.run, count(t.task) AS tasks FROM runs r LEFT JOIN tasks t ON t.run = r.run GROUP BY r.run, r.run_number ORDER BY r.run_number'");
        assert_eq!(answer.status, Some(0), "seed {seed}, round {round}: {}", answer.stderr);
        let runs: Vec<&str> = answer.stdout.lines().skip(1).collect();
        assert!(runs.iter().all(|run| run.ends_with(",3")), "seed {seed}, round {round}: {runs:?}");
        let is_there = runs.iter().any(|run| run.starts_with(&format!("{name},")));
        assert!(is_there || !ended_well, "seed {seed}, round {round}: it said that it was imported");
        there.extend(is_there.then_some(name));
        let expected: Vec<String> = there.iter().map(|name| format!("{name},3")).collect();
        assert_eq!(runs, expected, "seed {seed}, round {round}");
    }
    assert_eq!(place.tq("gc runs.store --older-than 0s").status, Some(0));
    let folders = std::fs::read_dir(place.0.path().join("runs.store/runs")).unwrap().count();
    assert_eq!(folders, there.len(), "seed {seed}: gc leaves what the commits name");
    assert_eq!(place.tq("query runs.store -c 'SELECT count(*) FROM tasks'").status, Some(0));
}

#[test]
fn a_cache_is_used_where_it_is_wanted() {
    let place = Place::new();
    let cache = place.0.path().join("cache/tq/traces");
    let entries = || std::fs::read_dir(&cache).map_or(0, Iterator::count);
    let answer = |arguments: &str| {
        let answer = place.tq(&format!("query {arguments} run.json -c 'SELECT name, start FROM tasks'"));
        assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""), "{arguments}");
        answer.stdout
    };
    let expected = answer("");
    assert_eq!(entries(), 0);
    for arguments in ["--cache", "--cache", "--cache=yes"] {
        assert_eq!((answer(arguments), entries()), (expected.clone(), 1));
    }
    place.write("config/tq/config.toml", "cache = true\ncache-size = \"1MB\"\n");
    assert_eq!((answer("--cache=no"), entries()), (expected.clone(), 1));
    assert_eq!(answer("--from-format tfprof"), expected);
    assert_eq!(entries(), 2, "what is read in another way is kept beside it");
    // A cache that cannot be written does not matter.
    std::fs::remove_dir_all(place.0.path().join("cache")).unwrap();
    place.write("cache", "a file");
    let refused = place.tq("query --cache run.json -c 'SELECT name, start FROM tasks'");
    assert_eq!((refused.status, &refused.stdout), (Some(0), &expected));
    assert!(refused.stderr.contains("note: the trace is not kept in the cache"), "{}", refused.stderr);
    let mistake = place.tq("query --cache=maybe run.json -c 'SELECT 1'");
    assert!(
        mistake.status == Some(2) && mistake.stderr.contains("write `--cache` or `--cache=no`"),
        "{}",
        mistake.stderr
    );
}

/// Runs a script that may mount file systems; `None` where the user may not.
fn with_mounts(place: &Place, script: &str) -> Option<std::process::Output> {
    let unshared = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command
            .args(["-rm", "sh", "-c", script])
            .current_dir(place.0.path())
            .env("TQ", env!("CARGO_BIN_EXE_tq"))
            .output()
    };
    let may = unshared("mkdir -p mounted && mount -t tmpfs -o size=64k tmpfs mounted");
    may.is_ok_and(|output| output.status.success()).then(|| unshared(script).unwrap())
}

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn skip() {
    eprintln!("skipped: this user may not mount file systems");
}

/// A trace whose store is larger than a small disk.
fn large_trace(place: &Place) {
    let noise = |task: u64| {
        format!(
            "{:016x}{:016x}",
            task.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            (task + 7).wrapping_mul(0xD134_2543_DE82_EF95)
        )
    };
    let event = |task: u64| {
        format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":{task},"dur":1,"name":"a","args":{{"i":"{}"}}}}"#, noise(task))
    };
    let events: Vec<String> = (0..40_000).map(event).collect();
    place.write("large.json", &format!("[{}]", events.join(",\n")));
}

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let place = Place::new();
    large_trace(&place);
    let script = "mount -t tmpfs -o size=600k tmpfs mounted && $TQ import first=run.json --into mounted/store && \
        find mounted -type f | sort > before; $TQ import large.json --into mounted/store; echo exit $?; \
        find mounted -type f | sort > after; cmp before after && echo same; \
        $TQ runs mounted/store --format csv | cut -d, -f1; $TQ query mounted/store -c 'SELECT count(*) AS n FROM tasks'; \
        XDG_CACHE_HOME=$PWD/mounted/cache $TQ query --cache large.json -c 'SELECT count(*) AS n FROM tasks'; ls -A mounted/cache/tq/traces";
    let Some(output) = with_mounts(&place, script) else { return skip() };
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(stdout, "1 run imported into mounted/store\nexit 2\nsame\nrun\nfirst\nn\n3\nn\n40000\n", "{stderr}");
    assert_eq!(stderr.matches("the disk is full").count(), 2, "{stderr}");
}

#[test]
fn a_store_that_cannot_be_written_is_read() {
    let place = Place::new();
    place.tq("import first=run.json --into store");
    let script = "mount --bind store mounted && mount -o remount,bind,ro mounted && \
        $TQ query mounted -c 'SELECT count(*) AS n FROM tasks'; $TQ import second=run.json --into mounted; echo exit $?; \
        $TQ remove mounted first; echo exit $?; $TQ gc mounted --older-than 0s; echo exit $?";
    let Some(output) = with_mounts(&place, script) else { return skip() };
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(stdout.starts_with("n\n3\nexit 2\nexit 2\n"), "{stdout}{stderr}");
    assert!(stderr.matches("the file system is read-only").count() >= 2, "{stderr}");
    assert_eq!(place.tq("query store -c 'SELECT count(*) FROM tasks'").status, Some(0));
}

/// Runs that a pattern chooses from a store are explained as traces are, and the other side need not be a store.
#[test]
fn runs_of_a_store_are_explained() {
    let place = Place::new();
    place.write("makespan.sql", "-- metric makespan: better=lower, tolerance=5%\nSELECT run, makespan FROM runs");
    for (name, by) in [("day", 0), ("night", 40), ("later", 44)] {
        // `b` takes so many microseconds longer.
        place.write(&format!("{name}.json"), &TRACE.replace("[20,80]", &format!("[20,{}]", 80 + by)));
    }
    place.tq("import day=day.json night/1=night.json night/2=later.json --into runs.store");
    place.tq("check runs.store --run night/* --query makespan.sql --baseline run.json").check(&expect![[r#"
        FAILED makespan: metric makespan: 80.0 µs → 122 µs (+52.5 %), tolerance 5%; 1 against 2 runs: the tolerance alone decides
                     base │    new │  change │ change_percent
                 ─────────┼────────┼─────────┼────────────────
                  80.0 µs │ 122 µs │ 42.0 µs │           52.5
                 what changed, the makespan by the work and the waits that it is made of (base=run.json, new=runs.store/night/1; `tq report base=run.json new=runs.store/night/1` tells more):
                  what    │ base_time │ new_time │ change_time
                 ─────────┼───────────┼──────────┼─────────────
                  b: work │   60.0 µs │   100 µs │     40.0 µs
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W1    │   60.0 µs │   100 µs │     40.0 µs │           66.7
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  b    │ median  │   60.0 µs │   100 µs │     40.0 µs
        1 check: 1 failed
        --- exit 1
    "#]]);
    // A pattern behind the name of the store.
    place.tq("check run.json --query makespan.sql --baseline runs.store/night/*").check(&expect![[r#"
        ok     makespan: metric makespan (changed -34.4 %; 2 against 1 run: the tolerance alone decides)
        1 check: 1 held
        --- exit 0
    "#]]);
    place.tq("check night.json --query makespan.sql --run day --baseline runs.store").check(&expect![[r#"
        FAILED makespan: metric makespan: 80.0 µs → 120 µs (+50.0 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │    new │  change │ change_percent
                 ─────────┼────────┼─────────┼────────────────
                  80.0 µs │ 120 µs │ 40.0 µs │           50.0
                 what changed, the makespan by the work and the waits that it is made of (base=runs.store/day, new=night.json; `tq report base=runs.store/day new=night.json` tells more):
                  what    │ base_time │ new_time │ change_time
                 ─────────┼───────────┼──────────┼─────────────
                  b: work │   60.0 µs │   100 µs │     40.0 µs
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W1    │   60.0 µs │   100 µs │     40.0 µs │           66.7
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  b    │ median  │   60.0 µs │   100 µs │     40.0 µs
        1 check: 1 failed
        --- exit 1
    "#]]);
}
