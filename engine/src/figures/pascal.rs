//! The schema `pascal`: how efficient a program is as a whole.

use crate::tables::ViewSpec;

pub(super) static VIEWS: [ViewSpec; 1] = [ViewSpec {
    name: "program_efficiency",
    description: "Times and efficiencies of each study's whole program, or where that was not measured, of the region that took most \
                  time: a row for each problem size and number of cores.",
    sql: "WITH cells AS ( \
            SELECT * FROM efficiency_diffs((SELECT * FROM tq.main.executions), method => 'median_of_ratios') \
          ), main AS ( \
            SELECT run AS study, CASE WHEN bool_or(region = '') THEN '' ELSE first_value(region ORDER BY time DESC, region) END AS main_region \
            FROM cells WHERE time IS NOT NULL GROUP BY run) \
          SELECT run, region, argument, size_order, cores, time, efficiency FROM cells JOIN main ON study = run AND main_region = region",
    columns: &[
        ("run", "The study."),
        ("region", "The region; '' for the whole program."),
        ("argument", "The problem size as written."),
        ("size_order", "Rank of the problem size."),
        ("cores", "Cores used."),
        ("time", "The median of the repetitions; NULL without an execution."),
        ("efficiency", "The median of the repetitions' efficiencies; NULL without an execution."),
    ],
}];
