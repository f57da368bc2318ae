//! The schema `actorprof`: the messages of each processing element (PE), including PEs without messages.

use super::RUN;
use crate::tables::ViewSpec;

pub(super) static VIEWS: [ViewSpec; 1] = [ViewSpec {
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
}];
