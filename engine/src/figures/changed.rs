//! The schema `changed`: what is different between the runs `base` and `new`, for comparisons.

use super::RUN;
use crate::tables::ViewSpec;

pub(super) static VIEWS: [ViewSpec; 6] = [
    ViewSpec {
        name: "names",
        description: "How many names of tasks the runs `base` and `new` have, one row: two programs have none in common.",
        sql: "SELECT count(*) FILTER (WHERE in_base) AS base_names, count(*) FILTER (WHERE in_new) AS new_names, \
                count(*) FILTER (WHERE in_base AND in_new) AS common_names \
              FROM (SELECT bool_or(run = 'base') AS in_base, bool_or(run = 'new') AS in_new FROM tq.main.program_tasks \
                WHERE run IN ('base', 'new') AND name <> '' GROUP BY name)",
        columns: &[
            ("base_names", "Names in base."),
            ("new_names", "Names in new."),
            ("common_names", "Names in both."),
        ],
    },
    ViewSpec {
        name: "work",
        description: "The work of each name of task, or family of names (`name_families`), of every run as in `work_by_name`, where a rank that waits \
                      in a collective for the last one does not work, and collectives on streams that only communicate do: what comparisons call work.",
        sql: "SELECT w.run, coalesce(f.family, w.name) AS name, sum(w.tasks) AS tasks, sum(w.work_time) AS work_time \
              FROM (SELECT run, name, tasks, work_time FROM tq.main.work_by_name UNION ALL \
                SELECT c.run, c.name, CASE WHEN t.task IS NULL THEN 1 ELSE 0 END, CASE WHEN t.task IS NULL THEN c.finish - c.start ELSE 0 END - c.wait_time \
                FROM tq.main.collectives c LEFT JOIN tq.main.working_tasks t ON t.task = c.task) w \
              LEFT JOIN tq.main.name_families f ON f.name = w.name GROUP BY w.run, coalesce(f.family, w.name)",
        columns: &[
            RUN,
            ("name", "What the tasks are called."),
            ("tasks", "How many there are."),
            (
                "work_time",
                "The time of the tasks themselves, without nested ones, waits, and the time until the last rank came.",
            ),
        ],
    },
    ViewSpec {
        name: "path",
        description: "What the executed paths (of `path_tasks` and `path_links`) of the runs `base` and `new` spent: `explain_change` by name of task \
                      or family of names, with what that means.",
        sql: include_str!("changed_path.sql"),
        columns: &[
            ("name", "What the tasks are called."),
            ("cause", "work, waiting or path, as in `explain_change`."),
            ("is_wait", "Whether all tasks of the name are recorded waits."),
            (
                "is_same_work",
                "Whether all locations together worked less than half as much longer, so that more of it stands in a row.",
            ),
            ("base_time", "What the path of base spent."),
            ("new_time", "What the path of new spent."),
            ("change_time", "The change; those of all rows add up to that of the makespan."),
        ],
    },
    ViewSpec {
        name: "tasks",
        description: "Which tasks changed from the run `base` to the run `new`: longer or shorter, all of a name, those on some locations or few of \
                      them, or more of them. `task-times-changed` says how that is told.",
        sql: include_str!("changed_tasks.sql"),
        columns: &[
            ("what", "The name, and which of its tasks."),
            ("measure", "What the next two are: the `median` of its times, the `longest` of them or their `sum`."),
            ("base_time", "That of base, 0 where it has none."),
            ("new_time", "That of new."),
            ("change_time", "The change of the sum of all its times."),
            ("base_tasks", "How many tasks of the name (on the location that `what` says) base has."),
            ("new_tasks", "How many new has."),
            (
                "weight",
                "By what they are ranked: the greater of the change and of that of the medians for all of its tasks.",
            ),
        ],
    },
    ViewSpec {
        name: "locations",
        description: "Which locations are busy for longer or shorter in the run `new` than in the run `base`, unlike the others of their kind.",
        sql: include_str!("changed_locations.sql"),
        columns: &[
            ("location", "The location."),
            ("base_time", "How long it was busy in base."),
            ("new_time", "How long in new."),
            ("change_time", "The change."),
            ("weight", "How far that is from the median change of its kind."),
        ],
    },
    ViewSpec {
        name: "frames",
        description: "What the frames of folded stacks weigh themselves in the runs `base` and `new`, by the frame that called them.",
        sql: include_str!("changed_frames.sql"),
        columns: &[
            ("name", "The frame."),
            ("caller", "The frame that called it; NULL for the outermost ones."),
            ("base_weight", "What it weighs itself in base, 0 where it is not there."),
            ("new_weight", "What in new."),
            ("base_percent", "The same as a share of all of base."),
            ("new_percent", "As a share of all of new."),
        ],
    },
];
