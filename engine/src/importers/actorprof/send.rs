//! `PE<i>_send.csv`: a line per `send()`, before aggregation.
//!
//! A block of lines becomes columns at once: the target's number is its key in the dictionary of PEs; source and size are
//! mostly the same in every line and then cost nothing. A line that begins like the one before is compared and not parsed, and
//! is not even scanned for its end. In a real program, nineteen of twenty lines have the target of the line before: of these,
//! only the decimals of the time are parsed.
//!
//! ```text
//! 0, 12, 1, 30, 16, 1732150000.123456⏎
//! 0, 12, 3, 7, 16, 1732150000.123471⏎
//! ^^^^^^^ head  ^^^^^^^^^^^^^^^^^ middle: these bytes again; what is left are a node, a PE, so many decimals and the end
//! ```

use hashbrown::HashSet;

use super::line::{Fields, Lines, NO_TIME, PE_MAX, Tally};
use crate::time::REACH;
use crate::trace::Block;

/// A column that is mostly one value.
#[derive(Debug, PartialEq)]
pub(super) enum Mostly<T> {
    None,
    One(T),
    Each(Vec<T>),
}

impl<T: Copy + PartialEq> Mostly<T> {
    /// The value of the last row.
    fn last(&self) -> Option<&T> {
        match self {
            Mostly::None => None,
            Mostly::One(one) => Some(one),
            Mostly::Each(each) => each.last(),
        }
    }

    /// Adds one value for `count` rows from row `rows` on.
    fn repeat(&mut self, value: T, count: usize, rows: usize) {
        if count > 0 {
            self.push(value, rows);
        }
        if let Mostly::Each(each) = self {
            each.resize(rows + count, value);
        }
    }

    /// Adds the value of row `rows`.
    #[inline]
    pub(super) fn push(&mut self, value: T, rows: usize) {
        match self {
            Mostly::One(one) if *one == value => {}
            Mostly::Each(each) => each.push(value),
            Mostly::None => *self = Mostly::One(value),
            Mostly::One(one) => {
                let mut each = vec![*one; rows];
                each.push(value);
                *self = Mostly::Each(each);
            }
        }
    }
}

/// Which node a PE is on, as lines say.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    of: Vec<Option<i32>>,
    conflict: Vec<i32>,
    /// The same, to look them up.
    conflicting: HashSet<i32>,
}

impl Nodes {
    /// Notes a mention.
    #[inline]
    pub(super) fn meet(&mut self, pe: i32, node: i32) {
        match self.of.get(pe as usize) {
            Some(Some(known)) if *known == node => {}
            _ => self.learn(pe, node),
        }
    }

    #[cold]
    fn learn(&mut self, pe: i32, node: i32) {
        let place = pe as usize;
        if self.of.len() <= place {
            self.of.resize(place + 1, None);
        }
        match self.of[place] {
            None => self.of[place] = Some(node),
            Some(_) => {
                if self.conflict.last() != Some(&pe) && self.conflicting.insert(pe) {
                    self.conflict.push(pe);
                }
            }
        }
    }

    /// The node that a PE's own file names, which counts more than what others say.
    pub(super) fn correct(&mut self, pe: i32, node: i32) {
        self.meet(pe, node);
        self.of[pe as usize] = Some(node);
    }

    /// Takes over what another block said.
    pub(super) fn absorb(&mut self, other: &Nodes) {
        for (pe, node) in (0..).zip(&other.of) {
            if let Some(node) = node {
                self.meet(pe, *node);
            }
        }
        for pe in &other.conflict {
            if self.conflicting.insert(*pe) {
                self.conflict.push(*pe);
            }
        }
    }

    pub(super) fn node(&self, pe: i32) -> Option<i32> {
        self.of.get(pe as usize).copied().flatten()
    }

    /// PEs that are said to be on several nodes.
    pub(super) fn conflicts(&self) -> &[i32] {
        &self.conflict
    }

    /// The largest PE that was met.
    pub(super) fn largest(&self) -> Option<i32> {
        self.of.iter().rposition(Option::is_some).map(|pe| pe as i32)
    }
}

/// Stamps of lines in their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamps {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) backwards: u64,
}

impl Stamps {
    pub(super) fn none() -> Stamps {
        Stamps { first: NO_TIME, last: NO_TIME, least: i64::MAX, most: i64::MIN, backwards: 0 }
    }

