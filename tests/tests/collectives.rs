//! Collectives: which tasks of ranks are one, and how long each waits in it for the last one; and what calls leave of the work.

use std::fmt::Write;

use tq_engine::Session;
use tq_tests::{ask_saved, folder_of, lines, options, rows};

/// The session of a table with these lines, whole or cut.
fn table(text: &str, slice: Option<(&str, &str)>) -> Session {
    let files = folder_of(&[("t.csv", format!("start_ns,finish_ns,name,location\n{text}"))]);
    let mut options = options(&files.path().join("t.csv"));
    if let Some((from, to)) = slice {
        options.from = Some(from.parse().unwrap());
        options.to = Some(to.parse().unwrap());
    }
    Session::open(&options).unwrap()
}

const WORK: &str = "SELECT name, work_time FROM work_by_name ORDER BY name";

#[test]
fn a_collective_that_one_rank_lacks_makes_no_rank_late() {
    let mut text = "name,location,start,finish\n".to_owned();
    for (rank, numbers) in [(0, vec![0, 1, 2, 3]), (1, vec![0, 2, 3])] {
        for number in numbers {
            let at = 100 * number;
            writeln!(text, "work,rank {rank},{at},{}\nMPI_Allreduce,rank {rank},{},{}", at + 80, at + 80, at + 100)
                .unwrap();
        }
    }
    let files = folder_of(&[("t.csv", text)]);
    let session = tq_tests::open(&files.path().join("t.csv"));
    assert_eq!(
        rows(&session, "SELECT rank, start, last_start FROM collectives ORDER BY rank"),
        ["rank 0|80|80", "rank 1|80|80"]
    );
}

/// Three barriers; rank 1 comes 90 later each time.
const LATE: &str = "0,110,MPI_Barrier,r0\n0,100,work,r1\n100,120,MPI_Barrier,r1\n110,220,MPI_Barrier,r0\n120,210,work,r1\n210,230,MPI_Barrier,r1\n\
                    220,320,MPI_Barrier,r0\n230,310,work,r1\n310,330,MPI_Barrier,r1\n";

#[test]
fn a_slice_names_the_rank_that_waits() {
    let whole = "SELECT rank, sum(wait_time) FROM collectives GROUP BY rank ORDER BY rank";
    assert_eq!(rows(&table(LATE, None), whole), ["r0|290", "r1|0"]);
    // The first barrier of rank 0 in the slice is its second one, that of rank 1 the rest of its first.
    let cut = table(LATE, Some(("115ns", "305ns")));
    assert_eq!(rows(&cut, "SELECT start, wait_time FROM collectives ORDER BY start, task"), ["115|95", "210|0"]);
    let late = lines(&ask_saved(&cut, "facts-collectives", &[])).concat();
    assert!(late.contains("rank r0 longest, 95 ns in 1 collective"), "{late}");
    // A call that began within the slice is none's rest, however early its rank was done with it.
    let early = "0,5,MPI_Barrier,r0\n0,5,MPI_Barrier,r1\n20,30,MPI_Barrier,r0\n25,95,MPI_Barrier,r1\n90,98,MPI_Barrier,r0\n97,120,MPI_Barrier,r1\n";
    let waits = "SELECT start, wait_time FROM collectives ORDER BY start";
    assert_eq!(rows(&table(early, Some(("10ns", "200ns"))), waits), ["20|5", "25|0", "90|7", "97|0"]);
    let cut = table(LATE, Some(("95ns", "400ns")));
    assert_eq!(rows(&cut, "SELECT count(*), sum(wait_time) FROM collectives"), ["6|195"]);
}

#[test]
fn the_order_of_lines_does_not_change_whose_work_it_is() {
    let lines = ["40,50,MPI_Wait,r0\n", "10,90,solve,r0\n", "0,90,main,r0\n"];
    for order in [[0, 1, 2], [2, 1, 0]] {
        let text = order.map(|line: usize| lines[line]).concat();
        assert_eq!(rows(&table(&text, None), WORK), ["main|10", "solve|70"]);
    }
}

#[test]
fn a_rank_that_recorded_one_more_is_not_paired_with_the_next() {
    let text = "0,10,MPI_Barrier,r0\n20,110,MPI_Barrier,r0\n100,110,MPI_Barrier,r1\n120,210,MPI_Barrier,r0\n200,210,MPI_Barrier,r1\n";
    assert_eq!(
        rows(&table(text, None), "SELECT rank, sum(wait_time) FROM collectives GROUP BY rank ORDER BY rank"),
        ["r0|160", "r1|0"]
    );
}

#[test]
fn calls_of_one_clock_that_never_ran_together_are_not_one() {
    let apart = "0,10,MPI_Allreduce,r0\n0,10,MPI_Allreduce,r1\n100,110,MPI_Allreduce,r2\n100,110,MPI_Allreduce,r3\n";
    assert_eq!(rows(&table(apart, None), "SELECT count(*), max(ranks), sum(wait_time) FROM collectives"), ["4|2|0"]);
    let touching = "0,50,MPI_Barrier,r0\n50,50,MPI_Barrier,r1\n";
    assert_eq!(rows(&table(touching, None), "SELECT count(*), sum(wait_time) FROM collectives"), ["2|50"]);
}

#[test]
fn efficiencies_count_what_is_outside_of_calls() {
    let efficiency = |text: &str| lines(&ask_saved(&table(text, None), "pop-efficiency", &[]));
    let whole = "0,100,main,r0\n0,20,compute,r0\n20,100,MPI_Recv,r0\n0,100,main,r1\n0,100,compute,r1\n";
    assert_eq!(
        efficiency(whole),
        ["t|parallel efficiency|0.6|2", "t|load balance|0.6|2", "t|communication efficiency|1.0|2"]
    );
    // A rank that only waits is one of the ranks.
    let idle = "0,100,work,r0\n100,110,MPI_Barrier,r0\n0,110,MPI_Barrier,r1\n";
    assert_eq!(
        efficiency(idle),
        ["t|parallel efficiency|0.4545|2", "t|load balance|0.5|2", "t|communication efficiency|0.9091|2"]
    );
}
