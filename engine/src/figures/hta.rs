//! The schema `hta`: the spans of a GPU profile as HTA (Holistic Trace Analysis) reads them, for the saved queries that reproduce
//! its figures and for queries that users write.
//!
//! ```text
//! ranks ─▶ spans ──────────────▶ events ───────────────▶ device_spans
//!          rounded as HTA does   with what trimming asks   what is left of the device's
//! ```

use super::RUN;
use crate::tables::ViewSpec;

const RANK: (&str, &str) = ("rank", "The rank.");
const TASK: (&str, &str) = ("task", "The task.");
const NAME: (&str, &str) = ("name", "Its name.");
const KIND: (&str, &str) = ("kind", "Its kind.");
const STREAM: (&str, &str) = ("stream", "Its stream; -1 for none.");
const CORRELATION: (&str, &str) =
    ("correlation", "What a call and the work that it launched have in common; -1 for nothing.");
const START: (&str, &str) = ("start", "Its start, rounded.");
const FINISH: (&str, &str) = ("finish", "Its finish, rounded; before its start for a short span.");

pub(super) static VIEWS: [ViewSpec; 5] = [
    ViewSpec {
        name: "ranks",
        // A Kineto file is a rank: that of the directory, else of `distributedInfo`, else 0. So is a process of Nsight Systems.
        description: "Every location of the program that is no asynchronous one, with its rank.",
        sql: "SELECT l.run, l.location, coalesce(l.parent, l.location) AS device, \
                coalesce(TRY_CAST(d.process AS BIGINT), json_get_int(r.args, 'distributedInfo', 'rank'), CASE WHEN r.format = 'nsys' \
                  THEN CAST(dense_rank() OVER (PARTITION BY l.run ORDER BY l.process) AS BIGINT) - 1 END, 0) AS rank, \
                r.origin - coalesce(json_get_int(d.args, 'baseTimeNanoseconds'), 0) AS zero, \
                coalesce(d.args->>'first_phase', r.args->>'first_phase') AS first_phase \
              FROM tq.main.program_locations l JOIN tq.main.runs r ON r.run = l.run \
              LEFT JOIN tq.main.program_locations d ON d.run = l.run AND d.kind = 'rank' AND d.location = l.clock \
              WHERE l.kind <> 'async'",
        columns: &[
            RUN,
            ("location", "The location."),
            ("device", "The location above it, else itself."),
            RANK,
            ("zero", "The file's own time at our 0, in ns."),
            ("first_phase", "The phase of the file's first event."),
        ],
    },
    ViewSpec {
        name: "spans",
        // Where a `ts` of the file has decimals, every span shrinks to whole microseconds, and a short one ends before it starts. HTA
        // reads the numbers of the file as doubles, which are coarse for absolute times; so do we here.
        description: "The rows that HTA keeps: spans with a category, rounded as it does where the times of a rank have decimals.",
        sql: "WITH recorded AS ( \
                SELECT r.run, r.rank, r.zero, r.device, t.location, t.task, t.name, t.kind, t.start, t.finish, t.args, \
                  r.zero + t.start / (us(1) / 1000) AS start_ns, \
                  CASE WHEN t.args LIKE '%\"stream\"%' THEN coalesce(TRY_CAST(t.args->>'stream' AS BIGINT), -1) ELSE -1 END AS stream, \
                  CASE WHEN t.args LIKE '%\"correlation\"%' THEN coalesce(json_get_int(t.args, 'correlation'), -1) ELSE -1 END AS correlation \
                FROM tq.main.program_tasks t JOIN tq.hta.ranks r ON r.run = t.run AND r.location = t.location \
                WHERE t.kind NOT IN ('', 'Trace') AND t.finish IS NOT NULL \
              ), resolution AS ( \
                SELECT run, rank, bool_or(start_ns % 1000 <> 0) AS is_broken FROM recorded GROUP BY run, rank \
              ), measured AS ( \
                SELECT e.*, start_ns / 1000 + start_ns % 1000 / 1000.0 AS start_us, \
                  (e.finish - e.start) / (us(1) / 1000) / 1000.0 AS duration_us, is_broken \
                FROM recorded e JOIN resolution r ON r.run = e.run AND r.rank = e.rank) \
              SELECT run, rank, device, location, task, name, kind, stream, correlation, args, \
                (stream >= 0 AND correlation >= 0) OR name IN ('Event Sync', 'Context Sync') AS is_device, \
                name LIKE '%ProfilerStep%' AS is_step, name IN ('cudaMemsetAsync', 'cudaMemcpyAsync', 'cudaLaunchKernel', \
                  'cudaLaunchKernelExC', 'cuLaunchKernel', 'runFunction - job_prep_and_submit_for_execution', 'hipLaunchKernel', \
                  'hipExtModuleLaunchKernel', 'hipMemsetAsync', 'hipMemcpyAsync', 'hipMemcpyWithStream') AS is_launch_call, \
                CASE WHEN is_broken THEN us(CAST(ceil(start_us) AS BIGINT) - zero / 1000) ELSE start END AS start, \
                CASE WHEN is_broken THEN us(CAST(floor(start_us + duration_us) AS BIGINT) - zero / 1000) ELSE finish END AS finish \
              FROM measured",
        columns: &[
            RUN,
            RANK,
            ("device", "The location above its own, else that."),
            ("location", "Its location."),
            TASK,
            NAME,
            KIND,
            STREAM,
            CORRELATION,
            ("args", "What the trace says of it."),
            ("is_device", "Whether HTA takes it for work of a device."),
            ("is_step", "Whether it is a step of PyTorch's profiler."),
            ("is_launch_call", "Whether it is one of the calls that HTA's queue length takes for launches."),
            START,
            FINISH,
        ],
    },
    ViewSpec {
        name: "events",
        description: "The spans with what HTA's trimming asks: with two or more steps of the profiler it keeps the host's spans that \
                      start before the last one, and what those launched.",
        sql: "WITH step_names AS ( \
                SELECT run, count(DISTINCT name) AS steps FROM tq.hta.spans WHERE is_step GROUP BY run \
              ), last_steps AS ( \
                SELECT run, rank, max(start) AS last_step FROM tq.hta.spans WHERE is_step AND NOT is_device GROUP BY run, rank) \
              SELECT e.run, e.rank, e.task, e.name, e.kind, e.stream, e.correlation, e.is_device, e.is_launch_call, e.start, e.finish, \
                coalesce(n.steps, 0) < 2 AS is_whole, e.start < s.last_step AS is_early \
              FROM tq.hta.spans e LEFT JOIN step_names n ON n.run = e.run \
              LEFT JOIN last_steps s ON s.run = e.run AND s.rank = e.rank",
        columns: &[
            RUN,
            RANK,
            TASK,
            NAME,
            KIND,
            STREAM,
            CORRELATION,
            ("is_device", "Whether HTA takes it for work of a device."),
            ("is_launch_call", "Whether it is one of the calls that HTA's queue length takes for launches."),
            START,
            FINISH,
            ("is_whole", "Whether nothing of the run is trimmed."),
            ("is_early", "Whether it starts before the last step; NULL where the rank has none."),
        ],
    },
    ViewSpec {
        name: "device_spans",
        // The device's spans have a stream; two calls of one correlation make two rows of a kernel.
        description: "What HTA keeps of the devices' spans, waits of `cuda_sync` among them, a row for each call that launched it.",
        sql: "WITH launches AS ( \
                SELECT run, rank, correlation FROM tq.hta.events WHERE NOT is_whole AND is_early AND NOT is_device AND correlation >= 0) \
              SELECT e.run, e.rank, e.task, e.name, e.kind, e.stream, e.correlation, e.start, e.finish, CASE \
                  WHEN name ~ '^nccl.*Kernel' THEN 'COMMUNICATION' WHEN name ~ '^(Memcpy|Memset|dma)' THEN 'MEMORY' \
                  WHEN name ~ '^(.*Memcpy|Memset|.*Sync)' THEN 'OTHER' ELSE 'COMPUTATION' END AS class \
              FROM tq.hta.events e LEFT JOIN launches l ON l.run = e.run AND l.rank = e.rank AND l.correlation = e.correlation \
              WHERE e.stream <> -1 AND (is_whole OR (is_device AND l.correlation IS NOT NULL) OR (NOT is_device AND is_early))",
        columns: &[
            RUN,
            RANK,
            TASK,
            NAME,
            KIND,
            STREAM,
            CORRELATION,
            START,
            FINISH,
            ("class", "COMPUTATION, COMMUNICATION, MEMORY or OTHER."),
        ],
    },
    ViewSpec {
        name: "first_spans",
        description: "The first task of each rank whose file begins with a span: HTA takes its row for that of no correlation.",
        sql: "SELECT r.run, r.rank, min(t.task) AS task FROM tq.main.program_tasks t \
              JOIN tq.hta.ranks r ON r.run = t.run AND r.location = t.location WHERE r.first_phase = 'X' GROUP BY r.run, r.rank",
        columns: &[RUN, RANK, TASK],
    },
];
