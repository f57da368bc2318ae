//! Traces that grow in one dimension: tasks, messages, names or locations.
//!
//! ```text
//! graph     two runs, base and new: lanes of spans with one nested in every second, a dependency from the row before last
//! gpu       a thread that calls, streams that run what it launched, ranges around sixteen calls each
//! requests  components that serve requests of each other, with what they wait for
//! study     executions of a program on 1 to 8 cores, whose regions are its tasks
//! ```

use tq_engine::cells::Cells;
use tq_engine::cells::kind::Word;
use tq_engine::error::ImportError;
use tq_engine::{NamedRun, RunBuilder, tables};

use crate::random::Random;

/// What a trace is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tasks with dependencies, messages, counters and events.
    Graph,
    /// A host and its devices.
    Gpu,
    /// A simulator's components.
    Requests,
    /// A scalability study.
    Study,
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Tasks of all runs.
    pub tasks: usize,
    /// Messages of all runs.
    pub messages: usize,
    /// Names of tasks.
    pub names: usize,
    /// Locations of each run.
    pub locations: usize,
}

/// The runs.
///
/// # Errors
/// None in practice: the builder's memory has no limit.
pub fn grown(kind: Kind, size: Size) -> Result<Vec<NamedRun>, ImportError> {
    let named = |name: &str, run| NamedRun { name: name.to_owned(), format: "grown", run };
    match kind {
        Kind::Graph => {
            let half = Size { tasks: size.tasks / 2, messages: size.messages / 2, ..size };
            Ok(vec![named("base", graph(1, half)?.finish(2)?), named("new", graph(2, half)?.finish(2)?)])
        }
        Kind::Gpu => Ok(vec![named("gpu", gpu(size)?.finish(2)?)]),
        Kind::Requests => Ok(vec![named("requests", requests(size)?.finish(2)?)]),
        Kind::Study => (0..EXECUTIONS).map(|number| Ok(named("study", execution(number, size)?.finish(2)?))).collect(),
    }
}

/// Executions of a study.
const EXECUTIONS: usize = 32;

/// Words from a number each.
fn words(prefix: &str, numbers: impl Iterator<Item = usize>) -> Cells<Word> {
    numbers.map(|number| format!("{prefix}{number}")).collect()
}

fn locations(run: &mut RunBuilder, count: usize, kind: &str) -> Result<(), ImportError> {
    run.append_derived(tables::Locations {
        location: words("L", 0..count),
        kind: kind.into(),
        role: "compute".into(),
        process: words("", (0..count).map(|number| number / 8)),
        sort_index: (0..count as i64).collect(),
        ..Default::default()
    })
}

fn graph(seed: u64, size: Size) -> Result<RunBuilder, ImportError> {
    let (mut random, mut run) = (Random::new(seed), RunBuilder::in_memory("graph"));
    let (tasks, lanes) = (size.tasks, size.locations);
    locations(&mut run, lanes, "pe")?;
    let row = |task: usize| task / lanes;
    let is_inner = |task: usize| row(task) % 2 == 1;
    let from = |task: usize| (row(task) / 2 * 100) as i64 + if is_inner(task) { 5 } else { 0 };
    let lengths: Vec<i64> = (0..tasks).map(|task| random.between(20, if is_inner(task) { 40 } else { 95 })).collect();
    // Inner ones end before the outer one may.
    let length = |task: usize| if is_inner(task) { lengths[task] / 4 } else { lengths[task] };
    let parents = || (0..tasks).map(|task| is_inner(task).then(|| (task - lanes) as i64));
    let names: Vec<usize> = (0..tasks).map(|_| random.between(0, size.names as i64) as usize).collect();
    run.append(tables::Tasks {
        name: words("task_", names.into_iter()),
        location: words("L", (0..tasks).map(|task| task % lanes)),
        kind: "work".into(),
        role: "work".into(),
        start: (0..tasks).map(from).collect(),
        finish: (0..tasks).map(|task| from(task) + length(task)).collect(),
        parent: parents().collect(),
        stack_parent: parents().collect(),
        depth: (0..tasks).map(|task| i64::from(is_inner(task))).collect(),
        ..Default::default()
    })?;
    // From any lane of the row before last.
    let late = (2 * lanes).min(tasks)..tasks;
    let sources: Vec<i64> =
        late.clone().map(|task| (row(task) - 2) as i64 * lanes as i64 + random.between(0, lanes as i64)).collect();
    run.append(tables::Links {
        source: sources.into(),
        target: late.map(|task| task as i64).collect(),
        kind: "dependency".into(),
        ..Default::default()
    })?;
    messages(&mut run, &mut random, size)?;
    let samples = tasks / 16;
    let kinds = ["total", "delta", "level"];
    run.append(tables::Counters {
        location: words("L", (0..samples).map(|sample| sample % lanes)),
        name: (0..samples).map(|sample| ["T_MAIN", "efficiency", "memory"][sample % 3].to_owned()).collect(),
        kind: (0..samples).map(|sample| kinds[sample % 3].to_owned()).collect(),
        time: (0..samples).map(|sample| (sample / lanes * 100) as i64).collect(),
        value: (0..samples).map(|sample| sample as f64).collect(),
        ..Default::default()
    })?;
    run.append(tables::Events {
        location: words("L", (0..samples).map(|event| event % lanes)),
        name: words("event_", (0..samples).map(|event| event % 40)),
        kind: "instant".into(),
        time: (0..samples).map(|event| (event / lanes * 100) as i64).collect(),
        ..Default::default()
    })?;
    Ok(run)
}

