//! Tests of rows, bins and the bounds of a picture.

use super::draw::{LANES_DRAWN_MAX, LANES_OF_A_SCREEN};
use super::*;
use crate::charts::Names;

fn span(location: &str, name: &str, start: i64, finish: i64) -> (String, String, i64, i64) {
    (location.to_owned(), name.to_owned(), start, finish)
}

fn chart(spans: &[(String, String, i64, i64)]) -> Gantt {
    let mut gantt = Gantt::new(Tick::Nanosecond);
    for (location, name, start, finish) in spans {
        let times = Some((*start, *finish));
        gantt.add(Span { run: "r", location, name, kind: "", role: "", times, on_path: false });
    }
    gantt
}

/// A small generator, so that pictures are the same everywhere.
fn spans(count: usize, lanes: usize, step: i64) -> Vec<(String, String, i64, i64)> {
    let mut state = 7u64;
    let mut random = move |below: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as i64) % below
    };
    (0..count)
        .map(|index| {
            let start = index as i64 * step;
            let lane = random(lanes as i64);
            span(&format!("w{lane}"), &format!("name{}", random(12)), start, start + random(step * 3))
        })
        .collect()
}

#[test]
fn tasks_take_the_first_free_row() {
    //     0 1 2 3 4 5 6
    // a   [-----------)
    // b     [---)
    // c         [-)        touches b: the same row
    // d         |          stands where b ends: another row
    let (run, location) = (String::new(), String::new());
    let mut lane = Lane { run, location, rows: Vec::new(), tasks: 0, busy: 0, open: Open::default() };
    assert_eq!(lane.place(0, 6, 9), Some(0));
    assert_eq!(lane.place(1, 3, 9), Some(1));
    assert_eq!(lane.place(3, 4, 9), Some(1));
    assert_eq!(lane.place(3, 3, 9), Some(2));
    assert_eq!(lane.place(3, 5, 9), Some(3));
    assert_eq!(lane.place(4, 5, 9), Some(1));
    assert_eq!(lane.place(2, 5, 4), None);
}

#[test]
fn a_window_is_filled_and_tooltips_tell_whole_tasks() {
    let spans = [span("w0", "long", 0, 1_000_000), span("w0", "inner", 450, 480)];
    for count in [0, BARS_MAX] {
        let mut gantt = Gantt::new(Tick::Nanosecond).within(TimeSlice { from: Some(400), to: Some(500) });
        for (location, name, start, finish) in &spans {
            gantt.add(Span {
                run: "r",
                location,
                name,
                kind: "",
                role: "",
                times: Some((*start, *finish)),
                on_path: false,
            });
        }
        for number in 0..count {
            let location = &format!("b{}", number / ROWS_DRAWN);
            gantt.add(Span {
                run: "r",
                location,
                name: "b",
                kind: "",
                role: "",
                times: Some((460, 470)),
                on_path: false,
            });
        }
        assert_eq!((gantt.first_start, gantt.last_finish), (400, 500));
        assert_eq!(gantt.bars.is_none(), count > 0);
        let picture = gantt.draw("t", &LaneOrder::default(), &Names::default());
        assert!(picture.contains("long: 1.00 ms from 0 s"), "{picture}");
        assert!(picture.contains("100 ns are shown"), "{picture}");
    }
}

#[test]
fn bins_keep_the_sum_of_busy_ticks() {
    for (count, step) in [(BARS_MAX + 1, 1), (20_000, 10), (50_000, 12_345)] {
        let spans = spans(count, 5, step);
        let gantt = chart(&spans);
        assert!(gantt.bars.is_none());
        assert_eq!(gantt.too_deep, 0);
        let binned: i64 =
            gantt.lanes.iter().flat_map(|lane| &lane.rows).flat_map(|row| &row.bins.0).map(|bin| bin.busy).sum();
        assert_eq!(binned, spans.iter().map(|(_, _, start, finish)| finish - start).sum::<i64>());
        for row in gantt.lanes.iter().flat_map(|lane| &lane.rows) {
            assert!(row.bins.0.len() as i64 <= BINS_PER_ROW);
            assert!(row.bins.0.iter().all(|bin| bin.busy <= gantt.slice.width), "rows do not overlap");
        }
    }
}

#[test]
fn pictures_stay_small_and_say_what_they_leave_out() {
    let few = chart(&spans(3, 2, 100)).draw("few", &LaneOrder::default(), &Names::default());
    assert_eq!(few.matches("<rect class=\"f").count(), 3 + legend_entries(&few));
    for (count, lanes) in [(2_000, 50), (60_000, 8), (60_000, 500)] {
        let picture = chart(&spans(count, lanes, 1_000)).draw("many", &LaneOrder::default(), &Names::default());
        assert!(picture.len() < 500_000, "{count} tasks on {lanes} lanes: {} bytes", picture.len());
        assert_eq!(picture.contains("further locations"), lanes == 500);
    }
}

