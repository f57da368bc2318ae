//! Times of a home-made log: decimals in any unit, whole numbers, floats, timestamps, as ticks.
//!
//! Decimals never pass through a binary float: `0.1` s is 100 000 000 ns and nothing else. A float64 of Parquet or SQLite
//! is taken as the shortest decimal that reads back as the same float, which is what its writer printed. What does not
//! fit a tick is rounded half to even and counted.
//!
//! A timestamp (`2026-01-02T03:04:05.25Z`, an Arrow timestamp) becomes ticks since the first timestamp that the run met,
//! its `epoch`: picoseconds since 1970 do not fit 64 bits. The run moves them to their origin when it knows it.

use std::fmt;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, TimeUnit};
use datafusion::arrow::error::ArrowError;
use tq_udfs::ticks::Tick;

use crate::time::{BadNumber, Decimal, REACH};

/// The unit of a column of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Picosecond,
}

impl Unit {
    /// As it is written behind the column: `begin:us`.
    pub(super) const ALL: [(&'static str, Unit); 7] = [
        ("s", Unit::Second),
        ("ms", Unit::Millisecond),
        ("us", Unit::Microsecond),
        ("µs", Unit::Microsecond),
        ("ns", Unit::Nanosecond),
        ("ps", Unit::Picosecond),
        ("min", Unit::Minute),
    ];

    pub(super) fn parse(text: &str) -> Option<Unit> {
        Unit::ALL.iter().find(|(symbol, _)| *symbol == text).map(|(_, unit)| *unit)
    }

    pub(super) fn symbol(self) -> &'static str {
        Unit::ALL.iter().find(|(_, unit)| *unit == self).map_or("ns", |(symbol, _)| symbol)
    }

    const fn picoseconds(self) -> u64 {
        match self {
            Unit::Minute => 60_000_000_000_000,
            Unit::Second => 1_000_000_000_000,
            Unit::Millisecond => 1_000_000_000,
            Unit::Microsecond => 1_000_000,
            Unit::Nanosecond => 1_000,
            Unit::Picosecond => 1,
        }
    }
}

/// Why a cell is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadTime {
    NotATime,
    TooLarge,
    /// A timestamp among numbers, or a number among timestamps.
    OtherKind,
}

impl fmt::Display for BadTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadTime::NotATime => "is no time",
            BadTime::TooLarge => "lies beyond ±2^62 ticks",
            BadTime::OtherKind => "mixes timestamps and numbers",
        })
    }
}

/// A time as ticks, and what rounding took from it in billionths of a tick, where it was no whole number of them.
type Ticks = Result<(i64, Option<i32>), BadTime>;

/// So many parts of a tick are known of what was rounded.
const PARTS: i64 = 1_000_000_000;

/// The sum of a time and a length, or their difference, rounded once: both ends are rounded, never a length, so that tasks side by
/// side stay so. `rest` is that of both, in billionths.
pub(super) fn rounded_once(ticks: i64, rest: i64) -> Option<i64> {
    let parts = i128::from(ticks) * i128::from(PARTS) + i128::from(rest);
    i64::try_from(crate::time::divide_half_even(parts, i128::from(PARTS))).ok()
}

/// From one unit to ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    picoseconds_per_unit: u64,
    picoseconds_per_tick: u64,
}

impl Scale {
    pub(super) fn new(unit: Unit, tick: Tick) -> Scale {
        let picoseconds_per_tick = match tick {
            Tick::Weight | Tick::Nanosecond => 1_000,
            Tick::Picosecond => 1,
        };
        Scale { picoseconds_per_unit: unit.picoseconds(), picoseconds_per_tick }
    }

    /// A decimal: `12`, `-0.25`, `1.5e-3`.
    pub(super) fn decimal(self, text: &str) -> Ticks {
        let text = text.trim_ascii().as_bytes();
        let (negative, digits) = match text.first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        match self.short(digits) {
            Some(ticks) => in_reach(i128::from(if negative { -ticks } else { ticks })).map(|ticks| (ticks, None)),
            None => self.long(text),
        }
    }

