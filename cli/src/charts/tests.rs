//! Every kind of chart with no rows, one, three and very many; the same bytes each time; well-formed.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use tq_udfs::ticks::Tick;

use super::*;

/// A chart line for each kind over the columns of [`answer`].
const LINES: [&str; 16] = [
    "bar x=duration y=name color=kind",
    "stacked x=location y=duration color=name",
    "stacked x=location y=ratio color=kind relative=true",
    "line x=start y=duration",
    "line x=start y=duration y2=ratio by=kind panel=location bound=finish",
    "occupancy x=start y=ratio bound=duration panel=kind",
    "heatmap x=location y=name value=duration totals=true",
    "heatmap x=location y=name value=ratio panel=kind palette=pascal",
    "box x=kind y=duration",
    "box x=name y=duration scale=log",
    "box x=name y=duration color=kind",
    "flame stack=stack value=duration",
    "gantt",
    "tasks",
    "line x=start y=duration by=kind steps=true",
    "line x=start y=duration by=kind panel=location scales=own",
];

/// Rows of everything, NULLs among them from the third on.
fn answer(rows: usize) -> RecordBatch {
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let texts = |text: &mut dyn FnMut(usize) -> String| -> ArrayRef {
        Arc::new((0..rows).map(|row| (row % 7 != 2).then(|| text(row))).collect::<StringArray>())
    };
    let names: Vec<u64> = (0..rows).map(|_| random(12)).collect();
    let durations: Vec<i64> = (0..rows).map(|_| random(5_000) as i64).collect();
    let starts: Vec<i64> = (0..rows as i64).map(|row| row * 900).collect();
    let known = |values: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new((0..rows).map(|row| (row % 11 != 2).then(|| values(row))).collect::<Int64Array>())
    };
    let roles = |row: usize| ["parent", "task", "subtask"][row.min(2)].to_owned();
    RecordBatch::try_from_iter([
        ("name", texts(&mut |row| format!("name<{}>", names[row]))),
        ("kind", texts(&mut |row| format!("kind {}", row % 3))),
        ("location", texts(&mut |row| format!("rank {}/thread {}", row % 4, row % 5))),
        ("stack", texts(&mut |row| format!("main;step {};{}", row % 3, names[row]))),
        ("role", Arc::new((0..rows).map(|row| Some(roles(row))).collect::<StringArray>()) as ArrayRef),
        ("row", known(&|row| (row % 5) as i64)),
        ("start", known(&|row| starts[row])),
        ("finish", known(&|row| starts[row] + durations[row])),
        ("duration", known(&|row| durations[row])),
        ("ratio", Arc::new((0..rows).map(|row| Some((names[row] as f64 - 3.0) / 10.0)).collect::<Float64Array>())),
    ])
    .unwrap()
}

fn picture(line: &str, rows: usize) -> String {
    let batch = answer(rows);
    let schema = batch.schema();
    // Cut into batches as a query would.
    let batches: Vec<RecordBatch> =
        (0..rows).step_by(8_192).map(|from| batch.slice(from, (rows - from).min(8_192))).collect();
    let data = Data { schema: &schema, batches: &batches, tick: Tick::Nanosecond, names: &Names::default() };
    Chart::parse(line).unwrap().draw("A title & more", &data).unwrap()
}

/// Elements are closed, attributes are numbers: what a viewer needs.
fn assert_sound(line: &str, svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{line}");
    assert!(!svg.contains("NaN") && !svg.contains("inf\"") && !svg.contains("-inf"), "{line}");
    for tag in ["title", "text", "g", "style"] {
        let opened = svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{line}: <{tag}>");
    }
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("A title &amp; more"), "{line}");
}

#[test]
fn any_number_of_rows_is_a_picture() {
    for line in LINES {
        for rows in [0, 1, 2, 3, 50] {
            let svg = picture(line, rows);
            assert_sound(line, &svg);
            assert_eq!(svg, picture(line, rows), "{line}");
        }
    }
}

