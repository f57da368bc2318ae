//! Names that nobody knows, and what is offered instead.

use expect_test::expect;

use super::Place;

/// A kernel and the call that launched it.
const KERNEL: &str = r#"[{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,"args":{"correlation":7}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":4,"dur":9,"args":{"device":0,"stream":7,"correlation":7}}]"#;

#[test]
fn what_needs_dependencies_names_what_answers_for_devices() {
    let place = Place::new();
    place.write("gpu.json", KERNEL);
    place.tq("query gpu.json critical-path").check(&expect![[r#"
        --- stderr
        error: `critical-path` needs rows in `links` with kind = dependency: that is not in these traces
        hint: the kind of `links` here: launch
        hint: `gpu-critical-path` answers for kernels and their launches
        --- exit 2
    "#]]);
}

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
