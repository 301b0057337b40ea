//! Times on the wire: ISO 8601 in UTC with milliseconds and `Z`.
//!
//! They are written in one form only, and read in every form that a peer's library may write, with
//! any number of decimals and any offset.

use std::fmt;

use domain::Timestamp;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

const DAY_MS: u64 = 86_400_000;
/// 9999-12-31T23:59:59.999Z: the last time that has four digits of year.
const LAST_MS: u64 = 253_402_300_799_999;

/// A time as it is written on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl Time {
    /// Reads `2026-11-02T09:15:30.250Z` and its relatives. Times before 1970 count as 1970.
    pub fn parse(raw: &str) -> Option<Self> {
        let bytes = raw.as_bytes();
        if !raw.is_ascii() || bytes.len() < 20 || bytes.len() > 40 {
            return None;
        }
        let punctuation = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        if punctuation.iter().any(|(at, mark)| bytes[*at] != *mark)
            || !matches!(bytes[10], b'T' | b't' | b' ')
        {
            return None;
        }
        let (year, month, day) =
            (number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..10])?);
        let (hour, minute) = (number(&bytes[11..13])?, number(&bytes[14..16])?);
        let second = number(&bytes[17..19])?;
        let fits = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour <= 23
            && minute <= 59
            && second <= 60;
        if !fits {
            return None;
        }
        let (millis, rest) = fraction(&bytes[19..])?;
        let offset_ms = offset(rest)?;
        let days = days_before(year, month, day);
        // A leap second is the last millisecond-countable one of its minute.
        let clock = hour * 3_600_000 + minute * 60_000 + second.min(59) * 1_000 + millis;
        let local = days.checked_mul(i64::try_from(DAY_MS).ok()?)?.checked_add(clock)?;
        let utc = u64::try_from(local - offset_ms).unwrap_or(0);
        Some(Self(Timestamp(utc.min(LAST_MS))))
    }

    /// As it is written, without quotes.
    pub fn to_bytes(self) -> [u8; 24] {
        let ms = self.0.0.min(LAST_MS);
        let (year, month, day) = civil(ms / DAY_MS);
        let clock = ms % DAY_MS;
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        put(&mut text[11..13], clock / 3_600_000);
        put(&mut text[14..16], clock / 60_000 % 60);
        put(&mut text[17..19], clock / 1_000 % 60);
        put(&mut text[20..23], clock % 1_000);
        text
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_bytes()).unwrap_or_default())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.to_bytes()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an ISO 8601 time such as 2026-11-02T09:15:30.250Z")
            }

            fn visit_str<E: de::Error>(self, raw: &str) -> Result<Time, E> {
                Time::parse(raw).ok_or_else(|| E::invalid_value(de::Unexpected::Str(raw), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0'))
    })
}

/// Milliseconds, and what follows the decimals.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.' | b',', decimals)) = rest.split_first() else { return Some((0, rest)) };
    let count = decimals.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let digits = decimals[..count].iter().map(|digit| i64::from(digit - b'0'));
    let millis = digits.chain([0, 0]).take(3).fold(0, |sum, digit| sum * 10 + digit);
    Some((millis, &decimals[count..]))
}

fn offset(rest: &[u8]) -> Option<i64> {
    match rest {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), clock @ ..] => {
            let (hours, minutes) = match clock {
                [a, b, b':', c, d] | [a, b, c, d] => (number(&[*a, *b])?, number(&[*c, *d])?),
                _ => return None,
            };
            let offset_ms = (hours * 60 + minutes) * 60_000;
            (hours <= 23 && minutes <= 59).then_some(if *sign == b'+' {
                offset_ms
            } else {
                -offset_ms
            })
        }
        _ => None,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to this date; negative before.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let before_year = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let before_month: i64 = (1..month).map(|earlier| days_in_month(year, earlier)).sum();
    before_year + before_month + day - 1
}

/// The date that many days after 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // 400 years have 146,097 days; counting from 2000-03-01 puts the leap day at the end.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

fn put(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // spec: native/transport.5
    #[test]
    fn a_time_is_written_with_milliseconds_and_z() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_773_915_330_000, "2026-03-19T10:15:30.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Time(Timestamp(ms)).to_string(), text);
        }
    }

    #[test]
    fn times_of_other_libraries_are_read() {
        let same = Time::parse("2026-03-19T10:15:30.250Z").unwrap();
        for text in [
            "2026-03-19T10:15:30.25Z",
            "2026-03-19T10:15:30.250999Z",
            "2026-03-19T12:15:30.250+02:00",
            "2026-03-19t05:45:30.250-0430",
        ] {
            assert_eq!(Time::parse(text), Some(same), "{text}");
        }
        assert_eq!(Time::parse("1931-03-19T10:15:30Z"), Some(Time(Timestamp(0))));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-03-19",
            "2026-13-19T10:15:30Z",
            "2026-02-29T10:15:30Z",
            "2026-03-19T10:15:30",
            "2026-03-19T10:15:30.Z",
            "2026-03-19T25:15:30Z",
            "2026-03-19T10:15:30+99:00",
            "２026-03-19T10:15:30Z",
            "2026-03-19T10:15:3éZ0",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0..=LAST_MS) {
            let time = Time(Timestamp(ms));
            prop_assert_eq!(Time::parse(&time.to_string()), Some(time));
        }

        #[test]
        fn no_text_makes_reading_panic(text in "\\PC{0,45}") {
            let _ = Time::parse(&text);
        }
    }
}