#[test]
fn many_rows_are_a_picture_of_bounded_size() {
    for line in LINES {
        let svg = picture(line, 60_000);
        assert_sound(line, &svg);
        // Lines in panels are many lines, each of which is thinned out by itself.
        assert!(svg.len() < 1_500_000, "{line}: {} bytes", svg.len());
    }
    // What is drawn together is said.
    for (line, note) in [
        (LINES[0], "The first 60 of 60\u{a0}000 rows are drawn; 59\u{a0}940 more follow."),
        (LINES[3], "each pixel shows the range"),
        (LINES[5], "each pixel shows the mean"),
        ("stacked x=start y=duration color=kind", "neighbouring values of start"),
        ("heatmap x=start y=name value=duration", "share a cell: it shows their mean"),
        ("box x=start y=duration", "values of start are drawn"),
        (LINES[13], "drawn with its neighbours"),
    ] {
        assert!(picture(line, 60_000).contains(note), "{line}");
    }
}

#[test]
fn columns_that_are_missing_or_wrong_are_named() {
    let wrong = |line: &str| {
        let batch = answer(3);
        let schema = batch.schema();
        let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &Names::default() };
        Chart::parse(line).unwrap().draw("", &data).unwrap_err().to_string()
    };
    assert_eq!(wrong("bar x=name y=name"), "the chart's x=name must be numbers, but `name` is text");
    assert_eq!(wrong("bar x=duration y=nam"), "the chart's y=nam: the answer has no column `nam`");
    assert_eq!(
        wrong("line x=start y=duration bound=kind"),
        "the chart's bound=kind must be numbers, but `kind` is text"
    );
}

/// A picture of names, runs and counts, where these runs are open.
fn of_runs(line: &str, runs: &[&str], rows: &[(&str, &str, i64)]) -> String {
    let texts = |text: fn(&(&str, &str, i64)) -> String| {
        Arc::new(rows.iter().map(|row| Some(text(row))).collect::<StringArray>())
    };
    let batch = RecordBatch::try_from_iter([
        ("name", texts(|row| row.0.to_owned()) as ArrayRef),
        ("run", texts(|row| row.1.to_owned()) as ArrayRef),
        ("count", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()) as ArrayRef),
    ])
    .unwrap();
    let (schema, names) = (batch.schema(), Names::of_runs(runs.iter().map(|run| (*run).to_owned())));
    let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &names };
    Chart::parse(line).unwrap().draw("", &data).unwrap()
}

/// The largest name may be one that only the second run has.
#[test]
fn of_two_runs_the_one_that_was_opened_first_is_paler() {
    let draw = |rows: &[(&str, &str, i64)]| of_runs("bar x=count y=name color=run", &["base", "new"], rows);
    let svg = draw(&[("added", "new", 9), ("kept", "new", 5), ("kept", "base", 4)]);
    // The bar of base and its square in the legend.
    assert_eq!(svg.matches(" before\"").count(), 2, "{svg}");
    assert!(svg.find(">base<").unwrap() < svg.find(">new<").unwrap(), "{svg}");
    assert!(draw(&[("added", "new", 9), ("kept", "new", 5)]).contains("All of it is of new."));
}

/// Also where the query begins with another, or another has more; a study is as its executions.
#[test]
fn runs_stand_in_the_order_in_which_they_were_opened() {
    let rows = [("a", "new", 9), ("b", "new", 5), ("a", "base", 4), ("b", "base", 3)];
    for line in [
        "bar x=count y=name color=run",
        "box x=name y=count color=run",
        "line x=count y=count by=run",
        "stacked x=name y=count color=name panel=run",
        "heatmap x=name y=name value=count panel=run",
    ] {
        for runs in [["base", "new"], ["base/10 p=1 r=0", "new/10 p=1 r=0"]] {
            let svg = of_runs(line, &runs, &rows);
            assert!(svg.find(">base<").unwrap() < svg.find(">new<").unwrap(), "{line}: {svg}");
        }
    }
}

