//! How long the model takes between two words.
//!
//! Not here: which words (`script`), the waiting itself (`server`).

use std::time::Duration;

/// The times between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between the words of an ordinary answer.
    pub word: Duration,
    /// Between the words of `slow: N`.
    pub slow_word: Duration,
}

impl Pace {
    /// Like a model: 20 ms a word, 250 ms a slow one.
    pub const REAL: Self =
        Self { word: Duration::from_millis(20), slow_word: Duration::from_millis(250) };

    /// For tests: ordinary answers come almost at once, `slow:` still leaves time to interrupt.
    pub const QUICK: Self =
        Self { word: Duration::from_millis(1), slow_word: Duration::from_millis(100) };

    /// [`Pace::REAL`], so many times as fast; 0 counts as 1.
    #[must_use]
    pub fn faster(times: u32) -> Self {
        let times = times.max(1);
        Self { word: Self::REAL.word / times, slow_word: Self::REAL.slow_word / times }
    }

    pub(crate) fn after(self, pause: Pause) -> Duration {
        match pause {
            Pause::None => Duration::ZERO,
            Pause::Word => self.word,
            Pause::SlowWord => self.slow_word,
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::QUICK
    }
}

/// What kind of pause follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    None,
    Word,
    SlowWord,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_divides_and_never_by_nothing() {
        assert_eq!(Pace::faster(10).after(Pause::Word), Duration::from_millis(2));
        assert_eq!(Pace::faster(10).after(Pause::SlowWord), Duration::from_millis(25));
        assert_eq!(Pace::faster(0), Pace::REAL);
        assert_eq!(Pace::REAL.after(Pause::None), Duration::ZERO);
    }
}
