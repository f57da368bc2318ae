//! Parses lines of numbers byte by byte: no string is allocated, nothing is copied.
//!
//! ```text
//! 0, 12, 1, 30, 16, 1732150000.123456⏎     node, PE, node, PE, bytes, time
//! ```

use crate::time::{Decimal, REACH};

/// A time that a line does not have.
pub(super) const NO_TIME: i64 = i64::MIN;

/// PE numbers beyond this are damage: every PE up to the largest has a row in `locations`.
pub(super) const PE_MAX: i64 = (1 << 20) - 1;

/// A place in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'l> {
    line: &'l [u8],
    at: usize,
    /// Whether a comma without a blank behind it was met.
    pub(super) tight: bool,
    /// Whether the line ends in a comma.
    pub(super) trailing: bool,
    /// Whether a time said more than a nanosecond.
    pub(super) rounded: bool,
}

impl<'l> Fields<'l> {
    pub(super) fn new(line: &'l [u8]) -> Fields<'l> {
        Fields { line, at: 0, tight: false, trailing: false, rounded: false }
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// A whole number.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<i64> {
        self.blanks();
        let negative = self.line.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let from = self.at;
        let mut value: i64 = 0;
        while let Some(digit) = self.line.get(self.at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            self.at += 1;
        }
        // Eighteen digits always fit.
        let fits = (1..=18).contains(&(self.at - from));
        fits.then(|| if negative { -value } else { value })
    }

    /// The number of a PE.
    #[inline]
    pub(super) fn pe(&mut self) -> Option<i32> {
        self.integer().filter(|pe| (0..=PE_MAX).contains(pe)).map(|pe| pe as i32)
    }

    /// The number of a node, which may be below 0 where there is no job.
    #[inline]
    pub(super) fn node(&mut self) -> Option<i32> {
        self.integer().and_then(|node| i32::try_from(node).ok())
    }

    /// Skips a comma; `false` when there is none, or only blanks follow it.
    #[inline]
    pub(super) fn comma(&mut self) -> bool {
        self.blanks();
        if self.line.get(self.at) != Some(&b',') {
            return false;
        }
        self.at += 1;
        let blank = matches!(self.line.get(self.at), Some(b' ' | b'\t'));
        self.blanks();
        if self.at == self.line.len() {
            self.trailing = true;
            return false;
        }
        self.tight |= !blank;
        true
    }

    /// Whether the line ends here.
    #[inline]
    pub(super) fn ended(&mut self) -> bool {
        self.blanks();
        self.at == self.line.len()
    }

    /// Seconds since 1970 as nanoseconds: `1732150000.123456`. What is finer is rounded half to even.
    #[inline]
    pub(super) fn stamp(&mut self) -> Option<i64> {
        self.blanks();
        let rest = &self.line[self.at..];
        let length = rest.iter().take_while(|byte| !matches!(byte, b',' | b' ' | b'\t')).count();
        let text = &rest[..length];
        self.at += length;
        if let Some(time) = short_stamp(text) {
            return Some(time);
        }
        // Digits were there on both sides of a point, unless the line was cut.
        let is_whole =
            text.strip_prefix(b"-").unwrap_or(text).first()?.is_ascii_digit() && text.last()?.is_ascii_digit();
        let (time, exact) = Decimal::parse(text).and_then(|seconds| seconds.ticks(9)).ok().filter(|_| is_whole)?;
        self.rounded |= !exact;
        Some(time)
    }

    /// Whether the next field has a point: a time, no number.
    pub(super) fn is_time(&self) -> bool {
        let field = self.line[self.at..].split(|byte| *byte == b',').next().unwrap_or_default();
        field.contains(&b'.')
    }
}

/// The usual spelling: ten digits or fewer, a point, one to nine digits.
#[inline]
fn short_stamp(text: &[u8]) -> Option<i64> {
    let point = memchr::memchr(b'.', text)?;
    let (seconds, decimals) = (&text[..point], &text[point + 1..]);
    if !(1..=10).contains(&seconds.len()) || !(1..=9).contains(&decimals.len()) {
        return None;
    }
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0i64, |value, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| value * 10 + i64::from(digit))
        })
    };
    // Ten digits are 317 years.
    let whole = number(seconds)?.checked_mul(1_000_000_000)?;
    let time = whole.checked_add(number(decimals)? * 10i64.pow(9 - decimals.len() as u32))?;
    REACH.contains(&time).then_some(time)
}

/// What is odd about lines, and how often.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Lines with something in them.
    pub(super) lines: u64,
    pub(super) blank: u64,
    pub(super) trailing_comma: u64,
    pub(super) carriage_return: u64,
    pub(super) tight: u64,
    pub(super) rounded: u64,
    pub(super) bad: u64,
    pub(super) torn: u64,
    /// The first bad or torn line.
    pub(super) example: Option<String>,
}

impl Tally {
    pub(super) fn is_clean(&self) -> bool {
        self.blank + self.trailing_comma + self.carriage_return + self.tight + self.rounded + self.bad + self.torn == 0
    }

