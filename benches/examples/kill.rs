//! Question: does a store survive `kill -9` at any time?
//!
//! `cargo run --example kill -- [ROUNDS] [SEED] [TQ]`: in each of ROUNDS (200) rounds `tq` imports, replaces, removes, compacts or collects
//! garbage, and is killed at a random time of about the time that this takes. Then the store must be as before or as after, never
//! anything between; what `tq` said that it did must have been done; every row that is left must be readable. TQ is the program, by
//! default the one that was built beside this one. The seed is printed, and the same seed makes the same choices.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tq_benches::random::Random;

/// Tasks of the shortest and of the longest trace: of each run its number of tasks tells which trace it is.
const TASKS: std::ops::Range<i64> = 2000..20_000;
/// Where there are more runs, some are removed.
const RUNS_MAX: usize = 12;

/// Names and numbers of tasks of all runs.
type Runs = BTreeMap<String, i64>;

/// What a round does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Import,
    ImportTwo,
    Replace,
    Remove,
    Compact,
    Collect,
}

/// A store and its program.
struct Place {
    tq: PathBuf,
    folder: PathBuf,
    random: Random,
    seed: u64,
    round: usize,
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(200);
    let now = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let seed = arguments.next().and_then(|seed| seed.parse().ok()).unwrap_or_else(now);
    let own = std::env::current_exe().expect("this program");
    let built = own.ancestors().nth(2).map(|folder| folder.join("tq")).unwrap_or_default();
    let tq = arguments.next().map_or(built, PathBuf::from);
    println!("seed {seed}, {rounds} rounds of {}", tq.display());
    let folder = std::env::temp_dir().join(format!("tq-kill-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder for the store");
    let mut place = Place { tq, folder, random: Random::new(seed), seed, round: 0 };
    let mut runs = Runs::new();
    let mut usual: BTreeMap<Step, Duration> = BTreeMap::new();
    // Of each step: how often it was killed, and how often what it did was there nevertheless.
    let mut killed: BTreeMap<Step, (u32, u32)> = BTreeMap::new();
    place.first(&mut runs);
    while place.round < rounds {
        place.round += 1;
        let step = place.step(&runs);
        let (arguments, after) = place.plan(step, &runs);
        // The last of each kind that came to its end shows how long it takes.
        let within = usual.get(&step).map(|usual| {
            let microseconds = usual.as_micros() as i64 * 5 / 4;
            Duration::from_micros(place.random.between(0, microseconds) as u64)
        });
        let started = Instant::now();
        let is_done = place.run(&arguments, within);
        if is_done {
            usual.insert(step, started.elapsed());
        }
        let found = place.runs();
        let is_there = found == after;
        place.holds(is_there || found == runs, || format!("{step:?}: {runs:?} became {found:?}, not {after:?}"));
        place.holds(is_there || !is_done, || format!("{step:?}: it said that it was done"));
        if within.is_some() && !is_done {
            let (times, there) = killed.entry(step).or_default();
            *times += 1;
            *there += u32::from(is_there && after != runs);
        }
        runs = found;
    }
    place.collect();
    for (step, (times, there)) in &killed {
        println!("{step:?}: killed {times} times, {there} times after its commit");
    }
    println!("every commit was whole; {} runs are left", runs.len());
    std::fs::remove_dir_all(&place.folder).expect("the folder is removed");
}

impl Place {
    /// Panics with what reproduces it.
    #[track_caller]
    fn holds(&self, is_so: bool, what: impl FnOnce() -> String) {
        assert!(is_so, "seed {}, round {}, in {}: {}", self.seed, self.round, self.folder.display(), what());
    }

    /// Makes the store.
    fn first(&mut self, runs: &mut Runs) {
        let (arguments, after) = self.plan(Step::ImportTwo, runs);
        let is_done = self.run(&arguments, None);
        self.holds(is_done, || "there is no store".to_owned());
        *runs = after;
    }

    fn step(&mut self, runs: &Runs) -> Step {
        if runs.len() < 2 {
            return Step::ImportTwo;
        }
        if runs.len() > RUNS_MAX {
            return Step::Remove;
        }
        const STEPS: [Step; 8] = [
            Step::Import,
            Step::Import,
            Step::ImportTwo,
            Step::Replace,
            Step::Replace,
            Step::Remove,
            Step::Compact,
            Step::Collect,
        ];
        STEPS[self.random.between(0, STEPS.len() as i64) as usize]
    }

