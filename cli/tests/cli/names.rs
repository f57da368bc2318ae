//! Names that nobody knows, and what is offered instead.

use expect_test::expect;

use super::Place;

#[test]
fn misspelt_names_get_the_nearest() {
    let place = Place::new();
    place.tq("query run.json -c 'SELECT strat FROM tasks'").check(&expect![[r#"
        --- stderr
        error: no column `strat`
          |
        1 | SELECT strat FROM tasks
          |        ^^^^^
        hint: did you mean `start`?
        --- exit 2
    "#]]);
    place.tq("query run.json -c 'SELECT * FROM tasks WHERE bussy(start, finish) > 3'").check(&expect![[r#"
        --- stderr
        error: no function `bussy`
          |
        1 | SELECT * FROM tasks WHERE bussy(start, finish) > 3
          |                           ^^^^^
        hint: did you mean `busy`?
        --- exit 2
    "#]]);
    place.tq("query run.json -c 'SET datafusion.execution.batchsize = 5'").check(&expect![[r#"
        --- stderr
        error: no setting `datafusion.execution.batchsize`
          |
        1 | SET datafusion.execution.batchsize = 5
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean `datafusion.execution.batch_size`?
        --- exit 2
    "#]]);
    place.tq("formats tfproff").check(&expect![[r#"
        --- stderr
        error: no format `tfproff`; did you mean `tfprof`?
        hint: `tq formats` lists the formats
        --- exit 2
    "#]]);
    place.tq("tables taks").check(&expect![[r#"
        --- stderr
        error: no table `taks`; did you mean `tasks`?
        hint: `tq tables` lists the tables
        --- exit 2
    "#]]);
    place.tq("functions bussy").check(&expect![[r#"
        --- stderr
        error: no function `bussy`; did you mean `busy`?
        hint: `tq functions` lists the functions
        --- exit 2
    "#]]);
}
