//! The schema `gpu`: what devices did, as it was recorded; nothing is trimmed or rounded.

use super::RUN;
use crate::tables::ViewSpec;

const DEVICE: (&str, &str) = ("device", "The location above the stream, else the stream.");

pub(super) static VIEWS: [ViewSpec; 3] = [
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
    ViewSpec {
        name: "stream_waits",
        description: "What streams waited for in the gaps between their tasks: until the next one was launched for the host, from then on for \
                      its start (under 30 µs, sooner the device could hardly have begun) or for something else. A gap has up to two rows.",
        sql: "WITH launches AS ( \
                SELECT k.target AS task, max(c.start) AS launch_time \
                FROM tq.main.links k JOIN tq.main.program_tasks c ON c.task = k.source WHERE k.kind = 'launch' GROUP BY k.target \
              ), idle AS ( \
                SELECT g.run, g.location, g.duration, least(greatest(coalesce(l.launch_time - g.start, 0), 0), g.duration) AS host_time \
                FROM gaps((SELECT * FROM tq.gpu.device_tasks)) g LEFT JOIN launches l ON l.task = g.task_after) \
              SELECT run, location, 'host' AS waits_for, host_time AS duration FROM idle WHERE host_time > 0 UNION ALL \
              SELECT run, location, CASE WHEN duration - host_time < us(30) THEN 'kernel start' ELSE 'other' END, duration - host_time \
              FROM idle WHERE duration > host_time",
        columns: &[
            RUN,
            ("location", "The stream."),
            ("waits_for", "host, kernel start or other."),
            ("duration", "How long."),
        ],
    },
];