/// Frames around frames, of which the innermost works.
#[test]
fn of_a_deep_stack_those_rows_are_drawn_that_have_time_of_their_own() {
    const DEPTH: i64 = 60;
    let frames = |count: i64| (0..count).map(|depth| span("w", &format!("frame {depth}"), depth, 10_000 - depth));
    let mut spans: Vec<_> = frames(DEPTH).collect();
    spans.push(span("w", "matmul", 100, 9_000));
    let picture = chart(&spans).draw("deep", &LaneOrder::default(), &Names::default());
    assert!(picture.contains(">matmul</text>") && picture.contains("matmul: 8.90 µs"), "{picture}");
    assert!(picture.contains("at most 24 rows are drawn") && picture.contains("37 rows with less"), "{picture}");
    let deeper: Vec<_> = frames(ROWS_KEPT as i64 + 7).collect();
    let picture = chart(&deeper).draw("deeper", &LaneOrder::default(), &Names::default());
    assert!(picture.contains("Not drawn: 7 tasks below too many others."), "{picture}");
}

#[test]
fn the_longest_of_many_tasks_have_their_names() {
    let mut spans = spans(5_000, 3, 10);
    spans.insert(0, span("w9", "forward pass", 0, 30_000));
    let picture = chart(&spans).draw("many", &LaneOrder::default(), &Names::default());
    assert!(
        picture.contains(">forward pass</text>") && picture.contains("forward pass: 30.0 µs from 0 s"),
        "{picture}"
    );
}

fn legend_entries(picture: &str) -> usize {
    picture.matches("width=\"11\" height=\"11\"").count()
}

#[test]
fn extreme_times_do_not_overflow() {
    let spans =
        [span("w", "a", i64::MIN, i64::MIN + 1), span("w", "b", 0, i64::MAX), span("w", "c", i64::MAX, i64::MAX)];
    let picture = chart(&spans).draw("extreme", &LaneOrder::default(), &Names::default());
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
}

#[test]
fn nothing_to_draw_is_said() {
    let draw = |gantt: Gantt| gantt.draw("empty", &LaneOrder::default(), &Names::default());
    assert!(draw(chart(&[])).contains("no tasks with times"));
    let mut gantt = chart(&[span("w", "ends before it begins", 5, 3)]);
    gantt.add(Span { run: "r", location: "w", name: "a", kind: "", role: "", times: None, on_path: false });
    assert!(draw(gantt).contains("none of 2 tasks has a start, and a finish that is not before it"));
}

#[test]
fn names_cannot_break_the_picture() {
    let picture =
        chart(&[span("<w>", "a & \"b\" </svg>", 0, 10)]).draw("t<i>tle", &LaneOrder::default(), &Names::default());
    assert_eq!(picture.matches("</svg>").count(), 1);
    assert!(picture.contains("a &amp; &quot;b&quot;") && picture.contains("t&lt;i&gt;tle"));
}

#[test]
fn lanes_follow_the_given_order_and_then_their_numbers() {
    let spans: Vec<_> = ["w10", "w9", "main", "w2"].iter().map(|lane| span(lane, "a", 0, 1)).collect();
    let order = LaneOrder { lanes: vec![("r".to_owned(), "main".to_owned(), String::new())] };
    let picture = chart(&spans).draw("order", &order, &Names::default());
    let at = |label: &str| picture.find(&format!(">{label}</text>")).unwrap();
    assert!(at("main") < at("w2") && at("w2") < at("w9") && at("w9") < at("w10"));
}

/// 400 banks with hardly any work come first by name.
#[test]
fn of_too_many_lanes_those_with_most_work_are_drawn() {
    let mut spans: Vec<_> = (0..400).map(|bank| span(&format!("bank{bank}"), "read", 0, 9)).collect();
    spans.extend([span("core1", "run", 0, 900), span("core2", "wait", 0, 800)]);
    let picture = chart(&spans).draw("lanes", &LaneOrder::default(), &Names::default());
    assert!(picture.contains("run: 900 ns") && picture.contains("wait: 800 ns"), "{picture}");
    assert_eq!(picture.matches("read: 9 ns").count(), LANES_DRAWN_MAX - 2);
    let note = "Not drawn: 102 further locations, where least ran (at most 1.0 % of the time shown on each).";
    assert!(picture.contains(note), "{picture}");
}

#[test]
fn of_many_lanes_nearly_empty_ones_are_left_out_unless_the_path_is_there() {
    let drawn = |lanes: usize, path: &str| {
        let mut gantt = Gantt::new(Tick::Nanosecond);
        for number in 0..lanes {
            let location = format!("bank{number}");
            let finish = if number < 60 { 900 } else { 4 };
            let on_path = location == path;
            let (name, times) = ("read", Some((0, finish)));
            gantt.add(Span { run: "r", location: &location, name, kind: "", role: "", times, on_path });
        }
        gantt.draw("lanes", &LaneOrder::default(), &Names::default())
    };
    let picture = drawn(200, "");
    assert_eq!(picture.matches("read: 4 ns").count(), 0);
    assert!(picture.contains("Not drawn: 140 further locations, where least ran (at most 0.5 % of"), "{picture}");
    let with_path = drawn(200, "bank77");
    assert_eq!(with_path.matches("read: 4 ns").count(), 1);
    assert_eq!(with_path.matches("critical path: 4 ns").count(), 1);
    assert!(
        drawn(61, "").contains("Not drawn: 1 further location, where least ran (at most 0.5 % of the time shown).")
    );
}