    /// A whole number of units.
    pub(super) fn whole(self, value: i64) -> Ticks {
        let picoseconds = i128::from(value) * i128::from(self.picoseconds_per_unit);
        let per_tick = i128::from(self.picoseconds_per_tick);
        let ticks = crate::time::divide_half_even(picoseconds, per_tick);
        let rest = picoseconds - ticks * per_tick;
        Ok((in_reach(ticks)?, (rest != 0).then(|| (rest * i128::from(PARTS) / per_tick) as i32)))
    }

    /// Up to 18 digits whose fraction is a whole number of ticks, in 64 bits: nearly every cell of nearly every log.
    fn short(self, digits: &[u8]) -> Option<i64> {
        if digits.is_empty() || digits.len() > 19 {
            return None;
        }
        let (mut mantissa, mut fraction, mut point, mut seen) = (0u64, 1u64, false, 0);
        for &byte in digits {
            match byte {
                b'0'..=b'9' if seen < 18 => {
                    mantissa = mantissa * 10 + u64::from(byte - b'0');
                    seen += 1;
                    if point {
                        fraction *= 10;
                    }
                }
                b'.' if !point => point = true,
                _ => return None,
            }
        }
        if seen == 0 || fraction > 1_000_000_000_000 {
            return None;
        }
        let picoseconds_per_fraction = fraction * self.picoseconds_per_tick;
        if !self.picoseconds_per_unit.is_multiple_of(picoseconds_per_fraction) {
            return None;
        }
        i64::try_from(mantissa.checked_mul(self.picoseconds_per_unit / picoseconds_per_fraction)?).ok()
    }

    /// Any decimal, with rounding half to even.
    fn long(self, text: &[u8]) -> Ticks {
        let decimal = Decimal::parse(text)?;
        let per_tick = i64::from(self.picoseconds_per_tick.ilog10());
        // All units but one are powers of ten: six times a number of minutes are tens of seconds.
        match self.picoseconds_per_unit == Unit::Minute.picoseconds() {
            true => ticks(&Decimal::parse(&decimal.sixfold())?, 13 - per_tick),
            false => ticks(&decimal, i64::from(self.picoseconds_per_unit.ilog10()) - per_tick),
        }
    }
}

fn ticks(decimal: &Decimal<'_>, shift: i64) -> Ticks {
    let (ticks, is_exact) = decimal.ticks(shift)?;
    if is_exact {
        return Ok((ticks, None));
    }
    let (parts, _) = decimal.scaled(shift + i64::from(PARTS.ilog10()))?;
    Ok((ticks, Some((parts - i128::from(ticks) * i128::from(PARTS)) as i32)))
}

fn in_reach(ticks: i128) -> Result<i64, BadTime> {
    i64::try_from(ticks).ok().filter(|ticks| REACH.contains(ticks)).ok_or(BadTime::TooLarge)
}

impl From<BadNumber> for BadTime {
    fn from(bad: BadNumber) -> BadTime {
        match bad {
            BadNumber::NotANumber => BadTime::NotATime,
            BadNumber::OutOfRange => BadTime::TooLarge,
        }
    }
}

/// What the times of a column count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// Numbers: whatever the recorder took as 0.
    Number,
    /// Timestamps: the epoch of the run.
    Instant,
}

/// A column of times as ticks.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) ticks: Int64Array,
    pub(super) clock: Clock,
    /// Rows whose cell is no time: NULL in `ticks`.
    pub(super) bad: Vec<(usize, BadTime)>,
    /// Rows that were rounded, and what that took from them in billionths of a tick.
    pub(super) rests: Vec<(usize, i32)>,
}

/// Reads the batches of one column.
#[derive(Debug)]
pub(super) struct TimeReader {
    scale: Scale,
    tick: Tick,
    /// Set by the first cell that tells; a column is of one kind.
    clock: Option<Clock>,
}

impl TimeReader {
    pub(super) fn new(unit: Unit, tick: Tick) -> TimeReader {
        TimeReader { scale: Scale::new(unit, tick), tick, clock: None }
    }

    /// Numbers count in this unit from now on.
    pub(super) fn set_unit(&mut self, unit: Unit) {
        self.scale = Scale::new(unit, self.tick);
    }