    pub(super) fn note_bad(&mut self, line: &[u8]) {
        self.bad += 1;
        self.example.get_or_insert_with(|| shown(line));
    }

    fn note_torn(&mut self, line: &[u8]) {
        self.torn += 1;
        self.example.get_or_insert_with(|| shown(line));
    }
}

/// The beginning of a line, for messages.
pub(super) fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned()
}

/// The lines of a block that have something in them, without their ends. A last line of the source without an end is torn,
/// even where it parses: its last number may be cut.
pub(super) struct Lines<'b> {
    bytes: &'b [u8],
    at: usize,
    last: bool,
    pub(super) tally: Tally,
}

impl<'b> Lines<'b> {
    pub(super) fn new(bytes: &'b [u8], last: bool) -> Lines<'b> {
        Lines { bytes, at: 0, last, tally: Tally::default() }
    }

    /// The bytes from the beginning of the next line on.
    pub(super) fn rest(&self) -> &'b [u8] {
        &self.bytes[self.at..]
    }

    /// Skips `lines` lines that are not empty; `rest` is what follows them.
    pub(super) fn step(&mut self, lines: usize, rest: &'b [u8]) {
        self.tally.lines += lines as u64;
        self.at = self.bytes.len() - rest.len();
    }

    pub(super) fn next(&mut self) -> Option<&'b [u8]> {
        while self.at < self.bytes.len() {
            let Some(length) = memchr::memchr(b'\n', self.rest()) else {
                let line = self.rest();
                self.at = self.bytes.len();
                if !line.trim_ascii().is_empty() {
                    self.tally.lines += 1;
                    // Blocks end at line ends, but for the last one.
                    debug_assert!(self.last);
                    self.tally.note_torn(line);
                }
                break;
            };
            let mut line = &self.rest()[..length];
            self.at += length + 1;
            if line.last() == Some(&b'\r') {
                line = &line[..line.len() - 1];
                self.tally.carriage_return += 1;
            }
            if line.is_empty() || line.trim_ascii().is_empty() {
                self.tally.blank += 1;
                continue;
            }
            self.tally.lines += 1;
            return Some(line);
        }
        None
    }
}

/// Calls `read` with each of the [`Lines`]; `read` says whether it could be read.
pub(super) fn each_line<'b>(bytes: &'b [u8], last: bool, mut read: impl FnMut(&'b [u8], &mut Tally) -> bool) -> Tally {
    let mut lines = Lines::new(bytes, last);
    while let Some(line) = lines.next() {
        if !read(line, &mut lines.tally) {
            lines.tally.note_bad(line);
        }
    }
    lines.tally
}

/// The end of the last line of a text.
pub(super) fn cut_at_line(bytes: &[u8]) -> Option<usize> {
    memchr::memrchr(b'\n', bytes).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_exact() {
        let check = |text: &str, expected| assert_eq!(Fields::new(text.as_bytes()).stamp(), expected, "{text}");
        check("1732150000.000001", Some(1_732_150_000_000_001_000));
        check("0.5", Some(500_000_000));
        check("7", Some(7_000_000_000));
        check("1.0000000005", Some(1_000_000_000));
        check("1.0000000015", Some(1_000_000_002));
        check("1.00000000051", Some(1_000_000_001));
        check("1.", None);
        check(".5", None);
        check("99999999999999.5", None);
        check("-0.5", Some(-500_000_000));
        check("-1.0000000015", Some(-1_000_000_002));
        check("1.7321500005e+09", Some(1_732_150_000_500_000_000));
        check("4611686018.427387903", Some(REACH.end - 1));
        check("4611686018.427387904", None);
        check("0001732150000.5", Some(1_732_150_000_500_000_000));
        check("1.5e", None);
        check("1e400", None);
        for (text, rounded) in [("1.000000001", false), ("1.0000000010", false), ("1.0000000015", true)] {
            let mut fields = Fields::new(text.as_bytes());
            assert!(fields.stamp().is_some() && fields.rounded == rounded, "{text}");
        }
    }

    #[test]
    fn fields_and_what_is_odd_about_them() {
        let mut fields = Fields::new(b"0, -1,300000 ,");
        assert_eq!((fields.integer(), fields.comma(), fields.node(), fields.comma()), (Some(0), true, Some(-1), true));
        assert!(fields.tight && !fields.trailing);
        assert_eq!((fields.pe(), fields.comma(), fields.trailing), (Some(300_000), false, true));
        for wrong in ["", "-", "x", "1234567890123456789"] {
            assert_eq!(Fields::new(wrong.as_bytes()).integer(), None, "{wrong}");
        }
        assert_eq!(Fields::new(b"9999999").pe(), None);
    }

    #[test]
    fn lines_are_counted_in_any_form() {
        let mut seen = Vec::new();
        let tally = each_line(b"a\r\n\n \nb\nc", true, |line, _| {
            seen.push(String::from_utf8_lossy(line).into_owned());
            line == b"a"
        });
        assert_eq!(seen, ["a", "b"]);
        assert_eq!((tally.lines, tally.blank, tally.bad, tally.torn, tally.carriage_return), (3, 2, 1, 1, 1));
    }
}
