//! Figures of GPU profiles: the saved queries against the answers of Holistic Trace Analysis and TraceLens, value by value, and
//! the plain ones against each other.

use std::collections::HashMap;
use std::path::Path;

use tq_engine::session::Session;
use tq_tests::{ask_saved, cells, fixture, open, shared, text_of};

type Rows = Vec<Vec<String>>;

/// Traces with answers of HTA: the name of the answers, and the trace.
const HTA: [(&str, &str); 8] = [
    ("alexnet", "kineto/alexnet.json.gz"),
    ("event_sync", "kineto/event_sync.json.gz"),
    ("event_sync_ms", "kineto/event_sync_ms.json.gz"),
    ("mi250", "kineto/mi250.json.gz"),
    ("simple_add", "kineto/simple_add.json.gz"),
    ("nccl_data", "kineto/nccl_data.json.zst"),
    ("ns_resolution", "kineto/ns_resolution.json.zst"),
    ("multirank", "multirank"),
];

/// Those columns of an answer.
fn columns(session: &Session, query: &str, wanted: &[&str]) -> Rows {
    columns_given(session, query, &[], wanted)
}

/// Those columns of an answer with those parameters.
fn columns_given(session: &Session, query: &str, given: &[(&str, &str)], wanted: &[&str]) -> Rows {
    let batches = ask_saved(session, query, given);
    let Some(first) = batches.first() else { return Rows::new() };
    let index = |name: &&str| first.schema().index_of(name).unwrap_or_else(|error| panic!("{query}: {error}"));
    let indices: Vec<usize> = wanted.iter().map(index).collect();
    cells(&batches, "").iter().map(|row| indices.iter().map(|index| row[*index].clone()).collect()).collect()
}

/// The rows of a CSV file behind its header.
fn csv(path: &Path) -> Rows {
    tq_tests::csv(&text_of(path).unwrap()).split_off(1)
}

fn number(text: &str) -> f64 {
    if text.is_empty() { f64::NAN } else { text.parse().unwrap_or_else(|_| panic!("`{text}` is no number")) }
}

/// How a column of ours is compared with one of the tool.
#[derive(Clone, Copy)]
enum Compare {
    Text,
    /// Ticks of ours, whole microseconds of theirs.
    Time,
    /// The same, but a double on both sides: relative 1e-9, and the ten digits that stand in the file.
    MeanTime,
    /// A number with this tolerance.
    Number(f64),
}

impl Compare {
    fn is_equal(self, ours: &str, theirs: &str) -> bool {
        let (a, b) = match self {
            Compare::Text => return ours == theirs,
            _ => (number(ours), number(theirs)),
        };
        let near = |a: f64, b: f64, tolerance: f64| (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance;
        match self {
            Compare::Text => false,
            Compare::Time => near(a, b * 1000.0, 0.0),
            Compare::MeanTime => near(a / 1000.0, b, 1e-9 * b.abs() + 5e-10 * b.abs() + 1e-9),
            Compare::Number(tolerance) => near(a, b, tolerance),
        }
    }
}

/// Compares an answer with each trace's file; both are put in the order of their text columns and numbers of kernels.
fn compare(query: &str, answer: &str, shape: &[(&str, usize, Compare)], keys: usize) {
    let (Some(traces), Some(answers)) = (shared("traces/chrome"), shared("expected/hta")) else { return };
    let names: Vec<&str> = shape.iter().map(|column| column.0).collect();
    for (stem, trace) in HTA {
        let mut ours = columns(&open(&traces.join(trace)), query, &names);
        let theirs = csv(&answers.join(format!("{stem}.{answer}.csv")));
        let mut theirs: Rows =
            theirs.iter().map(|row| shape.iter().map(|column| row[column.1].clone()).collect()).collect();
        let key = |row: &Vec<String>| -> Vec<String> { row[..keys].to_vec() };
        ours.sort_by_key(key);
        theirs.sort_by_key(key);
        assert_eq!(ours.len(), theirs.len(), "{query} on {stem}: rows");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let is_equal = shape
                .iter()
                .zip(ours.iter().zip(theirs))
                .all(|(column, (ours, theirs))| column.2.is_equal(ours, theirs));
            assert!(is_equal, "{query} on {stem}: {ours:?}, HTA says {theirs:?}");
        }
    }
}