    /// The ticks of a column. `epoch` is the run's, in ns since 1970, and is set by the first timestamp. `Ok(None)` when
    /// the column is of a type that holds no times.
    pub(super) fn read(&mut self, column: &ArrayRef, epoch: &mut Option<i64>) -> Result<Option<Times>, ArrowError> {
        let collect = Collect { ticks: Vec::with_capacity(column.len()), bad: Vec::new(), rests: Vec::new() };
        let of_nanoseconds = Scale::new(Unit::Nanosecond, self.tick);
        Ok(Some(match column.data_type() {
            DataType::Utf8 => self.texts(column.as_string(), epoch, collect),
            DataType::Dictionary(..) | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(column, &DataType::Utf8)?;
                self.texts(texts.as_string(), epoch, collect)
            }
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                let texts = cast(column, &DataType::Utf8)?;
                self.texts(texts.as_string(), epoch, collect)
            }
            DataType::Float64 => self.floats(column.as_primitive::<Float64Type>().iter(), collect),
            DataType::Float16 | DataType::Float32 => {
                let floats = cast(column, &DataType::Float32)?;
                self.floats(floats.as_primitive::<Float32Type>().iter(), collect)
            }
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
                let nanoseconds =
                    cast(&cast(column, &DataType::Timestamp(TimeUnit::Nanosecond, None))?, &DataType::Int64)?;
                self.clock = Some(Clock::Instant);
                let tick = self.tick;
                self.wholes(column, &nanoseconds, collect, |value| since_epoch(value, epoch, tick))
            }
            DataType::Duration(_) => {
                let nanoseconds = cast(&cast(column, &DataType::Duration(TimeUnit::Nanosecond))?, &DataType::Int64)?;
                self.wholes(column, &nanoseconds, collect, |value| of_nanoseconds.whole(value))
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let nanoseconds = cast(&cast(column, &DataType::Time64(TimeUnit::Nanosecond))?, &DataType::Int64)?;
                self.wholes(column, &nanoseconds, collect, |value| of_nanoseconds.whole(value))
            }
            number if number.is_integer() => {
                let scale = self.scale;
                self.wholes(column, &cast(column, &DataType::Int64)?, collect, |value| scale.whole(value))
            }
            _ => return Ok(None),
        }))
    }

    fn texts(&mut self, texts: &StringArray, epoch: &mut Option<i64>, mut collect: Collect) -> Times {
        for row in 0..texts.len() {
            if texts.is_null(row) {
                collect.ticks.push(None);
                continue;
            }
            let text = texts.value(row);
            let clock = if looks_like_a_date(text) { Clock::Instant } else { Clock::Number };
            let ticks = match *self.clock.get_or_insert(clock) {
                expected if expected != clock => match self.scale.decimal(text) {
                    Err(BadTime::NotATime) if clock == Clock::Number => Err(BadTime::NotATime),
                    _ => Err(BadTime::OtherKind),
                },
                Clock::Number => self.scale.decimal(text),
                Clock::Instant => instant(text).and_then(|(value, exact)| {
                    since_epoch(value, epoch, self.tick).map(|(ticks, _)| (ticks, (!exact).then_some(0)))
                }),
            };
            collect.push(row, ticks);
        }
        collect.finish(self.clock.unwrap_or(Clock::Number))
    }

    fn floats<F: Float>(&self, floats: impl Iterator<Item = Option<F>>, mut collect: Collect) -> Times {
        let mut text = String::new();
        for (row, float) in floats.enumerate() {
            match float {
                None => collect.ticks.push(None),
                Some(float) => {
                    text.clear();
                    float.write_shortest(&mut text);
                    collect.push(row, self.scale.decimal(&text));
                }
            }
        }
        collect.finish(Clock::Number)
    }

    fn wholes(
        &self,
        original: &ArrayRef,
        values: &ArrayRef,
        mut collect: Collect,
        mut ticks: impl FnMut(i64) -> Ticks,
    ) -> Times {
        for (row, value) in values.as_primitive::<Int64Type>().iter().enumerate() {
            match value {
                Some(value) => collect.push(row, ticks(value)),
                // The cast leaves NULL where 64 bits are too few.
                None if original.is_valid(row) => collect.push(row, Err(BadTime::TooLarge)),
                None => collect.ticks.push(None),
            }
        }
        collect.finish(self.clock.unwrap_or(Clock::Number))
    }
}

struct Collect {
    ticks: Vec<Option<i64>>,
    bad: Vec<(usize, BadTime)>,
    rests: Vec<(usize, i32)>,
}

