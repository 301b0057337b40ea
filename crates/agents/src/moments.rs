//! Timestamps as agents write them in their records.

use domain::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// `2026-11-16T02:40:07.750Z`, or with an offset such as `+01:00`; `None` for anything else.
pub fn moment(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone_at);
    let mut parts = time.splitn(3, ':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().unwrap_or("0");
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds = number(seconds)?;
    let fraction_ms = number(&format!("{fraction:0<3}").chars().take(3).collect::<String>())?;
    let of_day_ms = ((hours * 60 + minutes) * 60 + seconds) * 1_000 + fraction_ms;
    let ms = days(year, month, day) * DAY_MS + of_day_ms - offset_ms(zone)?;
    u64::try_from(ms).ok().map(Timestamp)
}

fn number(text: &str) -> Option<i64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

fn offset_ms(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return Some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    Some(sign * (number(hours)? * 60 + number(minutes)?) * 60_000)
}

/// Days since 1970-01-01, reckoned in years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let before_year = 365 * year + year / 4 - year / 100 + year / 400;
    before_year + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_with_fractions_and_offsets() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(Timestamp(0)));
        assert_eq!(moment("2026-11-16T02:40:07.750Z"), Some(Timestamp(1_794_796_807_750)));
        assert_eq!(moment("2026-11-16T03:40:07.75+01:00"), Some(Timestamp(1_794_796_807_750)));
        assert_eq!(moment("2024-02-29T00:00:00.123456789Z"), Some(Timestamp(1_709_164_800_123)));
        for wrong in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01Tx:00:00Z"]
        {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }
}
