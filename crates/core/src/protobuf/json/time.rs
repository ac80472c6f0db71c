//! Timestamps as RFC 3339 and durations as decimal seconds.

use super::{Result, problem};

const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;
const LONGEST_DURATION: i64 = 315_576_000_000;
const DAY: i64 = 86_400;

/// `2026-11-21T12:00:00.5Z`, with 0, 3, 6 or 9 digits of fraction.
pub fn print_timestamp(seconds: i64, nanos: i32) -> Result<String> {
    if !(FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
        return problem(format!(
            "a google.protobuf.Timestamp has {seconds} seconds since 1970, which is outside of the years 1 to 9999"
        ));
    }
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = fraction(nanos);
    Ok(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"
    ))
}

pub fn print_duration(seconds: i64, nanos: i32) -> Result<String> {
    if seconds.unsigned_abs() > LONGEST_DURATION as u64
        || nanos.unsigned_abs() >= 1_000_000_000
        || (seconds > 0 && nanos < 0)
        || (seconds < 0 && nanos > 0)
    {
        return problem(format!(
            "a google.protobuf.Duration has {seconds} seconds and {nanos} nanoseconds, expected up to {LONGEST_DURATION} and 999999999 of the same sign"
        ));
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    Ok(format!(
        "{sign}{}{}s",
        seconds.unsigned_abs(),
        fraction(nanos.abs())
    ))
}

fn fraction(nanos: i32) -> String {
    match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => format!(".{:06}", nanos / 1000),
        _ => format!(".{nanos:09}"),
    }
}

pub fn parse_timestamp(text: &str) -> Result<(i64, i32)> {
    match timestamp(text) {
        Some((seconds, nanos)) if (FIRST_SECOND..=LAST_SECOND).contains(&seconds) => {
            Ok((seconds, nanos))
        }
        _ => problem(
            "expected a time by RFC 3339 between the years 1 and 9999, such as 2026-11-21T12:00:00Z",
        ),
    }
}

fn timestamp(text: &str) -> Option<(i64, i32)> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !text.is_ascii()
        || separators
            .iter()
            .any(|&(at, byte)| bytes.get(at) != Some(&byte))
    {
        return None;
    }
    let part = |from: usize, to: usize| digits(text.get(from..to)?);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if !(1..=12).contains(&month)
        || day < 1
        || day > last_day(year, month)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let (nanos, rest) = parse_fraction(text.get(19..)?)?;
    let offset = match rest.as_bytes() {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (digits(rest.get(1..3)?)?, digits(rest.get(4..6)?)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let time = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some((time - offset, nanos))
}

pub fn parse_duration(text: &str) -> Result<(i64, i32)> {
    match duration(text) {
        Some((seconds, nanos)) if seconds.unsigned_abs() <= LONGEST_DURATION as u64 => {
            Ok((seconds, nanos))
        }
        _ => problem("expected a number of seconds of at most 10000 years, such as 1.5s"),
    }
}

fn duration(text: &str) -> Option<(i64, i32)> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let end = number.find('.').unwrap_or(number.len());
    let (nanos, rest) = parse_fraction(number.get(end..)?)?;
    let seconds = digits(number.get(..end)?)?;
    rest.is_empty()
        .then_some((i64::from(sign) * seconds, sign * nanos))
}

/// Nanoseconds of a fraction such as `.5`, if there is one, and what follows it.
fn parse_fraction(text: &str) -> Option<(i32, &str)> {
    let Some(fraction) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = fraction
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(fraction.len());
    if !(1..=9).contains(&end) {
        return None;
    }
    let value = i32::try_from(digits(fraction.get(..end)?)?).ok()?;
    let scale = 10_i32.pow(9 - end as u32);
    Some((value * scale, fraction.get(end..)?))
}

fn digits(text: &str) -> Option<i64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn last_day(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar; years begin in March, so that leap days end them.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_duration_are_refused_by_their_values() {
        for (seconds, nanos) in [
            (0, 1_000_000_000),
            (0, -1_000_000_000),
            (0, i32::MIN),
            (1, -1),
            (-1, 1),
            (LONGEST_DURATION + 1, 0),
            (i64::MIN, 0),
        ] {
            let error = print_duration(seconds, nanos).unwrap_err().problem;
            let values = format!("{seconds} seconds and {nanos} nanoseconds, expected");
            assert!(error.contains(&values), "{error}");
        }
        assert_eq!(print_duration(-1, -999_999_999).unwrap(), "-1.999999999s");
    }
}
