//! The Gregorian calendar, before its introduction too: dates as days since 1970.

/// Days since 1970 of a date of the Gregorian calendar.
pub(super) fn days_of_date(year: i64, month: u32, day: u32) -> i64 {
    // Years begin with March, so that a leap day is the last of one.
    let year = if month < 3 { year - 1 } else { year };
    let month = i64::from(if month < 3 { month + 9 } else { month - 3 });
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a date that is given as days since 1970-01-01.
pub(super) fn date_of_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * month + 2) / 5 + 1) as u32;
    let month = (if month < 10 { month + 3 } else { month - 9 }) as u32;
    (era * 400 + year + i64::from(month < 3), month, day)
}

/// How many days a month has.
pub(super) fn days_of_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_other() {
        for days in -1_000_000..1_000_000 {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_of_date(year, month, day), days);
        }
        assert_eq!(date_of_days(0), (1970, 1, 1));
        assert_eq!(date_of_days(19_782), (2024, 2, 29));
    }
}