#[test]
fn temporal_breakdown_equals_hta() {
    use Compare::{Number, Text, Time};
    let shape = [
        ("rank", 0, Text),
        ("idle_time", 1, Time),
        ("compute_time", 2, Time),
        ("non_compute_time", 3, Time),
        ("kernel_time", 4, Time),
        ("idle_percent", 5, Number(0.0101)),
        ("compute_percent", 6, Number(0.0101)),
        ("non_compute_percent", 7, Number(0.0101)),
    ];
    compare("hta-temporal-breakdown", "temporal", &shape, 1);
}

#[test]
fn communication_overlap_equals_hta() {
    let shape = [("rank", 0, Compare::Text), ("overlap_percent", 1, Compare::Number(0.0101))];
    compare("hta-communication-overlap", "comm_comp_overlap", &shape, 1);
}

#[test]
fn idle_breakdown_equals_hta() {
    use Compare::{Number, Text, Time};
    let shape = [
        ("rank", 0, Text),
        ("stream", 1, Text),
        ("idle_category", 2, Text),
        ("idle_time", 3, Time),
        ("idle_share", 4, Number(0.0101)),
    ];
    compare("hta-idle-breakdown", "idle", &shape, 3);
}

/// Answers of HTA 0.5.0 for these two files: the first event stands for the launch of a kernel that has none, if it is a task.
#[test]
fn idle_breakdown_without_launches_equals_hta() {
    let events = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":100,"dur":10},
        {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":5,"args":{"stream":7,"correlation":1}},
        {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":50,"dur":5,"args":{"stream":7,"correlation":2}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":190,"dur":3,"args":{"correlation":3}},
        {"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":200,"dur":5,"args":{"stream":7,"correlation":3}}"#;
    let metadata = r#"{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{"name":"python"}},"#;
    let directory = tempfile::tempdir().unwrap();
    let check = |before: &str, expected: [&str; 2]| {
        let path = directory.path().join("trace.json");
        std::fs::write(&path, format!(r#"{{"schemaVersion":1,"traceEvents":[{before}{events}]}}"#)).unwrap();
        let idle = columns(&open(&path), "hta-idle-breakdown", &["stream", "idle_category", "idle_time", "idle_share"]);
        assert_eq!(idle.iter().map(|row| row.join("|")).collect::<Vec<_>>(), expected);
    };
    check("", ["7|host_wait|180000|1.0", "7|other|0|0.0"]);
    check(metadata, ["7|host_wait|145000|0.81", "7|other|35000|0.19"]);
}

/// The answer of HTA 0.5.0 for this file: the call of a kernel that is the first event counts as one without a kernel.
#[test]
fn queue_length_of_a_kernel_that_comes_first_equals_hta() {
    let call = |at: u32, correlation: u32| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{at},"dur":3,"args":{{"correlation":{correlation}}}}}"#
        )
    };
    let kernel = |at: u32, correlation: u32| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{at},"dur":5,"args":{{"stream":7,"correlation":{correlation}}}}}"#
        )
    };
    let directory = tempfile::tempdir().unwrap();
    let check = |events: &[String], expected: &str| {
        let path = directory.path().join("trace.json");
        std::fs::write(&path, format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(","))).unwrap();
        let shown = ["stream", "changes", "mean_length", "least", "quartile_1", "median_length", "quartile_3", "most"];
        let lengths = columns(&open(&path), "hta-queue-length", &shown);
        assert_eq!(lengths.iter().map(|row| row.join("|")).collect::<Vec<_>>(), [expected]);
    };
    let (calls, later) = ([call(10, 1), call(14, 2), call(20, 3)], [kernel(50, 2), kernel(60, 3)]);
    check(&[&[kernel(30, 1)], &calls[..], &later].concat(), "7|4|1.0|0|0.75|1.0|1.25|2");
    check(&[&calls[..], &[kernel(30, 1)], &later].concat(), "7|6|1.5|0|1.0|1.5|2.0|3");
}

