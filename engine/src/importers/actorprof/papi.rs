//! `PE<i>_PAPI.csv`: a line per handled message, written by the PE that handles it, and one for the main part.
//!
//! ```text
//! source node, source PE, node, PE, bytes, mailbox, sends, counter …, time
//! 0, 3, 1, 4, 16, 0, 1, 75, 22, 1732150000.500020      mailbox -1: the main part
//! ```
//! The names of the counters are not in the file: two are `PAPI_TOT_INS` and `PAPI_LST_INS`, other numbers of them
//! `PAPI_0`, `PAPI_1` …

use super::line::{Fields, NO_TIME, Tally, each_line};
use super::send::{Nodes, Stamps};
use crate::trace::Block;

/// The mailbox of the main part.
pub(super) const MAIN: i64 = -1;

/// No build has more.
const COUNTERS_MAX: usize = 8;

/// A handled message, or a main part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Section {
    pub(super) source: i32,
    pub(super) target: i32,
    pub(super) bytes: i64,
    pub(super) mailbox: i64,
    pub(super) sends: i64,
    /// Nanoseconds since 1970, or [`NO_TIME`].
    pub(super) time: i64,
    pub(super) counters: [i64; COUNTERS_MAX],
    pub(super) counted: usize,
}

/// The sections of a block.
pub(super) struct Sections {
    pub(super) sections: Vec<Section>,
    pub(super) stamps: Stamps,
    pub(super) nodes: Nodes,
    /// The PE that handles, and the node that it calls its own.
    pub(super) own_node: Option<(i32, i32)>,
    pub(super) tally: Tally,
}

/// Parses a block.
pub(super) fn parse(block: Block<'_>) -> Sections {
    let lines = memchr::memchr_iter(b'\n', block.bytes).count();
    let mut sections = Sections {
        sections: Vec::with_capacity(lines),
        stamps: Stamps::none(),
        nodes: Nodes::default(),
        own_node: None,
        tally: Tally::default(),
    };
    let tally = each_line(block.bytes, block.last, |line, tally| {
        let Some((section, source_node, target_node)) = section(line, tally) else { return false };
        if section.time != NO_TIME {
            sections.stamps.meet(section.time);
        }
        sections.nodes.meet(section.source, source_node);
        sections.nodes.meet(section.target, target_node);
        sections.own_node.get_or_insert((section.target, target_node));
        sections.sections.push(section);
        true
    });
    sections.tally = tally;
    sections
}

/// A line, with the nodes of source and target.
pub(super) fn section(line: &[u8], tally: &mut Tally) -> Option<(Section, i32, i32)> {
    let mut fields = Fields::new(line);
    let source_node = fields.node().filter(|_| fields.comma())?;
    let source = fields.pe().filter(|_| fields.comma())?;
    let target_node = fields.node().filter(|_| fields.comma())?;
    let target = fields.pe().filter(|_| fields.comma())?;
    let bytes = fields.integer().filter(|_| fields.comma())?;
    let mailbox = fields.integer().filter(|_| fields.comma())?;
    let sends = fields.integer()?;
    let mut section =
        Section { source, target, bytes, mailbox, sends, time: NO_TIME, counters: [0; COUNTERS_MAX], counted: 0 };
    while section.time == NO_TIME && fields.comma() {
        if fields.is_time() {
            section.time = fields.stamp()?;
        } else {
            *section.counters.get_mut(section.counted)? = fields.integer()?;
            section.counted += 1;
        }
    }
    if section.counted == 0 || (section.time != NO_TIME && fields.comma()) || !fields.ended() {
        return None;
    }
    tally.trailing_comma += u64::from(fields.trailing);
    tally.tight += u64::from(fields.tight);
    tally.rounded += u64::from(fields.rounded);
    Some((section, source_node, target_node))
}

/// The name of the counter number `counter` in a file that has `of` of them.
pub(super) fn counter_name(counter: usize, of: usize) -> String {
    match (of, counter) {
        (2, 0) => "PAPI_TOT_INS".to_owned(),
        (2, _) => "PAPI_LST_INS".to_owned(),
        _ => format!("PAPI_{counter}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_and_ten_columns_and_more() {
        let read = |line: &str| section(line.as_bytes(), &mut Tally::default()).map(|read| read.0);
        let ten = read("1, 4, 0, 0, 16, 0, 1, 75, 22, 1.5").expect("ten columns");
        assert_eq!((ten.source, ten.target, ten.mailbox, ten.sends, ten.time), (4, 0, 0, 1, 1_500_000_000));
        assert_eq!((ten.counted, ten.counters[0], ten.counters[1]), (2, 75, 22));
        let nine = read("0,0,0,0,0,-1,5,400,130,").expect("nine columns");
        assert_eq!((nine.mailbox, nine.sends, nine.time, nine.counted), (MAIN, 5, NO_TIME, 2));
        let eleven = read("1, 4, 0, 0, 16, 0, 1, 75, 22, 9, 1.5").expect("three counters");
        assert_eq!((eleven.counted, eleven.counters[2]), (3, 9));
        assert_eq!((counter_name(1, 2), counter_name(1, 3)), ("PAPI_LST_INS".to_owned(), "PAPI_1".to_owned()));
        for wrong in ["1, 4, 0, 0, 16, 0, 1", "1, 4, 0, 0, 16, 0, 1, 1.5, 7", "1, 4, 0, 0, 16, 0, 1, 75, x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