    #[inline]
    pub(super) fn meet(&mut self, stamp: i64) {
        // Before the first stamp, `last` is below every time.
        self.backwards += u64::from(stamp < self.last);
        if self.first == NO_TIME {
            self.first = stamp;
        }
        self.last = stamp;
        self.least = self.least.min(stamp);
        self.most = self.most.max(stamp);
    }

    /// Continues with the stamps that follow.
    pub(super) fn then(&mut self, next: &Stamps) {
        if next.first == NO_TIME {
            return;
        }
        self.backwards += next.backwards + u64::from(next.first < self.last);
        if self.first == NO_TIME {
            self.first = next.first;
        }
        self.last = next.last;
        self.least = self.least.min(next.least);
        self.most = self.most.max(next.most);
    }
}

/// The columns of a block of sends.
pub(super) struct Sends {
    pub(super) sources: Mostly<i32>,
    pub(super) targets: Vec<i32>,
    pub(super) bytes: Mostly<i64>,
    /// Nanoseconds since 1970; [`NO_TIME`] of lines without.
    pub(super) times: Vec<i64>,
    pub(super) without_time: u64,
    pub(super) stamps: Stamps,
    pub(super) nodes: Nodes,
    /// The node that the source calls its own.
    pub(super) own_node: Option<(i32, i32)>,
    pub(super) tally: Tally,
}

/// So many lines in a row may be unlike their example before it is not made anew for each.
const MISSES_MAX: u32 = 16;

/// Up to `N` bytes that are compared at once.
#[derive(Debug, Clone, Copy)]
struct Part<const N: usize> {
    bytes: [u8; N],
    /// 255 where there is a byte.
    mask: [u8; N],
    length: usize,
}

impl<const N: usize> Part<N> {
    fn of(part: &[u8]) -> Option<Part<N>> {
        let (mut bytes, mut mask) = ([0; N], [0; N]);
        bytes.get_mut(..part.len())?.copy_from_slice(part);
        mask[..part.len()].fill(u8::MAX);
        Some(Part { bytes, mask, length: part.len() })
    }

    /// What follows this part at the beginning of `text`; `None` also where `text` has less than `N` bytes.
    #[inline(always)]
    fn strip<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let begin: &[u8; N] = text.first_chunk()?;
        // No branch per byte: this becomes a few instructions on whole registers.
        let differing = (0..N).fold(0, |differing, at| differing | ((begin[at] ^ self.bytes[at]) & self.mask[at]));
        (differing == 0).then(|| &text[self.length..])
    }
}

/// Eight bytes, each a digit's value where it is a digit.
#[inline(always)]
fn eight_values(text: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*text.first_chunk()?) ^ 0x3030_3030_3030_3030)
}

