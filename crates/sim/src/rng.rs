//! Chance from a seed: the same seed, the same run.
//!
//! `SplitMix64`: small, fast, and good enough to choose what breaks next.

/// A source of chance.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The same seed gives the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    /// Any number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or_default();
        from.get(index)
    }

    /// A source of its own, so that one actor's choices do not shift another's.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}