impl Collect {
    fn push(&mut self, row: usize, ticks: Ticks) {
        match ticks {
            Ok((ticks, rest)) => {
                self.ticks.push(Some(ticks));
                self.rests.extend(rest.map(|rest| (row, rest)));
            }
            Err(bad) => {
                self.ticks.push(None);
                self.bad.push((row, bad));
            }
        }
    }

    fn finish(self, clock: Clock) -> Times {
        Times { ticks: self.ticks.into(), clock, bad: self.bad, rests: self.rests }
    }
}

/// Floats that print as the shortest decimal that reads back as themselves.
trait Float: Copy {
    fn write_shortest(self, text: &mut String);
}

macro_rules! float {
    ($($float:ty),*) => {$(
        impl Float for $float {
            fn write_shortest(self, text: &mut String) {
                use fmt::Write as _;
                // Writing to a String does not fail. The exponent keeps 1e300 from printing 300 digits.
                let _ = if self.abs() < 1e16 && self.abs() > 1e-12 { write!(text, "{self}") } else { write!(text, "{self:e}") };
            }
        }
    )*};
}

float!(f32, f64);

/// `2026-01-02…`: four digits and a dash.
fn looks_like_a_date(text: &str) -> bool {
    let text = text.trim_ascii().as_bytes();
    text.len() >= 10 && text[..4].iter().all(u8::is_ascii_digit) && text[4] == b'-'
}

/// ns since 1970, and whether that is all that the text says; a timestamp without zone is UTC.
fn instant(text: &str) -> Result<(i64, bool), BadTime> {
    const DIGITS: usize = 9;
    let text = text.trim_ascii();
    let parsed = |text: &str| string_to_timestamp_nanos(text).map_err(|_| BadTime::NotATime);
    let Some(point) = text.find('.') else { return Ok((parsed(text)?, true)) };
    let digits = text[point + 1..].bytes().take_while(u8::is_ascii_digit).count();
    if digits <= DIGITS {
        return Ok((parsed(text)?, true));
    }
    // The parser cuts what is finer than a nanosecond off.
    let (begin, rest) = text.split_at(point + 1 + DIGITS);
    let (finer, zone) = rest.split_at(digits - DIGITS);
    let nanoseconds = parsed(&format!("{begin}{zone}"))?;
    let finer = finer.trim_end_matches('0');
    let up = match finer.cmp("5") {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => nanoseconds % 2 != 0,
        std::cmp::Ordering::Greater => true,
    };
    Ok((nanoseconds.checked_add(i64::from(up)).ok_or(BadTime::TooLarge)?, finer.is_empty()))
}