#[test]
fn as_many_bars_are_drawn_as_the_chart_says() {
    let rows: Vec<_> = (0..30).map(|count| ("a", "base", count)).collect();
    let svg = of_runs("bar x=count y=name most=20", &["base", "new"], &rows);
    assert!(svg.contains("The first 20 of 30 rows are drawn; 10 more follow."), "{svg}");
    assert_eq!(svg.matches("class=\"f").count(), 20, "{svg}");
}

/// Four diagrams of six studies fit; more cells than in twelve large panels do not.
#[test]
fn small_panels_are_drawn_up_to_two_dozen() {
    let names: Vec<String> = (10..36).map(|panel| format!("panel{panel}")).collect();
    let draw = |count: usize| {
        let rows: Vec<(&str, &str, i64)> = names[..count].iter().map(|name| (name.as_str(), "base", 1)).collect();
        of_runs("heatmap x=run y=count value=count panel=name", &["base"], &rows)
    };
    assert!(draw(24).contains(">panel33<") && !draw(24).contains("Not drawn"));
    assert!(draw(26).contains("Not drawn: 2 further panels."), "{}", draw(26));
}

/// numpy.percentile([0, 0, 0, 10, 1000], [25, 50, 75]) = 0, 0, 10, on any axis.
#[test]
fn zeros_count_in_the_quartiles_of_a_logarithmic_box() {
    let rows = [0, 0, 0, 10, 1000].map(|count| ("a", "base", count));
    for scale in ["log", "linear"] {
        let svg = of_runs(&format!("box x=name y=count scale={scale}"), &["base"], &rows);
        assert!(svg.contains("a: median 0, quartiles 0 and 10, whiskers 0 and 10, 1 outlier, 5 values"), "{svg}");
        let note = "Drawn at the lower end of the logarithmic axis: 3 values of zero or less.";
        assert_eq!(svg.contains(note), scale == "log", "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    // Nothing has a logarithm: the axis is linear.
    let svg = of_runs("box x=name y=count scale=log", &["base"], &rows[..3]);
    assert!(svg.contains("a: median 0") && !svg.contains("logarithmic"), "{svg}");
}

/// Sizes of two studies that have one in common, the larger ones first.
#[test]
fn rows_that_ascend_in_each_panel_ascend_in_all() {
    let rows = [("100", "base", 1), ("200", "base", 2), ("1", "new", 1), ("4", "new", 2), ("100", "new", 3)];
    let svg = of_runs("heatmap x=count y=name value=count panel=run", &["base", "new"], &rows);
    let place = |label: &str| svg.find(&format!(">{label}<")).unwrap_or_else(|| panic!("{label}: {svg}"));
    assert!(place("4") < place("100") && place("100") < place("200"), "{svg}");
}

#[test]
fn panels_have_the_rows_of_those_that_they_share_some_with() {
    let draw =
        |rows: &[(&str, &str, i64)]| of_runs("heatmap x=run y=name value=count panel=run", &["base", "new"], rows);
    let label_count = |svg: &str, label: &str| svg.matches(&format!(">{label}</text>")).count();
    let apart = draw(&[("100", "base", 1), ("200", "base", 2), ("7", "new", 1), ("9", "new", 2)]);
    for label in ["100", "200", "7", "9"] {
        assert_eq!(label_count(&apart, label), 1, "{label}: {apart}");
    }
    let shared = draw(&[("100", "base", 1), ("200", "base", 2), ("7", "new", 1), ("200", "new", 2)]);
    for label in ["100", "200", "7"] {
        assert_eq!(label_count(&shared, label), 2, "{label}: {shared}");
    }
}

/// Two runs have nothing but the names of their rows in common, and times that differ little are no single column.
#[test]
fn panels_have_times_of_their_own() {
    let runs = StringArray::from(vec!["a", "a", "b", "b"]);
    let rows = StringArray::from(vec!["core"; 4]);
    let batch = RecordBatch::try_from_iter([
        ("run", Arc::new(runs) as ArrayRef),
        ("core", Arc::new(rows) as ArrayRef),
        ("start", Arc::new(Int64Array::from(vec![0, 5_000_010, 0, 5_000_011])) as ArrayRef),
        ("tasks", Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef),
    ])
    .unwrap();
    let schema = batch.schema();
    let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &Names::default() };
    let svg = Chart::parse("heatmap x=start y=core value=tasks panel=run").unwrap().draw("runs", &data).unwrap();
    for cell in ["core, 0 s: 1,", "core, 5.000010 ms: 2,", "core, 0 s: 3,", "core, 5.000011 ms: 4,"] {
        assert!(svg.contains(cell), "{cell}: {svg}");
    }
    assert!(!svg.contains("core, 5.000011 ms: 2"));
}

#[test]
fn few_columns_fill_the_width() {
    let draw = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("a name that takes some room {n}")).collect();
        let rows: Vec<_> = names.iter().map(|name| (name.as_str(), "base", 7)).collect();
        of_runs("stacked x=name y=count color=run relative=true", &["base", "new"], &rows)
    };
    let widest = |svg: &str| {
        let bars = svg.lines().filter(|line| line.starts_with("<rect class=\"f"));
        let width = |bar: &str| bar.split("width=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
        bars.filter_map(width).fold(0.0, f64::max)
    };
    let few = draw(3);
    assert!(widest(&few) > 700.0 && !few.contains("rotate"), "{few}");
    assert!(few.contains(">a name that takes some room 0<"), "{few}");
    let many = draw(20);
    assert!(widest(&many) < 80.0 && many.contains("rotate"), "{many}");
    // Also where they are turned, the first names are whole.
    assert!(many.contains(">a name that takes some room 0<"), "{many}");
}