    /// The arguments of a step, and the runs that there are when it is done.
    fn plan(&mut self, step: Step, runs: &Runs) -> (Vec<String>, Runs) {
        let mut after = runs.clone();
        let store = self.folder.join("runs.store").display().to_string();
        let any = |random: &mut Random| runs.keys().nth(random.between(0, runs.len() as i64) as usize).cloned();
        let mut arguments: Vec<String> = Vec::new();
        match step {
            Step::Import | Step::ImportTwo => {
                arguments.push("import".to_owned());
                for number in 0..=i32::from(step == Step::ImportTwo) {
                    arguments.push(self.trace(&format!("r{}-{number}", self.round), &mut after));
                }
                arguments.extend(["--into".to_owned(), store]);
            }
            Step::Replace => {
                let name = any(&mut self.random).unwrap_or_default();
                arguments.extend(["import".to_owned(), self.trace(&name, &mut after)]);
                arguments.extend(["--replace".to_owned(), "--into".to_owned(), store]);
            }
            Step::Remove => {
                let name = any(&mut self.random).unwrap_or_default();
                after.remove(&name);
                arguments.extend(["remove".to_owned(), store, name]);
            }
            Step::Compact => arguments.extend(["compact".to_owned(), store]),
            Step::Collect => {
                arguments.extend(["gc".to_owned(), store, "--older-than".to_owned(), "0s".to_owned()]);
            }
        }
        (arguments, after)
    }

    /// `name=trace.json`, a trace that is written and entered.
    fn trace(&mut self, name: &str, runs: &mut Runs) -> String {
        let tasks = self.random.between(TASKS.start, TASKS.end);
        runs.insert(name.to_owned(), tasks);
        let mut text = "[".to_owned();
        for task in 0..tasks {
            let comma = if task > 0 { "," } else { "" };
            // Writing into a text does not fail.
            let _ = write!(
                text,
                "{comma}\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{task},\"dur\":1,\"name\":\"n{}\"}}",
                task % 5,
                task % 50
            );
        }
        text.push_str("\n]\n");
        let path = self.folder.join(format!("{name}.json"));
        std::fs::write(&path, text).expect("a trace is written");
        format!("{name}={}", path.display())
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.tq);
        command.args(arguments).current_dir(&self.folder).env("XDG_CONFIG_HOME", &self.folder).stdin(Stdio::null());
        command
    }

    /// Runs `tq` and kills it after that time; whether it said that all is well.
    fn run(&self, arguments: &[String], within: Option<Duration>) -> bool {
        let mut child =
            self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tq is started");
        let started = Instant::now();
        while let Some(left) = within.and_then(|within| within.checked_sub(started.elapsed())) {
            if let Some(status) = child.try_wait().expect("tq is asked") {
                return status.success();
            }
            std::thread::sleep(left.min(Duration::from_millis(2)));
        }
        if within.is_some() {
            child.kill().expect("tq is killed");
        }
        child.wait().expect("tq has ended").success()
    }

    /// All runs, with the tasks that can be read of each.
    fn runs(&self) -> Runs {
        let sql = "SELECT r.run, count(t.name) AS tasks FROM runs r LEFT JOIN tasks t ON t.run = r.run GROUP BY r.run";
        let arguments = ["query", "runs.store", "--format", "csv", "-c", sql].map(str::to_owned);
        let output = self.command(&arguments).output().expect("tq is started");
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = || format!("the store cannot be read: {}", String::from_utf8_lossy(&output.stderr));
        self.holds(output.status.success(), complaint);
        let of_line =
            |line: &str| line.rsplit_once(',').and_then(|(run, tasks)| Some((run.to_owned(), tasks.parse().ok()?)));
        let runs: Option<Runs> = said.lines().skip(1).map(of_line).collect();
        self.holds(runs.is_some(), || format!("an answer that is none: {said}"));
        runs.unwrap_or_default()
    }

    /// Collects garbage, after which nothing is left but what the commits name.
    fn collect(&self) {
        let store = self.folder.join("runs.store");
        let arguments = ["gc", "runs.store", "--older-than", "0s"].map(str::to_owned);
        let is_done = self.run(&arguments, None);
        self.holds(is_done, || "garbage is not collected".to_owned());
        let views = std::fs::read_to_string(store.join("views.sql")).expect("the views of the last commit");
        let files: Vec<PathBuf> = entries(&store.join("runs")).iter().flat_map(|folder| entries(folder)).collect();
        let is_named =
            |path: &PathBuf| path.strip_prefix(&store).is_ok_and(|path| views.contains(&*path.to_string_lossy()));
        let garbage: Vec<&PathBuf> = files.iter().filter(|path| !is_named(path)).collect();
        self.holds(garbage.is_empty() && !files.is_empty(), || {
            format!("of {} files no commit names {garbage:?}", files.len())
        });
    }
}

/// What is in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.path())).collect()
}