fn since_epoch(nanoseconds: i64, epoch: &mut Option<i64>, tick: Tick) -> Ticks {
    let epoch = *epoch.get_or_insert(nanoseconds);
    let ticks = nanoseconds.checked_sub(epoch).and_then(|since| since.checked_mul(tick.per_nanosecond()));
    ticks.map(|ticks| (ticks, None)).ok_or(BadTime::TooLarge)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        Decimal128Array, DurationMillisecondArray, Float32Array, Float64Array, TimestampMicrosecondArray, UInt64Array,
    };
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timestamps_finer_than_nanoseconds_are_rounded_half_to_even() {
        let check = |text: &str, expected| assert_eq!(instant(text), expected, "{text}");
        check("1970-01-01T00:00:00.123456789Z", Ok((123_456_789, true)));
        check("1970-01-01T00:00:00.1234567890Z", Ok((123_456_789, true)));
        check("1970-01-01T00:00:00.1234567891Z", Ok((123_456_789, false)));
        check("1970-01-01T00:00:00.1234567895+00:00", Ok((123_456_790, false)));
        check("1970-01-01T00:00:00.1234567885", Ok((123_456_788, false)));
        check("1970-01-01T00:00:00.12345678850001Z", Ok((123_456_789, false)));
        check("1969-12-31T23:59:59.9999999999Z", Ok((0, false)));
        check("1970-01-01T00:00:00.12345678xZ", Err(BadTime::NotATime));
    }

    #[test]
    fn a_sum_is_rounded_once() {
        let scale = Scale::new(Unit::Microsecond, Tick::Nanosecond);
        let end = |start: &str, duration: &str| {
            let ((start, more), (duration, rest)) = (scale.decimal(start).unwrap(), scale.decimal(duration).unwrap());
            rounded_once(start + duration, i64::from(more.unwrap_or(0)) + i64::from(rest.unwrap_or(0)))
        };
        assert_eq!(end("0.0006", "0.0019"), Some(2));
        assert_eq!(end("0.001", "0.0005"), Some(2));
        assert_eq!(end("0.0004", "0.0004"), Some(1));
        assert_eq!(end("-0.0026", "0.0026"), Some(0));
        assert_eq!(end("15", "25"), Some(40_000));
    }

    #[test]
    fn decimals_are_exact() {
        let check = |text: &str, unit, expected| {
            let ticks = Scale::new(unit, Tick::Nanosecond).decimal(text);
            assert_eq!(ticks.map(|(ticks, rest)| (ticks, rest.is_none())), expected, "{text} {unit:?}");
        };
        check("0.1", Unit::Second, Ok((100_000_000, true)));
        check("1700000000.123456789", Unit::Second, Ok((1_700_000_000_123_456_789, true)));
        check("-0.25", Unit::Microsecond, Ok((-250, true)));
        check("+7", Unit::Nanosecond, Ok((7, true)));
        check(" 12 ", Unit::Millisecond, Ok((12_000_000, true)));
        check("1.5e-3", Unit::Second, Ok((1_500_000, true)));
        check("1.5E+3", Unit::Nanosecond, Ok((1_500, true)));
        check("2e-12", Unit::Second, Ok((0, false)));
        check("0.5", Unit::Nanosecond, Ok((0, false)));
        check("1.5", Unit::Nanosecond, Ok((2, false)));
        check("2.5", Unit::Nanosecond, Ok((2, false)));
        check("2.50000000000000000000000000001", Unit::Nanosecond, Ok((3, false)));
        check("0.1000000000000000055511151231257827", Unit::Second, Ok((100_000_000, false)));
        check("2500", Unit::Picosecond, Ok((2, false)));
        check("3000", Unit::Picosecond, Ok((3, true)));
        check("0.5", Unit::Minute, Ok((30_000_000_000, true)));
        check(".5", Unit::Second, Ok((500_000_000, true)));
        check("5.", Unit::Second, Ok((5_000_000_000, true)));
        check("4611686018427387903", Unit::Nanosecond, Ok((REACH.end - 1, true)));
        check("4611686018427387904", Unit::Nanosecond, Err(BadTime::TooLarge));
        check("-4611686018.427387904", Unit::Second, Ok((REACH.start, true)));
        check("-4611686018.427387905", Unit::Second, Err(BadTime::TooLarge));
        check("9223372036854775807", Unit::Nanosecond, Err(BadTime::TooLarge));
        // Just below and just above half a tick, far behind the point.
        check("0.0000000000083333333333333333333333333", Unit::Minute, Ok((0, false)));
        check("0.0000000000083333333333333333333333334", Unit::Minute, Ok((1, false)));
        check("1e999999", Unit::Second, Err(BadTime::TooLarge));
        check("0e999999", Unit::Second, Ok((0, true)));
        check("1e-999999", Unit::Second, Ok((0, false)));
        for bad in ["", "-", ".", "1.2.3", "12e", "e5", "0x10", "1_000", "1,5", "nan", "inf", "12 s"] {
            check(bad, Unit::Second, Err(BadTime::NotATime));
        }
        assert_eq!(Scale::new(Unit::Nanosecond, Tick::Picosecond).decimal("0.125"), Ok((125, None)));
        assert_eq!(Scale::new(Unit::Nanosecond, Tick::Picosecond).whole(3), Ok((3_000, None)));
        assert_eq!(Scale::new(Unit::Picosecond, Tick::Nanosecond).whole(-2_500), Ok((-2, Some(-PARTS as i32 / 2))));
    }

    proptest! {
        /// The short way and the long way, and both against one division of large integers.
        #[test]
        fn short_decimals_are_the_long_ones(whole in 0..1_000_000u64, fraction in "[0-9]{0,11}", unit in 0..7usize, fine: bool) {
            let scale = Scale::new(Unit::ALL[unit].1, if fine { Tick::Picosecond } else { Tick::Nanosecond });
            let text = format!("{whole}.{fraction}");
            let long = scale.long(text.as_bytes());
            if let Some(short) = scale.short(text.as_bytes()) {
                prop_assert_eq!(in_reach(short.into()).map(|ticks| (ticks, None)), long);
            }
            let mantissa: i128 = format!("{whole}{fraction}").parse().unwrap();
            let divisor = 10i128.pow(fraction.len() as u32) * i128::from(scale.picoseconds_per_tick);
            let numerator = mantissa * i128::from(scale.picoseconds_per_unit);
            let ticks = in_reach(crate::time::divide_half_even(numerator, divisor));
            prop_assert_eq!(long.map(|(ticks, rest)| (ticks, rest.is_none())), ticks.map(|ticks| (ticks, numerator % divisor == 0)));
            if let Ok((ticks, Some(rest))) = long {
                // Within 128 bits: what is left of the tick that was rounded to.
                let left = numerator - i128::from(ticks) * divisor;
                let parts = i128::from(ticks) * i128::from(PARTS)
                    + crate::time::divide_half_even(left * i128::from(PARTS), divisor);
                prop_assert_eq!(i128::from(ticks) * i128::from(PARTS) + i128::from(rest), parts);
            }
        }

        #[test]
        fn any_text_is_a_time_or_an_error(text in ".{0,40}") {
            let _ = Scale::new(Unit::Minute, Tick::Picosecond).decimal(&text);
            let _ = instant(&text);
        }
    }

    /// Values, clock, bad rows, and what was rounded.
    type Found = (Vec<Option<i64>>, Clock, Vec<(usize, BadTime)>, Vec<(usize, i32)>);

    fn read(column: impl Array + 'static, unit: Unit) -> Option<Found> {
        let column: ArrayRef = Arc::new(column);
        let times = TimeReader::new(unit, Tick::Nanosecond).read(&column, &mut None).unwrap()?;
        Some((times.ticks.iter().collect(), times.clock, times.bad, times.rests))
    }

    #[test]
    fn every_type_of_column() {
        let floats = Float64Array::from(vec![Some(0.1), None, Some(1e-10), Some(f64::INFINITY)]);
        let expected = vec![Some(100_000_000), None, Some(0), None];
        let bad = vec![(3, BadTime::NotATime)];
        assert_eq!(read(floats, Unit::Second), Some((expected, Clock::Number, bad, vec![(2, 100_000_000)])));
        fn check(column: impl Array + 'static, unit: Unit, expected: Vec<Option<i64>>, clock: Clock) {
            assert_eq!(read(column, unit), Some((expected, clock, vec![], vec![])));
        }
        check(Float32Array::from(vec![0.1f32]), Unit::Microsecond, vec![Some(100)], Clock::Number);
        let decimals = Decimal128Array::from(vec![1_250]).with_precision_and_scale(10, 3).unwrap();
        check(decimals, Unit::Microsecond, vec![Some(1_250)], Clock::Number);
        check(DurationMillisecondArray::from(vec![3]), Unit::Second, vec![Some(3_000_000)], Clock::Number);
        let timestamps = TimestampMicrosecondArray::from(vec![Some(7), None, Some(5)]);
        check(timestamps, Unit::Nanosecond, vec![Some(0), None, Some(-2_000)], Clock::Instant);
        let texts = StringArray::from(vec!["2026-01-02T00:00:00Z", "2026-01-02 01:00:00.000000001+01:00"]);
        check(texts, Unit::Nanosecond, vec![Some(0), Some(1)], Clock::Instant);
        let large = UInt64Array::from(vec![7, u64::MAX]);
        let bad = vec![(1, BadTime::TooLarge)];
        assert_eq!(read(large, Unit::Nanosecond), Some((vec![Some(7), None], Clock::Number, bad, vec![])));
        let mixed = StringArray::from(vec!["12", "2026-01-02", "x"]);
        let bad = vec![(1, BadTime::OtherKind), (2, BadTime::NotATime)];
        assert_eq!(read(mixed, Unit::Nanosecond), Some((vec![Some(12), None, None], Clock::Number, bad, vec![])));
        assert_eq!(read(datafusion::arrow::array::BooleanArray::from(vec![true]), Unit::Second), None);
    }
}
