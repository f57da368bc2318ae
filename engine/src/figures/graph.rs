//! The schema `graph`: how large and how deep the graph of a run's tasks is, with or without times.

use super::RUN;
use crate::tables::ViewSpec;

pub(super) static VIEWS: [ViewSpec; 1] = [ViewSpec {
    name: "sizes",
    description: "How large the graph of a run's tasks is; every task counts as one step.",
    sql: "SELECT r.run, r.run_number, n.tasks, n.names, coalesce(d.dependencies, 0) AS dependencies, c.steps \
          FROM tq.main.runs r \
          JOIN (SELECT run, count(*) AS tasks, count(DISTINCT name) AS names FROM tq.main.program_tasks GROUP BY run) n ON n.run = r.run \
          LEFT JOIN (SELECT run, count(*) AS dependencies FROM tq.main.links WHERE kind = 'dependency' GROUP BY run) d ON d.run = r.run \
          LEFT JOIN (SELECT run, count(*) AS steps FROM critical_path((SELECT run, task, 1 AS duration FROM tq.main.program_tasks), \
            (SELECT run, source, target FROM tq.main.links WHERE kind = 'dependency')) GROUP BY run) c ON c.run = r.run",
    columns: &[
        RUN,
        ("run_number", "Its place among the opened runs."),
        ("tasks", "Its tasks."),
        ("names", "Their distinct names."),
        ("dependencies", "Links of kind dependency."),
        ("steps", "Tasks on the longest chain of dependencies."),
    ],
}];