#[test]
fn kernel_types_equal_hta() {
    let shape =
        [("kernel_type", 0, Compare::Text), ("total_time", 1, Compare::Time), ("percent", 2, Compare::Number(0.0501))];
    compare("hta-kernel-types", "kernel_type", &shape, 1);
}

#[test]
fn kernels_equal_hta() {
    use Compare::{MeanTime, Text, Time};
    let shape = [
        ("kernel_type", 6, Text),
        ("name", 0, Text),
        ("rank", 7, Text),
        ("total_time", 1, Time),
        ("longest_time", 2, Time),
        ("shortest_time", 3, Time),
        ("deviation_time", 4, MeanTime),
        ("mean_time", 5, MeanTime),
    ];
    compare("hta-kernels", "kernels", &shape, 3);
}

#[test]
fn launch_statistics_equal_hta() {
    use Compare::{Text, Time};
    let shape = [
        ("rank", 0, Text),
        ("correlation", 1, Text),
        ("host_duration", 2, Time),
        ("device_duration", 3, Time),
        ("launch_delay", 4, Time),
    ];
    compare("hta-launch-statistics", "launch_stats", &shape, 2);
}

#[test]
fn queue_lengths_equal_hta() {
    use Compare::{Number, Text};
    // HTA's sort leaves open which of two changes at the same time comes first.
    let shape = [
        ("rank", 0, Text),
        ("stream", 1, Text),
        ("changes", 2, Text),
        ("mean_length", 3, Number(0.02)),
        ("deviation", 4, Number(0.02)),
        ("least", 5, Number(1.0)),
        ("quartile_1", 6, Number(1.0)),
        ("median_length", 7, Number(1.0)),
        ("quartile_3", 8, Number(1.0)),
        ("most", 9, Number(1.0)),
    ];
    compare("hta-queue-length", "queue_length", &shape, 2);
}

#[test]
fn critical_path_equals_hta() {
    let (Some(traces), Some(answers)) = (shared("traces/chrome"), shared("expected/hta")) else { return };
    // What is not in a file is 0. HTA's times begin at the first span that it keeps, ours where the run does.
    let shape = [
        ("critical_path_time", "critical_length_us"),
        ("cpu_bound_time", "critical_us.cpu_bound"),
        ("gpu_compute_bound_time", "critical_us.gpu_compute_bound"),
        ("gpu_communication_bound_time", "critical_us.gpu_communication_bound"),
        ("kernel_kernel_time", "critical_us.gpu_kernel_kernel_overhead"),
        ("kernel_launch_time", "critical_us.gpu_kernel_launch_overhead"),
    ];
    let wanted: Vec<&str> = shape.iter().map(|part| part.0).chain(["nodes", "first_time", "last_time"]).collect();
    let mut compared = 0;
    for (stem, trace) in HTA {
        let path = answers.join(format!("{stem}.critical_path.csv"));
        if !path.exists() {
            continue;
        }
        let theirs: HashMap<String, String> =
            csv(&path).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let their = |what: &str| theirs.get(what).map_or(0.0, |value| number(value));
        let instance = if theirs["instance"].is_empty() { "0" } else { &theirs["instance"] };
        let given = [("annotation", theirs["annotation"].as_str()), ("instance", instance)];
        let ours = columns_given(&open(&traces.join(trace)), "hta-critical-path", &given, &wanted);
        assert_eq!(ours.len(), 1, "{stem}: one rank");
        let ours: Vec<f64> = ours[0].iter().map(|value| number(value)).collect();
        for (ours, (column, what)) in ours.iter().zip(shape) {
            assert_eq!(*ours, their(what) * 1000.0, "{stem}: {column}");
        }
        assert_eq!(ours[6], their("critical_nodes"), "{stem}: nodes");
        assert_eq!(ours[8] - ours[7], (their("last_node_ts_us") - their("first_node_ts_us")) * 1000.0, "{stem}: span");
        compared += 1;
    }
    assert_eq!(compared, 7, "traces with answers");
}

