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
                      its start (under 30 µs, sooner the device could hardly have begun), for the call that launched it (until the task began or longer: \
                      a queue was full, a module was loaded) or for something else. A gap has up to two rows.",
        sql: "WITH launches AS ( \
                SELECT k.target AS task, max(c.start) AS launch_time, max(c.finish) AS launched_by \
                FROM tq.main.links k JOIN tq.main.program_tasks c ON c.task = k.source WHERE k.kind = 'launch' GROUP BY k.target \
              ), idle AS ( \
                SELECT g.*, l.launched_by, g.start + least(greatest(coalesce(l.launch_time - g.start, 0), 0), g.duration) AS launched \
                FROM gaps((SELECT * FROM tq.gpu.device_tasks)) g LEFT JOIN launches l ON l.task = g.task_after) \
              SELECT run, location, 'host' AS waits_for, start, launched AS finish, launched - start AS duration, task_before, task_after \
              FROM idle WHERE launched > start UNION ALL \
              SELECT run, location, CASE WHEN finish - launched < us(30) THEN 'kernel start' WHEN launched_by >= finish THEN 'launch call' ELSE 'other' END, \
                launched, finish, finish - launched, task_before, task_after \
              FROM idle WHERE finish > launched",
        columns: &[
            RUN,
            ("location", "The stream."),
            ("waits_for", "host, kernel start, launch call or other: another stream, or what is not recorded."),
            ("start", "Where the stream began to wait for it."),
            ("finish", "Where it no longer did."),
            ("duration", "How long."),
            ("task_before", "The task before the gap."),
            ("task_after", "The task after it."),
        ],
    },
];
