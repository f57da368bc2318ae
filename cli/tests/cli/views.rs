//! Views of one's own.

use expect_test::expect;

use super::Place;

#[test]
fn a_view_over_what_was_replaced_says_so() {
    let made =
        "CREATE VIEW a AS SELECT 1 AS x; CREATE VIEW b AS SELECT x + 1 AS x FROM a; CREATE VIEW c AS SELECT 5 AS x;";
    let place = Place::new();
    let replaced = format!("{made} CREATE OR REPLACE VIEW a AS SELECT 9 AS x; SELECT b.x, c.x AS c FROM b, c");
    place.tq_args(&["query", "-c", &replaced]).check(&expect![[r#"
        x,c
        2,5
        --- stderr
        note: view: `b` still answers from the old `a`; make it anew
        --- exit 0
    "#]]);
    let quiet = format!("{made} CREATE OR REPLACE VIEW c AS SELECT 9 AS x; SELECT b.x, c.x AS c FROM b, c");
    place.tq_args(&["query", "-c", &quiet]).check(&expect![[r#"
        x,c
        2,9
        --- stderr
        note: view: `path_tasks` still answers from the old `c`; make it anew
        --- exit 0
    "#]]);
}

/// Rows that are written out may have a time of the trace and a number in one column.
#[test]
fn times_and_numbers_side_by_side_are_numbers() {
    let place = Place::new();
    let sql = "SELECT x, count(*) AS n FROM tasks, LATERAL (VALUES ('start', start), ('depth', depth)) v(x, y) \
               WHERE y >= 0 GROUP BY x ORDER BY x";
    let answer = place.tq_args(&["query", "run.json", "-c", sql]);
    let tasks = place.tq_args(&["query", "run.json", "-c", "SELECT count(*) AS n FROM tasks"]).stdout;
    let n = tasks.lines().last().unwrap();
    assert_eq!(answer.stdout, format!("x,n\ndepth,{n}\nstart,{n}\n"), "{}", answer.stderr);
}
