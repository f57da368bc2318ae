//! Headings of columns that have no name.

use expect_test::expect;

use super::Place;

#[test]
fn columns_without_a_name_are_called_as_they_were_typed() {
    let place = Place::new();
    let sql = "SELECT name, 1, 'it''s', COUNT(*), SUM(duration) / 2, CAST(start AS DOUBLE), (SELECT 2), sum(three) \
               FROM tasks CROSS JOIN (SELECT 3 AS three) t GROUP BY name, start ORDER BY count(*), name LIMIT 1";
    place.tq_args(&["query", "run.json", "-c", sql]).check(&expect![[r#"
        name,1,'it''s',count(*),sum(duration) / 2,CAST(start AS DOUBLE),(SELECT 2),sum(three)
        a,1,it's,1,20000,0.0,2,3
        --- exit 0
    "#]]);
    place.tq_args(&["query", "-c", "SELECT 1 + 1, t.*, upper('a') FROM (SELECT 3 AS three, 4) t"]).check(&expect![[
        r#"
        1 + 1,three,4,upper('a')
        2,3,4,A
        --- exit 0
    "#
    ]]);
    // Each has a name of its own where it stands for the column.
    for from in ["(SELECT 1, upper('a'), COUNT(*), 2 AS two) t", "t"] {
        let sql = format!("WITH t AS (SELECT 1, upper('a'), COUNT(*), 2 AS two) SELECT 5, t.* FROM {from}");
        place.tq_args(&["query", "-c", &sql]).check(&expect![[r#"
            5,1,upper('a'),count(*),two
            5,1,A,1,2
            --- exit 0
        "#]]);
    }
    let twice = "SELECT 1, 1, 1 UNION ALL SELECT 2, 3, 4";
    place.tq_args(&["query", "--format", "ndjson", "-c", twice]).check(&expect![[r#"
        {"1":1,"1_1":1,"1_2":1}
        {"1":2,"1_1":3,"1_2":4}
        --- exit 0
    "#]]);
    place.tq_args(&["query", "-c", "COPY (SELECT 1 + 1, 1 + 1) TO 'sums.csv'"]).check(&expect![[r#"
        count
        1
        --- exit 0
    "#]]);
    assert_eq!(place.read("sums.csv"), "1 + 1,1 + 1_1\n2,2\n");
    // A table that is made of an answer has its headings.
    let made = "CREATE TABLE q AS SELECT a + 1, 2, 2 FROM (SELECT 3 AS a); SELECT \"a + 1\", \"2\", \"2_1\" FROM q; \
                CREATE VIEW w(x, y) AS SELECT a + 1, 2 FROM (SELECT 3 AS a); SELECT x, y FROM w";
    let made = place.tq_args(&["query", "-c", made]);
    assert_eq!(made.stdout, "a + 1,2,2_1\n4,2,2\n\nx,y\n4,2\n", "{}", made.stderr);
    place
        .tq_args(&["query", "-c", "CREATE VIEW v AS SELECT count(*) FROM (SELECT 1) t; SELECT \"count(*)\" + 1 FROM v"])
        .check(&expect![[r#"
        """count(*)"" + 1"
        2
        --- exit 0
    "#]]);
}

#[test]
fn what_is_computed_once_is_called_as_it_was_typed() {
    let sql = "SELECT (WITH m AS MATERIALIZED (SELECT 1 AS w) SELECT max(w) FROM m)";
    Place::new().tq(&format!("query -c '{sql}'")).check(&expect![[r#"
        (WITH m AS MATERIALIZED (SELECT 1 AS w) SELECT max(w) FROM m)
        1
        --- exit 0
    "#]]);
}
