//! The wall clock, and how the HTTP API writes it down.
//!
//! Not here: the relay's own clock, which a simulation replaces (`relay::ports`).

use std::time::{SystemTime, UNIX_EPOCH};

use domain::Timestamp;

const DAY_MS: u64 = 86_400_000;

/// Now.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// ISO 8601, UTC, with milliseconds: `2026-11-15T08:30:00.000Z`.
pub(crate) fn iso8601(at: Timestamp) -> String {
    let (days, ms) = (at.0 / DAY_MS, at.0 % DAY_MS);
    let (year, month, day) = civil(days);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a day since the epoch. Years are counted from March, so that the leap
/// day is a year's last; 400 such years always have the same length.
fn civil(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    const EPOCH_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    let days = days + EPOCH_FROM_MARCH_OF_YEAR_0;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_are_written_as_people_know_them() {
        for (ms, told) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_794_731_400_123, "2026-11-15T08:30:00.123Z"),
        ] {
            assert_eq!(iso8601(Timestamp(ms)), told);
        }
    }
}