fn messages(run: &mut RunBuilder, random: &mut Random, size: Size) -> Result<(), ImportError> {
    let (count, lanes) = (size.messages, size.locations as i64);
    let place = |random: &mut Random| random.between(0, lanes) as usize;
    let sources: Vec<usize> = (0..count).map(|_| place(random)).collect();
    let targets: Vec<usize> = (0..count).map(|_| place(random)).collect();
    let kinds = ["logical", "handled", "local_send", "nonblock_send"];
    let sent = |message: usize| (message / size.locations * 100) as i64;
    run.append(tables::Messages {
        source: words("L", sources.into_iter()),
        target: words("L", targets.into_iter()),
        send_time: (0..count).map(sent).collect(),
        receive_time: (0..count).map(|message| sent(message) + 40).collect(),
        bytes: (0..count).map(|message| 8 + (message % 100) as i64).collect(),
        count: 1_i64.into(),
        kind: (0..count).map(|message| kinds[message % 4].to_owned()).collect(),
        ..Default::default()
    })
}

/// Sixteen calls and their kernels stand in a range: of 33 tasks one is the range, and of the others every second a call.
const GROUP: usize = 33;

fn gpu(size: Size) -> Result<RunBuilder, ImportError> {
    let (mut random, mut run) = (Random::new(3), RunBuilder::in_memory("gpu"));
    let (tasks, streams) = (size.tasks / GROUP * GROUP, size.locations);
    run.append_derived(tables::Locations {
        location: ["host"].into_iter().collect(),
        kind: "thread".into(),
        ..Default::default()
    })?;
    run.append_derived(tables::Locations {
        location: words("L", 0..streams),
        kind: "stream".into(),
        parent: "device".into(),
        ..Default::default()
    })?;
    let place = |task: usize| task % GROUP;
    let is_range = |task: usize| place(task) == 0;
    let is_call = |task: usize| place(task) % 2 == 1;
    let call = |task: usize| (task / GROUP * 16 + place(task).saturating_sub(1) / 2) as i64;
    let names: Vec<i64> = (0..tasks).map(|_| random.between(0, size.names as i64)).collect();
    let of = |task: usize| match (is_range(task), is_call(task)) {
        (true, _) => ("nvtx", format!("range_{}", names[task] % 100)),
        (_, true) => ("cuda_runtime", "cudaLaunchKernel".to_owned()),
        _ => ("kernel", format!("kernel_{}", names[task])),
    };
    let span = |task: usize| match (is_range(task), is_call(task)) {
        (true, _) => (call(task) * 1_000, call(task) * 1_000 + 15_900),
        (_, true) => (call(task) * 1_000 + 50, call(task) * 1_000 + 250),
        _ => (call(task) * 1_000 + 400, call(task) * 1_000 + 1_300),
    };
    let on = |task: usize| call(task) as usize % streams;
    run.append(tables::Tasks {
        name: (0..tasks).map(|task| of(task).1).collect(),
        kind: (0..tasks).map(|task| of(task).0.to_owned()).collect(),
        role: "work".into(),
        location: (0..tasks)
            .map(|task| match is_range(task) || is_call(task) {
                true => "host".to_owned(),
                false => format!("L{}", on(task)),
            })
            .collect(),
        start: (0..tasks).map(|task| span(task).0).collect(),
        finish: (0..tasks).map(|task| span(task).1).collect(),
        depth: (0..tasks).map(|task| i64::from(is_call(task))).collect(),
        stack_parent: (0..tasks).map(|task| is_call(task).then(|| (task - place(task)) as i64)).collect(),
        args: (0..tasks)
            .map(|task| match (is_range(task), is_call(task)) {
                (true, _) => "{}".to_owned(),
                (_, true) => format!("{{\"correlation\":{}}}", call(task)),
                _ => format!("{{\"stream\":{},\"correlation\":{}}}", on(task) + 7, call(task)),
            })
            .collect(),
        ..Default::default()
    })?;
    let calls = || (0..tasks).filter(move |&task| is_call(task));
    let links = |kind: &str, source: Vec<i64>| tables::Links {
        source: source.into(),
        target: calls().map(|task| task as i64 + 1).collect(),
        kind: kind.into(),
        ..Default::default()
    };
    run.append(links("launch", calls().map(|task| task as i64).collect()))?;
    run.append(links("nvtx", calls().map(|task| (task - place(task)) as i64).collect()))?;
    Ok(run)
}