#[test]
fn gpu_timeline_equals_tracelens() {
    let (Some(traces), Some(answers)) = (shared("traces/chrome"), shared("expected/tracelens")) else { return };
    let mut expected: HashMap<String, Rows> = HashMap::new();
    for row in csv(&answers.join("gpu_timeline.csv")) {
        expected.entry(row[0].clone()).or_default().push(row[1..].to_vec());
    }
    let find = |trace: &str| {
        ["json", "json.gz", "json.zst"]
            .iter()
            .map(|ending| traces.join(format!("kineto/{trace}.{ending}")))
            .find(|path| path.exists())
    };
    let mut compared = 0;
    for (trace, theirs) in &expected {
        let (path, rank) = match trace.split_once('/') {
            Some((folder, file)) => (traces.join(folder), file.strip_prefix("rank-")),
            None => (find(trace).unwrap(), None),
        };
        let ours = columns(&open(&path), "tracelens-gpu-timeline", &["rank", "type", "time", "percent"]);
        let ours: Rows = ours.into_iter().filter(|row| rank.is_none_or(|rank| row[0] == rank)).collect();
        // The tool adds doubles of microseconds, which resolve a quarter of one where times are absolute: over 4350 kernels.
        let tolerance = if trace == "ns_resolution" { 50.0 } else { 0.1 };
        for row in theirs {
            let kind = row[0].trim_end_matches("_thresh10us");
            let of_kind = ours.iter().find(|ours| ours[1] == kind).unwrap_or_else(|| panic!("{trace}: no {kind}"));
            let off = (number(&of_kind[2]) / 1000.0 - number(&row[1])).abs();
            let is_whole = ["alexnet", "multirank/rank-0", "multirank/rank-1"].contains(&trace.as_str());
            assert!(
                off <= if is_whole { 0.0 } else { tolerance },
                "{trace} {kind}: {of_kind:?}, TraceLens says {row:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 90, "{compared} values compared");
}

#[test]
fn plain_figures_of_the_fixture_are_those_of_a_calculation_by_hand() {
    // rank 0, three times: computing [60, 260) [268, 568), communicating [210, 700), copying [720, 740); the step is 1000.
    let session = open(&fixture("chrome/nccl_ranks"));
    let breakdown = columns(&session, "gpu-time-breakdown", &["device", "part", "total_time"]);
    assert_eq!(
        breakdown[..4].iter().map(|row| row.join("|")).collect::<Vec<_>>(),
        [
            "rank 0/0|computing|1500000",
            "rank 0/0|exposed communication|420000",
            "rank 0/0|exposed copies|60000",
            "rank 0/0|idle|700000"
        ]
    );
    // Rank 1 begins each collective 40 µs later; both end together.
    let skew = columns(&session, "gpu-collective-skew", &["rank", "part", "total_time", "collectives"]);
    assert_eq!(
        skew.iter().map(|row| row.join("|")).collect::<Vec<_>>(),
        ["0|skew|120000|3", "0|transfer|1350000|3", "1|skew|0|3", "1|transfer|1350000|3"]
    );
    // Without profiler steps to trim, HTA and TraceLens agree with the plain breakdown: the first two steps of three remain.
    let trimmed = columns(&session, "hta-temporal-breakdown", &["rank", "compute_time", "kernel_time"]);
    assert_eq!(trimmed[0].join("|"), "0|1000000|1689000");
}

#[test]
fn nvtx_ranges_hold_what_ran_under_them() {
    let session = open(&fixture("nsys/two_streams.sqlite"));
    let ranges = columns(&session, "gpu-nvtx-ranges", &["range", "ranges", "launched"]);
    let mut ranges: Vec<String> = ranges.iter().map(|row| row.join("|")).collect();
    ranges.sort();
    assert_eq!(ranges, ["backward|3|6", "forward|3|9", "load batch|3|3", "step 0|1|6", "step 1|1|6", "step 2|1|6"]);
}