#[test]
fn the_only_run_needs_no_name_above_its_panel() {
    for line in [
        "heatmap x=name y=name value=count panel=run",
        "stacked x=name y=count color=name panel=run",
        "occupancy x=count y=count panel=run",
    ] {
        let rows = [("a", "new", 9), ("b", "new", 5)];
        let of_two_open_ones = of_runs(line, &["base", "new"], &rows);
        assert!(of_two_open_ones.contains(">new</text>"), "{line}: {of_two_open_ones}");
        let alone = of_runs(line, &["new"], &rows);
        assert!(!alone.contains(">new</text>"), "{line}: {alone}");
    }
}

/// Beside each other, the columns of names that came by size mean nothing together: the first ones are drawn, each with its label.
#[test]
fn of_many_names_the_first_columns_are_drawn() {
    let drawn = |name: &dyn Fn(usize) -> String| {
        let names: StringArray = (0..100).map(|row| Some(name(row))).collect();
        let parts: StringArray = (0..100).map(|_| Some("work")).collect();
        let values: Int64Array = (0..100).map(|row| Some(1_000 - row)).collect();
        let batch = RecordBatch::try_from_iter([
            ("title", Arc::new(names) as ArrayRef),
            ("part", Arc::new(parts) as ArrayRef),
            ("tasks", Arc::new(values) as ArrayRef),
        ])
        .unwrap();
        let schema = batch.schema();
        let data = Data { schema: &schema, batches: &[batch], tick: Tick::Nanosecond, names: &Names::default() };
        Chart::parse("stacked x=title y=tasks color=part").unwrap().draw("many", &data).unwrap()
    };
    let by_size = drawn(&|row| format!("kernel {}", row * 37 % 100));
    assert!(by_size.contains("The first 60 of 100 columns are drawn; 40 more follow."), "{by_size}");
    assert!(by_size.contains(">kernel 83</text>") && !by_size.contains("kernel 20, work"), "{by_size}");
    let in_order = drawn(&|row| format!("PE{row}"));
    assert!(in_order.contains("PE99, work") && !in_order.contains("are drawn"));
}