fn requests(size: Size) -> Result<RunBuilder, ImportError> {
    let (mut random, mut run) = (Random::new(4), RunBuilder::in_memory("requests"));
    let (tasks, components) = (size.tasks, size.locations);
    locations(&mut run, components, "component")?;
    // A request goes out from one component and comes in at the next.
    let is_in = |task: usize| task % 2 == 1;
    let on = |task: usize| task / 2 % components;
    let from = |task: usize| (task / 2 / components * 100) as i64 + if is_in(task) { 10 } else { 0 };
    let lengths: Vec<i64> = (0..tasks).map(|_| random.between(20, 200)).collect();
    let names: Vec<usize> = (0..tasks).map(|_| random.between(0, size.names as i64) as usize).collect();
    run.append(tables::Tasks {
        name: words("request_", names.into_iter()),
        kind: (0..tasks).map(|task| if is_in(task) { "req_in" } else { "req_out" }.to_owned()).collect(),
        role: "work".into(),
        location: words("L", (0..tasks).map(|task| (on(task) + usize::from(is_in(task))) % components)),
        start: (0..tasks).map(from).collect(),
        finish: (0..tasks).map(|task| from(task) + lengths[task]).collect(),
        parent: (0..tasks).map(|task| is_in(task).then(|| task as i64 - 1)).collect(),
        ..Default::default()
    })?;
    run.append(tables::Events {
        task: (0..tasks as i64).collect(),
        location: words("L", (0..tasks).map(|task| (on(task) + usize::from(is_in(task))) % components)),
        name: words("bank_", (0..tasks).map(|task| task % 40)),
        kind: "hardware_resource".into(),
        time: (0..tasks).map(|task| from(task) + 5).collect(),
        args: (0..tasks).map(|_| "{\"tag\":\"x\"}".to_owned()).collect(),
    })?;
    Ok(run)
}

fn execution(number: usize, size: Size) -> Result<RunBuilder, ImportError> {
    let mut run = RunBuilder::in_memory("study");
    let (cores, argument) = (1 << (number % 4), number / 4 % 4);
    run.info.cores = Some(cores);
    run.info.argument = Some(format!("{}", 1000 << argument));
    run.info.size_order = Some(argument as i64);
    run.info.repetition = Some((number / 16) as i64);
    run.info.study = Some("study".to_owned());
    let tasks = (size.tasks / EXECUTIONS).max(2);
    let names = size.names.min(tasks - 1).max(1);
    let all = (tasks as i64) * 1_000;
    let name = |task: usize| if task == 0 { String::new() } else { format!("region_{}", task % names) };
    let length = |task: usize| match task {
        0 => all,
        _ => 900 / cores + 10 * argument as i64 + (task % 7) as i64,
    };
    let from = |task: usize| task.saturating_sub(1) as i64 * 1_000;
    run.append(tables::Tasks {
        name: (0..tasks).map(name).collect(),
        kind: "region".into(),
        role: "work".into(),
        location: "L0".into(),
        start: (0..tasks).map(from).collect(),
        finish: (0..tasks).map(|task| from(task) + length(task)).collect(),
        parent: (0..tasks).map(|task| (task > 0).then_some(0)).collect(),
        stack_parent: (0..tasks).map(|task| (task > 0).then_some(0)).collect(),
        depth: (0..tasks).map(|task| i64::from(task > 0)).collect(),
        ..Default::default()
    })?;
    locations(&mut run, 1, "thread")?;
    Ok(run)
}
