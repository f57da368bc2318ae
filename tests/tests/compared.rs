//! Two runs whose difference is planted: what the saved queries of a comparison name as its cause, with the figures that were planted.

use std::fmt::Write;
use std::path::Path;

use tempfile::TempDir;
use tq_engine::{OpenOptions, Session, open::TraceSpec};
use tq_tests::{ask_saved, folder_of, lines, rows};

/// The first lines of the answer of a saved query.
fn answer(session: &Session, query: &str, most: usize) -> Vec<String> {
    lines(&ask_saved(session, query, &[])).into_iter().take(most).collect()
}

/// Two traces as the runs base and new.
fn compared(base: &Path, new: &Path) -> Session {
    let mut options = OpenOptions::new(1 << 30, 2);
    options.traces.extend(
        [("base", base), ("new", new)].map(|(name, path)| TraceSpec { name: Some(name.to_owned()), path: path.into() }),
    );
    Session::open(&options).unwrap()
}

/// A rank of a training with NCCL: in each step the host launches a kernel of `compute` microseconds on stream 7 and the all-reduce, which waits
/// for it, on stream 20, and waits for the device. The all-reduce takes 100 µs from when the last rank came, `last` microseconds after the step began.
fn rank(number: usize, compute: usize, last: usize) -> String {
    let mut events = String::new();
    for step in 0..3 {
        let (at, id) = (10_000 + step * (last + 200), 2 * step);
        let (kernel, reduce) = (id + 1, id + 2);
        let (arrives, ends) = (at + 10 + compute + 2, at + last + 100);
        write!(
            events,
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":{at},"dur":4,"args":{{"correlation":{kernel}}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":{},"dur":3,"args":{{"correlation":{reduce}}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":100,"tid":100,"ts":{},"dur":{},"args":{{}}}},
{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":{compute},"args":{{"device":0,"stream":7,"correlation":{kernel}}}}},
{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":20,"ts":{arrives},"dur":{},"args":{{"device":0,"stream":20,"correlation":{reduce}}}}},
"#,
            at + 5,
            at + 20,
            ends - at - 20,
            at + 10,
            ends - arrives
        )
        .unwrap();
    }
    format!(
        r#"{{"schemaVersion":1,"distributedInfo":{{"rank":{number},"world_size":2}},"traceEvents":[{}]}}"#,
        events.trim_end().trim_end_matches(',')
    )
}

fn ranks(compute: [usize; 2]) -> TempDir {
    let last = 12 + compute[0].max(compute[1]);
    folder_of(&[("rank0.json", rank(0, compute[0], last)), ("rank1.json", rank(1, compute[1], last))])
}

#[test]
fn a_late_rank_is_the_cause_and_not_the_collective_in_which_the_others_wait() {
    let (base, new) = (ranks([1000, 1000]), ranks([1000, 1500]));
    let session = compared(base.path(), new.path());
    // Three steps of 500 µs more, of which the all-reduce takes none.
    let change = rows(&session, "SELECT max(makespan) - min(makespan) FROM runs");
    assert_eq!(change, ["1500000"]);
    assert_eq!(answer(&session, "why-it-changed", 1), ["gemm: work|3000000|4500000|1500000"]);
    assert_eq!(answer(&session, "busy-locations-changed", 9), ["rank 1/0/7|3000000|4500000|1500000|50.0"]);
    // The collectives themselves: rank 0 waited for rank 1, and all took as long as before from then on.
    let waits = "SELECT run, rank, sum(least(last_start, finish) - start), sum(finish - last_start), bool_and(last_task = task) \
         FROM collectives GROUP BY run, rank ORDER BY run, rank";
    assert_eq!(
        rows(&session, waits),
        ["base|0|0|300000|true", "base|1|0|300000|false", "new|0|1500000|300000|false", "new|1|0|300000|true"]
    );
    // The paths are as long as the runs.
    let paths = "SELECT p.run, sum(p.wait + p.running) = max(r.makespan) FROM executed_path((SELECT * FROM path_tasks), (SELECT * FROM path_links)) p \
         JOIN runs r ON r.run = p.run GROUP BY p.run ORDER BY p.run";
    assert_eq!(rows(&session, paths), ["base|true", "new|true"]);
    // What was planted stands on the path of the whole, too: three kernels and three all-reduces, and next to nothing else.
    let parts = lines(&ask_saved(&session, "gpu-critical-path", &[]));
    for planted in ["new|kernels|4500000|3|", "new|communication|300000|"] {
        assert!(parts.iter().any(|part| part.starts_with(planted)), "{parts:?}");
    }
}

/// Tasks of two kinds with a name of their own each, on two workers.
fn tasks(solve: [usize; 2]) -> String {
    let mut text = "name,location,start,finish\n".to_owned();
    for (worker, solve) in solve.into_iter().enumerate() {
        let mut at = 0;
        for step in 0..10 {
            for (name, duration) in [("load", 100), ("solve", solve)] {
                writeln!(text, "{name}_{worker}_{step},worker {worker},{at},{}", at + duration).unwrap();
                at += duration;
            }
        }
    }
    text
}

#[test]
fn names_that_differ_in_numbers_alone_are_compared_as_one() {
    let files = folder_of(&[("base.csv", tasks([300, 300])), ("new.csv", tasks([300, 400]))]);
    let session = compared(&files.path().join("base.csv"), &files.path().join("new.csv"));
    assert_eq!(answer(&session, "why-it-changed", 9), ["solve_*_*: work|3000|4000|1000"]);
    assert_eq!(answer(&session, "busy-time-changed", 9), ["solve_*_*|6000|7000|1000|20|20"]);
    assert_eq!(answer(&session, "busy-locations-changed", 9), ["worker 1|4000|5000|1000|25.0"]);
    assert_eq!(answer(&session, "what-changed", 9)[2], "work in solve_*_*|6000|7000|20|20|1000|16.7");
}

#[test]
fn names_of_one_family_and_names_that_occur_often_stay_as_they_are() {
    let names = |text: &str| {
        let files = folder_of(&[("t.csv", text)]);
        rows(
            &tq_tests::open(&files.path().join("t.csv")),
            "SELECT DISTINCT family FROM name_families ORDER BY family LIMIT 3",
        )
    };
    let of = |names: &[&str]| -> String {
        let lines = names.iter().enumerate().map(|(at, name)| format!("{name},w,{at},{}\n", at + 1));
        "name,location,start,finish\n".to_owned() + &lines.collect::<String>()
    };
    // A wavefront: one family says nothing.
    assert_eq!(names(&of(&["B_0_0", "B_0_1", "B_1_0", "B_1_1"])), ["B_0_0", "B_0_1", "B_1_0"]);
    // Kernels whose sizes stand in their names, each of them often.
    assert_eq!(names(&of(&["gemm_128", "gemm_64", "gemm_128", "gemm_64", "relu"])), ["gemm_128", "gemm_64", "relu"]);
    // Two families of four.
    assert_eq!(names(&of(&["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"])), ["a*", "b*"]);
}

/// MPI ranks that work and meet in a collective five times; rank 2 works `late` microseconds longer. The first of all is a barrier.
fn mpi(late: usize) -> String {
    let mut text = "name,location,start,finish\n".to_owned();
    let step = 100 + late;
    for rank in 0..4 {
        // Rank 0 waits from the beginning of the run.
        writeln!(text, "MPI_Barrier,rank {rank},{},50", if rank == 0 { 0 } else { 40 }).unwrap();
        for number in 0..5 {
            let (at, work) = (50 + number * step, if rank == 2 { 80 + late } else { 80 });
            writeln!(text, "work,rank {rank},{at},{}", at + work).unwrap();
            writeln!(text, "MPI_Allreduce,rank {rank},{},{}", at + work, at + step).unwrap();
        }
    }
    text
}

#[test]
fn ranks_that_meet_at_one_tick_are_compared_with_ranks_that_do_not() {
    let mapping = "start = 'start:us'\nfinish = 'finish:us'\nlocation_kind = 'rank'\n".to_owned();
    let files = [
        ("base.csv", mpi(0)),
        ("new.csv", mpi(100)),
        ("base.csv.tq.toml", mapping.clone()),
        ("new.csv.tq.toml", mapping),
    ];
    let files = folder_of(&files);
    let session = compared(&files.path().join("base.csv"), &files.path().join("new.csv"));
    assert_eq!(rows(&session, "SELECT makespan FROM runs ORDER BY run"), ["550000", "1050000"]);
    assert_eq!(answer(&session, "why-it-changed", 9), ["work: work|400000|900000|500000"]);
    assert_eq!(answer(&session, "task-times-changed", 9), ["work on rank 2|median|80000|180000|500000"]);
    assert_eq!(answer(&session, "busy-locations-changed", 1), ["rank 2|510000|1010000|500000|98.0"]);
    let said = |query: &str| answer(&session, query, 1).concat();
    assert!(
        said("facts-what-changed").contains("the work that grew most is work, by 500 µs"),
        "{}",
        said("facts-what-changed")
    );
    assert!(
        said("facts-which-changed").ends_with("work on rank 2, 180 µs in the median instead of 80.0 µs."),
        "{}",
        said("facts-which-changed")
    );
    // The wait before the barrier is part of the run.
    let paths = "SELECT run, sum(wait + running) FROM executed_path((SELECT * FROM path_tasks), (SELECT * FROM path_links)) GROUP BY run ORDER BY run";
    assert_eq!(rows(&session, paths), ["base|550000", "new|1050000"]);
    let late = lines(&ask_saved(&session, "facts-collectives", &[]));
    assert!(late[0].contains("of which 500 µs for rank 2, the last one in 5"), "{late:?}");
    // Ranks that hold nothing else are what works.
    assert_eq!(rows(&session, "SELECT count(*) FROM working_lanes"), ["8"]);
}

/// Ten tasks on each of four workers; `of` is the duration of the number-th task of a worker.
fn workers(of: impl Fn(usize, usize) -> usize) -> String {
    workers_with(10, of)
}

fn workers_with(tasks: usize, of: impl Fn(usize, usize) -> usize) -> String {
    let mut text = "name,location,start,finish\n".to_owned();
    for worker in 0..4 {
        let mut at = 0;
        for number in 0..tasks {
            let finish = at + of(worker, number);
            writeln!(text, "tile,worker {worker},{at},{finish}").unwrap();
            at = finish;
        }
    }
    text
}

/// The answer of `query` on a base of even tasks and on `new`.
fn told(new: String, query: &str) -> Vec<String> {
    let files = folder_of(&[("base.csv", workers(|_, _| 100)), ("new.csv", new)]);
    answer(&compared(&files.path().join("base.csv"), &files.path().join("new.csv")), query, 9)
}

#[test]
fn all_tasks_of_a_name_those_of_a_location_and_few_are_told_apart() {
    let of = |new| told(new, "task-times-changed");
    assert_eq!(of(workers(|_, _| 100)), [""; 0]);
    assert_eq!(of(workers(|_, _| 150)), ["tile|median|100|150|2000"]);
    assert_eq!(of(workers(|_, _| 50)), ["tile|median|100|50|-2000"]);
    assert_eq!(of(workers(|worker, _| if worker == 2 { 200 } else { 100 })), ["tile on worker 2|median|100|200|1000"]);
    assert_eq!(
        of(workers(|_, number| if number == 3 { 300 } else { 100 })),
        ["tile: 4 of its 40 tasks|longest|100|300|800"]
    );
    // Each task in halves, which take 5 µs more.
    assert_eq!(of(workers_with(20, |_, _| 55)), ["tile: 40 tasks became 80|sum|4000|4400|400"]);
    // A tenth more is no change.
    assert_eq!(of(workers(|worker, _| if worker == 2 { 110 } else { 100 })), [""; 0]);
}

#[test]
fn work_that_only_stands_in_a_row_is_not_said_to_have_grown() {
    // The same forty tasks, on one worker.
    let mut pinned = "name,location,start,finish\n".to_owned();
    (0..40).for_each(|at| writeln!(pinned, "tile,worker 0,{},{}", 100 * at, 100 * at + 100).unwrap());
    assert_eq!(told(pinned, "why-it-changed"), ["tile: same work, more in a row|1000|4000|3000"]);
    assert_eq!(told(workers(|_, _| 200), "why-it-changed"), ["tile: work|1000|2000|1000"]);
}

#[test]
fn tasks_without_a_kind_or_role_are_useful() {
    for roles in [["work", "work"], ["", ""]] {
        let [first, second] = roles;
        let text = format!("name,location,role,start,finish\na,rank 0,{first},0,100\nb,rank 1,{second},0,50\n");
        let files = folder_of(&[("t.csv", text)]);
        let session = tq_tests::open(&files.path().join("t.csv"));
        assert_eq!(
            lines(&ask_saved(&session, "pop-efficiency", &[])),
            ["t|parallel efficiency|0.75|2", "t|load balance|0.75|2", "t|communication efficiency|1.0|2"]
        );
    }
}
