//! The schema `gpu`: what devices did, as it was recorded; nothing is trimmed or rounded.

use super::RUN;
use crate::tables::ViewSpec;

const DEVICE: (&str, &str) = ("device", "The location above the stream, else the stream.");

pub(super) static VIEWS: [ViewSpec; 2] = [
    ViewSpec {
        name: "device_tasks",
        description: "Kernels, copies, memsets and graphs on streams; waits are no work.",
        sql: "SELECT t.run, coalesce(l.parent, l.location) AS device, t.location, t.task, t.name, t.kind, t.role, t.start, t.finish, t.duration \
              FROM tq.main.program_tasks t JOIN tq.main.program_locations l ON l.run = t.run AND l.location = t.location \
              WHERE l.kind = 'stream' AND t.kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_graph')",
        columns: &[
            RUN,
            DEVICE,
            ("location", "The stream."),
            ("task", "The task."),
            ("name", "Its name."),
            ("kind", "kernel, gpu_memcpy, gpu_memset or cuda_graph."),
            ("role", "work, communication or copy."),
            ("start", "Its start."),
            ("finish", "Its finish."),
            ("duration", "How long it took."),
        ],
    },
    ViewSpec {
        name: "devices",
        description: "How long each device was busy, and with what.",
        sql: "SELECT run, device, max(finish) - min(start) AS total_time, busy(start, finish) AS busy_time, \
                coalesce(busy(start, finish) FILTER (WHERE role = 'work'), 0) AS computing_time, \
                coalesce(busy(start, finish) FILTER (WHERE role <> 'copy'), 0) AS computing_or_communicating_time \
              FROM tq.gpu.device_tasks GROUP BY run, device",
        columns: &[
            RUN,
            DEVICE,
            ("total_time", "From its first start to its last finish."),
            ("busy_time", "While anything ran on it."),
            ("computing_time", "While any task of role work ran on it."),
            ("computing_or_communicating_time", "While any task ran on it that was no copy."),
        ],
    },
];