#[test]
fn few_lanes_are_all_drawn() {
    let mut spans: Vec<_> = (1..LANES_OF_A_SCREEN).map(|bank| span(&format!("bank{bank}"), "read", 0, 1)).collect();
    spans.push(span("core", "run", 0, 9_000));
    let picture = chart(&spans).draw("lanes", &LaneOrder::default(), &Names::default());
    assert!(!picture.contains("Not drawn"), "{picture}");
}

#[test]
fn the_legend_says_what_its_shares_are_of() {
    let picture = |names: &[&str]| {
        let spans: Vec<_> = names.iter().map(|name| span("w", name, 0, 10)).collect();
        chart(&spans).draw("shares", &LaneOrder::default(), &Names::default())
    };
    let note = "Shares: of the time of all tasks, waits and transfers among them;";
    assert!(picture(&["a", "b"]).contains(note));
    assert!(!picture(&["a"]).contains(note));
    // Of two runs together they would be true of neither.
    let mut of_two = Gantt::new(Tick::Nanosecond);
    for (run, name) in [("base", "a"), ("base", "b"), ("new", "b")] {
        of_two.add(Span { run, location: "w", name, kind: "", role: "", times: Some((0, 5)), on_path: false });
    }
    let of_two = of_two.draw("shares", &LaneOrder::default(), &Names::default());
    assert!(!of_two.contains(note) && !of_two.contains(" %</text>"), "{of_two}");
}

#[test]
fn of_several_runs_each_has_its_name_above_its_lanes() {
    let draw = |runs: &[&str]| {
        let mut gantt = Gantt::new(Tick::Nanosecond);
        for (run, location) in runs.iter().flat_map(|run| [(*run, "w1"), (*run, "w2")]) {
            gantt.add(Span { run, location, name: "a", kind: "", role: "", times: Some((0, 5)), on_path: false });
        }
        gantt.draw("runs", &LaneOrder::default(), &Names::default())
    };
    let of_two = draw(&["a_long_name_of_a_run", "another_long_name_of_a_run"]);
    let count = |label: &str| of_two.matches(&format!(">{label}</text>")).count();
    assert_eq!((count("a_long_name_of_a_run"), count("another_long_name_of_a_run")), (1, 1), "{of_two}");
    assert_eq!((count("w1"), count("w2")), (2, 2), "{of_two}");
    assert!(!draw(&["a_long_name_of_a_run"]).contains("a_long_name_of_a_run"));
}

#[test]
fn the_same_tasks_give_the_same_bytes() {
    let spans = spans(5_000, 20, 77);
    let draw = || chart(&spans).draw("same", &LaneOrder::default(), &Names::default());
    assert_eq!(draw(), draw());
}

#[test]
fn several_runs_are_laid_on_one_start() {
    let mut gantt = Gantt::new(Tick::Nanosecond).on_one_start();
    for (run, start) in [("base", 0), ("base", 4), ("new", 1_000), ("new", 1_002)] {
        let times = Some((start, start + 3));
        gantt.add(Span { run, location: "w", name: "a", kind: "", role: "", times, on_path: false });
    }
    let picture = gantt.draw("runs", &LaneOrder::default(), &Names::default());
    assert!(picture.contains("4 tasks on 2 locations, 7 ns from first start"), "{picture}");
    assert!(picture.contains("time since the first task of each run"), "{picture}");
}

#[test]
fn lanes_are_called_by_their_names() {
    let lane = |location: &str, name: &str| ("r".to_owned(), location.to_owned(), name.to_owned());
    let long = "thread 948300 (a program with a long name)";
    let twice = "another program with a name that is long";
    let lanes = [
        ("0/7", "stream 7"),
        ("W1", "W1"),
        ("W2", ""),
        ("948300/948300", long),
        ("1/1", twice),
        ("1/2", twice),
        ("rank 3/27844/27844", "thread 27844 (python)"),
    ];
    let order = LaneOrder { lanes: lanes.map(|(location, name)| lane(location, name)).into() };
    let spans: Vec<_> = order.lanes.iter().map(|(_, location, _)| span(location, "a", 0, 3)).collect();
    let picture = chart(&spans).draw("names", &order, &Names::default());
    for label in
        [">stream 7 (0/7)<", ">W1<", ">W2<", ">thread 948300 (", ">1/1<", ">1/2<", ">rank 3: thread 27844 (python)<"]
    {
        assert!(picture.contains(label), "{label}: {picture}");
    }
}
