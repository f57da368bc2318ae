//! The unit of a trace's times. On Linux it is the nanosecond; other builds write processor cycles or microseconds, and the
//! file does not record which.

use crate::error::ImportError;
use crate::importers::importer::ImportOptions;
use crate::time::divide_half_even;
use crate::trace::{Stats, findings};

pub(super) const UNIT_OPTION: &str = "parsec.time_unit";
pub(super) const GHZ_OPTION: &str = "parsec.ghz";

/// A tick of the trace is `numerator / denominator` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    numerator: i64,
    denominator: i64,
}

impl Unit {
    const NANOSECOND: Unit = Unit { name: "ns", numerator: 1, denominator: 1 };

    /// The unit that the user named.
    ///
    /// # Errors
    /// Another word than `ns`, `us`, `cycles`; a frequency that is no positive decimal; cycles without one.
    pub(super) fn of(options: &ImportOptions) -> Result<Unit, ImportError> {
        let bad = |option: &str, what: &str| ImportError::BadOption {
            option: option.to_owned(),
            value: options.get(option).cloned().unwrap_or_default(),
            what: what.to_owned(),
        };
        let frequency = options.get(GHZ_OPTION).map(|text| {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let digits = format!("{whole}{fraction}");
            let denominator = digits.parse().ok().filter(|hertz: &i64| *hertz > 0 && fraction.len() < 9);
            denominator.map(|denominator| (10i64.pow(fraction.len() as u32), denominator))
        });
        let cycles = match frequency {
            Some(None) => return Err(bad(GHZ_OPTION, "a frequency in GHz is needed, as 2.45")),
            Some(Some((numerator, denominator))) => Some(Unit { name: "cycles", numerator, denominator }),
            None => None,
        };
        match (options.get(UNIT_OPTION).map(String::as_str), cycles) {
            (None | Some("cycles"), Some(cycles)) => Ok(cycles),
            (None | Some("ns"), None) => Ok(Unit::NANOSECOND),
            (Some("us"), None) => Ok(Unit { name: "us", numerator: 1000, denominator: 1 }),
            (Some("cycles"), None) => Err(bad(UNIT_OPTION, "cycles need their frequency: --option parsec.ghz=2.45")),
            (Some(_), Some(_)) => Err(bad(UNIT_OPTION, "only cycles go with parsec.ghz")),
            (Some(_), None) => Err(bad(UNIT_OPTION, "one of ns, us, cycles is needed")),
        }
    }

    /// Turns times of the trace into ns.
    pub(super) fn to_ticks<'t>(self, times: impl Iterator<Item = &'t mut i64>, stats: &mut Stats) {
        if self == Unit::NANOSECOND {
            return;
        }
        for time in times {
            let scaled = i128::from(*time) * i128::from(self.numerator);
            let ticks = i64::try_from(divide_half_even(scaled, i128::from(self.denominator)));
            if ticks.is_err() {
                stats.note(findings::TIME_TOO_LARGE, 1, || {
                    format!("{time} {} became the last tick that there is", self.name)
                });
            }
            *time = ticks.unwrap_or(i64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale_exactly() {
        let check = |given: &[(&str, &str)], time: i64, expected: Option<i64>| {
            let options = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let ticks = Unit::of(&options).ok().map(|unit| {
                let mut ticks = time;
                unit.to_ticks([&mut ticks].into_iter(), &mut Stats::default());
                ticks
            });
            assert_eq!(ticks, expected, "{given:?}");
        };
        check(&[], 7, Some(7));
        check(&[(UNIT_OPTION, "us")], 7, Some(7000));
        check(&[(GHZ_OPTION, "2.5")], 10, Some(4));
        check(&[(GHZ_OPTION, "2"), (UNIT_OPTION, "cycles")], 5, Some(2));
        check(&[(UNIT_OPTION, "us")], i64::MAX, Some(i64::MAX));
        check(&[(UNIT_OPTION, "cycles")], 7, None);
        check(&[(GHZ_OPTION, "0")], 7, None);
        check(&[(GHZ_OPTION, "2.4.1")], 7, None);
        check(&[(UNIT_OPTION, "s")], 7, None);
    }
}
