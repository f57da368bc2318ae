//! The schema `actorprof`: the messages of each processing element (PE), including PEs without messages, and what all PEs spend cycles on.

use super::RUN;
use crate::tables::ViewSpec;

pub(super) static VIEWS: [ViewSpec; 2] = [TOTALS, CYCLES];

const TOTALS: ViewSpec = ViewSpec {
    name: "totals",
    description: "How many messages of each kind a PE sent and received; a row with 0 for a kind of which it has none.",
    sql: "WITH kinds AS ( \
            SELECT run, kind, unnest(make_array('send', 'recv')) AS direction FROM ( \
              SELECT DISTINCT run, kind FROM tq.main.messages WHERE kind IN ('logical', 'local_send', 'nonblock_send')) \
          ), sums AS ( \
            SELECT run, kind, 'send' AS direction, source AS location, sum(count) AS messages FROM tq.main.messages GROUP BY run, kind, source \
            UNION ALL \
            SELECT run, kind, 'recv', target, sum(count) FROM tq.main.messages GROUP BY run, kind, target) \
          SELECT p.run, k.kind, k.direction, p.location AS pe, p.sort_index, coalesce(s.messages, 0) AS messages \
          FROM tq.main.program_locations p JOIN kinds k ON k.run = p.run \
          LEFT JOIN sums s ON s.run = p.run AND s.kind = k.kind AND s.direction = k.direction AND s.location = p.location \
          WHERE p.kind = 'pe'",
    columns: &[
        RUN,
        ("kind", "logical, local_send or nonblock_send."),
        ("direction", "send or recv."),
        ("pe", "The PE."),
        ("sort_index", "Its place among the others."),
        ("messages", "How many."),
    ],
};

const CYCLES: ViewSpec = ViewSpec {
    name: "cycles",
    description: "What the PEs of a run spend cycles on, in all, and who communicates most and least. PEs whose clocks contradict each other (a part below 0) are left out.",
    sql: "WITH parts AS ( \
            SELECT c.run, c.location AS pe, l.sort_index, \
              sum(c.value) FILTER (WHERE c.name = 'T_MAIN') AS main, sum(c.value) FILTER (WHERE c.name = 'T_COMM') AS communication, \
              sum(c.value) FILTER (WHERE c.name = 'T_PROC') AS handlers \
            FROM tq.main.counters c JOIN tq.main.program_locations l ON l.run = c.run AND l.location = c.location \
            WHERE c.kind = 'total' AND c.name IN ('T_MAIN', 'T_COMM', 'T_PROC') \
            GROUP BY c.run, c.location, l.sort_index \
          ), shares AS ( \
            SELECT *, main + communication + handlers AS cycles, communication / (main + communication + handlers) AS share FROM parts \
            WHERE main >= 0 AND communication >= 0 AND handlers >= 0 AND main + communication + handlers > 0 \
          ) \
          SELECT run, count(*) AS pes, sum(main) AS main, sum(communication) AS communication, sum(handlers) AS handlers, sum(cycles) AS cycles, \
            first_value(pe ORDER BY share DESC, sort_index) AS most_communicating, max(share) AS most_share, \
            first_value(pe ORDER BY share, sort_index) AS least_communicating, min(share) AS least_share \
          FROM shares GROUP BY run",
    columns: &[
        RUN,
        ("pes", "PEs that count."),
        ("main", "Their cycles in the main part (T_MAIN)."),
        (
            "communication",
            "Sending, and waiting for what others send, without the handlers that run meanwhile (T_COMM).",
        ),
        ("handlers", "Handlers of messages (T_PROC)."),
        ("cycles", "The three together."),
        ("most_communicating", "The PE with the greatest share of communication."),
        ("most_share", "That share, of 1."),
        ("least_communicating", "The PE with the smallest share of communication."),
        ("least_share", "That share, of 1."),
    ],
};