/// The high bit of each of eight values that is no digit's.
#[inline(always)]
fn not_digits(values: u64) -> u64 {
    (((values & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080
}

/// The number of eight digits by their values, the first of them the lowest byte.
#[inline(always)]
fn eight_digits(digits: u64) -> i64 {
    // Neighbours become pairs, pairs fours, fours the number: three multiplications instead of eight.
    let pairs = digits.wrapping_mul(2561) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    ((fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32) as i64
}

/// A number of one to seven digits, and what follows it; `None` also where `text` has less than eight bytes.
#[inline(always)]
fn small_number(text: &[u8]) -> Option<(i32, &[u8])> {
    let values = eight_values(text)?;
    let count = (not_digits(values).trailing_zeros() / 8) as usize;
    if count == 0 || count > 7 {
        return None;
    }
    // What follows is shifted out, zeros come before the digits.
    let number = eight_digits(values << (64 - 8 * count));
    Some((number as i32, &text[count..]))
}

/// A line that the next ones are compared with.
#[derive(Debug)]
struct Example {
    /// What stands before the target's node.
    head: Part<16>,
    /// What stands between the target's PE and the decimals of the time.
    middle: Part<32>,
    source: i32,
    bytes: i64,
    /// Whole seconds since 1970 in nanoseconds.
    seconds: i64,
    /// How many decimals the time has, one to eight, and nanoseconds of the last one.
    decimals: usize,
    last_decimal: i64,
}

impl Example {
    /// The example that a line gives, which was read: one with nothing odd about it, whose time has one to eight decimals.
    fn of(line: &[u8], source: i32, bytes: i64, time: i64) -> Option<Example> {
        let comma = |from: usize| memchr::memchr(b',', &line[from..]).map(|at| from + at);
        let source_ends = comma(comma(0)? + 1)?;
        let target_ends = comma(comma(source_ends + 1)? + 1)?;
        let head = line.get(..source_ends + 2)?;
        let point = memchr::memchr(b'.', &line[target_ends..]).map(|at| target_ends + at)?;
        let middle = &line[target_ends..=point];
        let is_tight = |part: &[u8]| part.windows(2).any(|pair| pair[0] == b',' && pair[1] != b' ');
        let decimals = line.len() - point - 1;
        let are_digits = line[point + 1..].iter().all(u8::is_ascii_digit) && (1..=8).contains(&decimals);
        let last_decimal = 10i64.pow(u32::try_from(9usize.checked_sub(decimals)?).ok()?);
        let seconds = time - time.rem_euclid(1_000_000_000);
        // Decimals cannot carry such a time out of reach.
        let is_plain = time >= 0 && seconds < REACH.end - 1_000_000_000 && !is_tight(head) && !is_tight(middle);
        let (head, middle) = (Part::of(head)?, Part::of(middle)?);
        (is_plain && are_digits).then_some(Example { head, middle, source, bytes, seconds, decimals, last_decimal })
    }

    /// The node and PE of the target and the time of the line at the beginning of `text`, and what follows its end; `None`
    /// where it is unlike this one, or may be.
    #[inline(always)]
    fn read<'t>(&self, text: &'t [u8]) -> Option<(i32, i32, i64, &'t [u8])> {
        let rest = self.head.strip(text)?;
        let (node, rest) = small_number(rest)?;
        let (target, rest) = small_number(rest.strip_prefix(b", ")?)?;
        let (time, rest) = self.time(self.middle.strip(rest)?)?;
        (i64::from(target) <= PE_MAX).then_some((node, target, time, rest))
    }

    /// The time whose decimals and the end of its line are the beginning of `text`, and what follows that.
    #[inline(always)]
    fn time<'t>(&self, text: &'t [u8]) -> Option<(i64, &'t [u8])> {
        let decimals = eight_values(text)? << (64 - 8 * self.decimals);
        if not_digits(decimals) != 0 || text.get(self.decimals) != Some(&b'\n') {
            return None;
        }
        Some((self.seconds + eight_digits(decimals) * self.last_decimal, &text[self.decimals + 1..]))
    }
}

/// How many lines a text has if they are all about as long as the first ones: room for a few more than there are costs less
/// than to count them.
fn probably_lines(text: &[u8]) -> usize {
    const LOOKED_AT_BYTES: usize = 4 << 10;
    let begin = &text[..text.len().min(LOOKED_AT_BYTES)];
    let lines = memchr::memchr_iter(b'\n', begin).count().max(1);
    let of_all = text.len().div_ceil(begin.len().max(1)) * lines;
    of_all + of_all / 16
}

/// Parses a block.
pub(super) fn parse(block: Block<'_>) -> Sends {
    let lines = probably_lines(block.bytes);
    let mut sends = Sends {
        sources: Mostly::None,
        targets: Vec::with_capacity(lines),
        bytes: Mostly::None,
        times: Vec::with_capacity(lines),
        without_time: 0,
        stamps: Stamps::none(),
        nodes: Nodes::default(),
        own_node: None,
        tally: Tally::default(),
    };
    let mut lines = Lines::new(block.bytes, block.last);
    let (mut example, mut misses) = (None, 0);
    loop {
        if let Some(example) = &example {
            let (count, rest) = sends.read_like(example, lines.rest());
            lines.step(count, rest);
            if count > 0 {
                misses = 0;
            }
        }
        let Some(line) = lines.next() else { break };
        let is_read = sends.read(line, &mut lines.tally).is_some();
        if !is_read {
            lines.tally.note_bad(line);
        }
        // Where no line is like the one before, examples are made now and then only.
        misses += 1;
        if misses <= MISSES_MAX || misses % MISSES_MAX == 0 {
            let last = sends.last().filter(|_| is_read);
            example = last.and_then(|(source, bytes, time)| Example::of(line, source, bytes, time));
        }
    }
    sends.tally = lines.tally;
    sends
}

impl Sends {
    /// The source, size and time of the last line.
    fn last(&self) -> Option<(i32, i64, i64)> {
        let time = *self.times.last()?;
        Some((*self.sources.last()?, *self.bytes.last()?, time))
    }

    /// Reads the lines at the beginning of `text` that differ from an example in their targets and in the decimals of their
    /// times: how many, and what follows them.
    fn read_like<'t>(&mut self, example: &Example, mut text: &'t [u8]) -> (usize, &'t [u8]) {
        let rows = self.targets.len();
        let (mut stamps, mut before) = (self.stamps, None);
        while let Some((node, target, time, rest)) = example.read(text) {
            self.targets.push(target);
            self.times.push(time);
            stamps.meet(time);
            self.nodes.meet(target, node);
            let line = &text[..text.len() - rest.len()];
            text = rest;
            // A second line to the same target: more of them may follow, which are like this one up to the decimals.
            if before.replace(target) == Some(target) {
                let Some(same) = Part::<64>::of(&line[..line.len() - example.decimals - 1]) else { continue };
                while let Some((time, rest)) = same.strip(text).and_then(|decimals| example.time(decimals)) {
                    self.times.push(time);
                    stamps.meet(time);
                    text = rest;
                }
                self.targets.resize(self.times.len(), target);
            }
        }
        self.stamps = stamps;
        let count = self.targets.len() - rows;
        self.sources.repeat(example.source, count, rows);
        self.bytes.repeat(example.bytes, count, rows);
        (count, text)
    }

    #[inline]
    fn push(&mut self, source: i32, target: i32, bytes: i64, time: i64) {
        let rows = self.targets.len();
        self.sources.push(source, rows);
        self.targets.push(target);
        self.bytes.push(bytes, rows);
        self.times.push(time);
        if time == NO_TIME {
            self.without_time += 1;
        } else {
            self.stamps.meet(time);
        }
    }

    #[inline]
    fn read(&mut self, line: &[u8], tally: &mut Tally) -> Option<()> {
        let mut fields = Fields::new(line);
        let source_node = fields.node().filter(|_| fields.comma())?;
        let source = fields.pe().filter(|_| fields.comma())?;
        let target_node = fields.node().filter(|_| fields.comma())?;
        let target = fields.pe().filter(|_| fields.comma())?;
        let bytes = fields.integer()?;
        let time = match fields.comma() {
            true => fields.stamp().filter(|_| !fields.comma())?,
            false => NO_TIME,
        };
        if !fields.ended() {
            return None;
        }
        self.push(source, target, bytes, time);
        self.nodes.meet(target, target_node);
        if self.own_node != Some((source, source_node)) {
            self.nodes.correct(source, source_node);
            self.own_node = Some((source, source_node));
        }
        tally.trailing_comma += u64::from(fields.trailing);
        tally.tight += u64::from(fields.tight);
        tally.rounded += u64::from(fields.rounded);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sends(text: &str) -> Sends {
        parse(Block { bytes: text.as_bytes(), offset: 0, last: true })
    }

    #[test]
    fn eight_digits_are_a_number() {
        for number in [0, 1, 7, 10, 99, 123_456, 20_000_000, 12_345_678, 99_999_999] {
            let digits = format!("{number:08}").into_bytes();
            let digits: [u8; 8] =
                digits.iter().map(|digit| digit - b'0').collect::<Vec<_>>().try_into().expect("eight");
            assert_eq!(eight_digits(u64::from_le_bytes(digits)), number);
        }
    }

    #[test]
    fn five_and_six_columns_and_odd_commas() {
        let sends = sends("0, 0, 1, 2, 16, 1.5\n0, 0, 1, 2, 16\n0,0,1,3,24,1.25,\n0, 0, 1\n0, 0, 1, 2, 16, 1.5");
        assert_eq!(sends.targets, [2, 2, 3]);
        assert_eq!(sends.sources, Mostly::One(0));
        assert_eq!(sends.bytes, Mostly::Each(vec![16, 16, 24]));
        assert_eq!(sends.times, [1_500_000_000, NO_TIME, 1_250_000_000]);
        assert_eq!((sends.without_time, sends.stamps.backwards), (1, 1));
        let tally = &sends.tally;
        assert_eq!((tally.lines, tally.bad, tally.torn, tally.trailing_comma, tally.tight), (5, 1, 1, 1, 1));
        assert_eq!(tally.example.as_deref(), Some("0, 0, 1"));
    }

    /// Source, target, bytes and time.
    type Row = (i32, i32, i64, i64);

    /// Everything that lines leave behind but the example of a bad one.
    fn seen(text: &str) -> (Vec<Row>, [u64; 6]) {
        fn at<T: Copy>(column: &Mostly<T>, row: usize) -> T {
            match column {
                Mostly::One(one) => *one,
                Mostly::Each(each) => each[row],
                Mostly::None => panic!("a row without a value"),
            }
        }
        let sends = sends(text);
        let rows = sends.targets.iter().zip(&sends.times).enumerate();
        let rows = rows.map(|(row, (target, time))| (at(&sends.sources, row), *target, at(&sends.bytes, row), *time));
        let Tally { lines, bad, torn, trailing_comma, tight, .. } = sends.tally;
        (rows.collect(), [lines, bad, torn, trailing_comma, tight, sends.without_time])
    }

    #[test]
    fn what_differs_from_the_line_before_is_seen() {
        let line = "0, 3, 1, 30, 16, 1732150000.123456";
        let example = Example::of(line.as_bytes(), 3, 16, 1_732_150_000_123_456_000).unwrap();
        let like = |line: &str| example.read(format!("{line}\n{:32}", "").as_bytes()).is_some();
        assert!(like(line) && like("0, 3, 0, 7, 16, 1732150000.000000"));
        for other in [
            "0, 4, 1, 30, 16, 1732150000.123456",
            "0, 3, 1, 30, 24, 1732150000.123456",
            "0, 3, 1, 30, 16, 1732150001.123456",
            "0, 3, 1, 30, 16, 1732150000.12345",
            "0, 3, 1, 30, 16, 1732150000.1234567",
            "0, 3, 1, 1048576, 16, 1732150000.123456",
            "0, 3, -1, 30, 16, 1732150000.123456",
            "0, 3, 1,30, 16, 1732150000.123456",
            "0, 3, 1, 30, 16, 1732150000.123456,",
            "0, 3, 1, 30, 16",
        ] {
            assert!(!like(other), "{other}");
        }
        // The first time is in reach, the second is not.
        let (rows, counts) = seen("0, 3, 1, 30, 16, 4611686018.4\n0, 3, 1, 30, 16, 4611686018.9\n");
        assert_eq!((rows.len(), counts[1]), (1, 1));
    }

    proptest! {
        /// A line means the same behind any other as alone.
        #[test]
        fn lines_do_not_colour_each_other(
            lines in vec(("(0|7|-1)(, ?|,\t| ,)(3|12), ", "(0|1|-1), (30|7|1048575|1048576|99999999)", ", ?(16|24)", "(, ?(1732150000|1732150001|4611686018)([.][0-9]{5,9})?)?,?"), 1..20)
        ) {
            let lines: Vec<String> = lines.into_iter().map(|(head, target, bytes, time)| head + &target + &bytes + &time + "\n").collect();
            let (rows, counts) = seen(&lines.concat());
            let (mut rows_alone, mut counts_alone) = (Vec::new(), [0; 6]);
            for line in &lines {
                let (rows, counts) = seen(line);
                rows_alone.extend(rows);
                counts_alone.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            prop_assert_eq!((rows, counts), (rows_alone, counts_alone));
        }
    }

    #[test]
    fn what_is_no_send_is_bad() {
        for line in
            ["0, 0, 1, 2, 16, 1.5, 3", "a, 0, 1, 2, 16", "0, 0, 1, 2, 16 16", "0, 0, 1, 99999999, 16", "0, 0, 1, 2"]
        {
            let sends = sends(&format!("{line}\n"));
            assert_eq!((sends.targets.len(), sends.tally.bad), (0, 1), "{line}");
        }
    }

    #[test]
    fn nodes_of_pes_may_disagree() {
        let mut nodes = Nodes::default();
        nodes.meet(5, 1);
        nodes.correct(5, 2);
        nodes.meet(5, 2);
        assert_eq!(
            (nodes.node(5), nodes.conflicts(), nodes.largest(), nodes.node(9)),
            (Some(2), &[5][..], Some(5), None)
        );
    }
}
