//! How long to wait before reconnecting to the relay: longer each time, with jitter.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(10);

/// Doubles from 100 ms to 10 s.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// Whether nothing has failed yet.
    pub(super) fn is_first(&self) -> bool {
        self.next == FIRST
    }

    /// Between half and all of what is due, so that many proxies do not come together.
    pub(super) fn next(&mut self) -> Duration {
        let due = self.next;
        self.next = (due * 2).min(LAST);
        // Without randomness the wait is merely not spread.
        let share = getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX));
        due.mul_f64(0.5 + share / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_to_ten_seconds_and_is_spread_over_half() {
        let mut backoff = Backoff::default();
        let mut due = FIRST;
        for _ in 0..12 {
            let waited = backoff.next();
            assert!(waited >= due / 2 && waited <= due, "{waited:?} of {due:?}");
            due = (due * 2).min(LAST);
        }
        assert_eq!(due, LAST);
    }
}
