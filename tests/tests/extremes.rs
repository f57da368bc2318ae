//! Times at the ends of what can be: exact decimals in every spelling, and damage beyond ±2⁶², counted, in every format.

use std::io::Write as _;

use tempfile::NamedTempFile;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_tests::rows;

fn options(texts: &[&str]) -> (OpenOptions, Vec<NamedTempFile>) {
    let mut options = OpenOptions::new(1 << 30, 2);
    let mut files = Vec::new();
    for text in texts {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        options.traces.push(TraceSpec { name: None, path: file.path().to_owned() });
        files.push(file);
    }
    (options, files)
}

/// Start and finish of all tasks, and what was found about times.
#[track_caller]
fn check(text: &str, tasks: &[&str], found: &[&str]) {
    let (options, _files) = options(&[text]);
    let session = Session::open(&options).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(rows(&session, "SELECT start, finish FROM tasks ORDER BY task"), tasks, "{text}");
    let stats = "SELECT what, severity, count FROM import_stats WHERE what IN ('time_is_null', 'rounded') ORDER BY what, severity";
    assert_eq!(rows(&session, stats), found, "{text}");
}

fn daisen(rows: &[(&str, &str)]) -> String {
    let line = |(start, end): &(&str, &str)| format!("t, , k, w, GPU, {start}, {end}\n");
    format!("ID, ParentID, Kind, What, Where, Start, End\n{}", rows.iter().map(line).collect::<String>())
}

#[test]
fn daisens_seconds() {
    check(&daisen(&[("0", "4.500000123456789012e6")]), &["0|4500000123456789012"], &[]);
    check(&daisen(&[("1e-400", "1.5E-12")]), &["0|2"], &["rounded|info|2"]);
    check(&daisen(&[("0", "9.000000123456789012e6"), ("0", "1e400")]), &["0|-", "0|-"], &["time_is_null|repaired|2"]);
    check(
        &daisen(&[("-4611686.018427387904", "-4611686.018427387903")]),
        &["-4611686018427387904|-4611686018427387903"],
        &[],
    );
    check(&daisen(&[("9000000", "9000001"), ("NaN", "inf")]), &["-|-", "-|-"], &["time_is_null|repaired|4"]);
}

#[test]
fn tfprofs_microseconds() {
    let trace = |span: &str| {
        format!(
            r#"[{{"executor":"0","data":[{{"worker":0,"level":0,"data":[{{"span":{span},"name":"a","type":"static"}}]}}]}}]"#
        )
    };
    check(&trace("[1,4611686018427387]"), &["1000|4611686018427387000"], &[]);
    check(&trace("[1,9000000000000000]"), &["1000|-"], &["time_is_null|repaired|1"]);
    check(&trace("[-9000000000000000,9000000000000000]"), &["-|-"], &["time_is_null|repaired|2"]);
}

#[test]
fn chromes_microseconds() {
    let trace = |start: &str, length: &str| {
        format!(
            r#"[{{"ph":"i","name":"z","pid":1,"tid":1,"ts":0}},{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{start},"dur":{length}}}]"#
        )
    };
    check(&trace("1.0000000000000000000000000000000001e3", "1e-3"), &["1000000|1000001"], &["rounded|info|1"]);
    check(&trace("4611686018427387.903", "0"), &["4611686018427387903|4611686018427387903"], &[]);
    let (options, _files) = options(&[&trace("1", "1e400")]);
    let session = Session::open(&options).unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM tasks"), ["0"]);
}

/// Both ends of a clock: their difference is no time any more.
#[test]
fn the_origin_moves_no_time_out_of_reach() {
    let far = r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":-4611686018427387,"dur":1},
        {"ph":"X","name":"b","pid":1,"tid":1,"ts":4611686018427386,"dur":1}]"#;
    check(far, &["0|1000", "-|-"], &["time_is_null|repaired|2"]);
}

#[test]
fn tables_in_any_unit() {
    let (mut options, _files) =
        options(&["begin,end,name\n0,9.2e18,a\n-4611686018427387905,4611686018427387903,b\n1e400,1e-400,c\n"]);
    let mapping = [("table", "tasks"), ("table.start", "begin:ns"), ("table.finish", "end:ns"), ("table.name", "name")];
    options.import.extend(mapping.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let session = Session::open(&options).unwrap();
    let tasks = rows(&session, "SELECT start, finish FROM tasks ORDER BY task");
    assert_eq!(tasks, ["0|-", "-|4611686018427387903", "-|0"]);
}

/// A run that counts in nanoseconds beside one that counts in picoseconds.
#[test]
fn what_a_finer_session_cannot_count_is_refused() {
    let fine = daisen(&[("0", "1e-9")]);
    let coarse = |end: &str| format!(r#"[{{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":{end}}}]"#);
    let (fits, _files) = options(&[&fine, &coarse("4611686018427")]);
    assert_eq!(rows(&Session::open(&fits).unwrap(), "SELECT max(finish) FROM tasks"), ["4611686018427000000"]);
    let (beyond, _files) = options(&[&fine, &coarse("4611686018428")]);
    let error = Session::open(&beyond).err().unwrap().to_string();
    assert!(error.contains("does not fit a session that counts in picoseconds"), "{error}");
}

#[test]
fn run_args_that_are_numbers() {
    let trace = r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5}]"#;
    let open = |given: &[(&str, &str)]| {
        let (mut options, _files) = options(&[trace]);
        options.run_args = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Session::open(&options).map_err(|error| error.to_string())
    };
    for (key, value) in
        [("cores", "four"), ("cores", "0"), ("cores", "4.0"), ("cores", ""), ("repetition", "-1"), ("cores", "1e2")]
    {
        let error = open(&[(key, value)]).err().unwrap();
        assert!(error.contains(&format!("`--run-arg {key}={value}`")) && error.contains("whole number"), "{error}");
    }
    let session = open(&[("cores", "3"), ("cores", "4"), ("repetition", "0"), ("note", "four")]).unwrap();
    assert_eq!(rows(&session, "SELECT cores, repetition, args->>'note' FROM runs"), ["4|0|four"]);
}

#[test]
fn slices_that_nothing_can_touch() {
    let trace = r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5}]"#;
    let open = |from: &str, to: &str| {
        let (mut options, _files) = options(&[trace]);
        (options.from, options.to) = (Some(from.parse().unwrap()), Some(to.parse().unwrap()));
        Session::open(&options).map(|session| rows(&session, "SELECT count(*) FROM tasks")[0].clone())
    };
    for (from, to, words) in [
        ("20", "20", "the slice is empty: --from and --to are both 20 ns"),
        // In ticks they are the same.
        ("20", "0.02us", "the slice is empty"),
        ("0.1ns", "0.2ns", "the slice is empty"),
        ("20", "19ns", "--to lies before --from"),
        ("1s", "20", "--to lies before --from"),
    ] {
        let error = open(from, to).err().unwrap_or_else(|| panic!("{from} to {to}")).to_string();
        assert!(error.contains(words), "{from} to {to}: {error}");
    }
    assert_eq!(open("20", "21").unwrap(), "1");
}
