//! Remembers approximately, in little memory, which sends were forgotten.
//!
//! The set errs in one direction only: it may answer "perhaps" for an id it never saw, but never
//! "no" for one it did. A new send therefore rarely needs a lookup in the ledger, and a repeat
//! always gets one.
//!
//! Not here: the outcome of a forgotten send (in the ledger's index).

use serde::{Deserialize, Serialize};

use crate::MessageId;

/// Words of 64 bits: at ten thousand ids about one new send in a hundred is looked up in vain.
const WORDS: usize = 2_048;
/// Bits that stand for one id.
const BITS_EACH: u64 = 4;

/// Ids that were forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Forgotten {
    /// Empty until the first.
    words: Vec<u64>,
}

impl Forgotten {
    /// One more is forgotten.
    pub fn add(&mut self, id: &MessageId) {
        self.words.resize(WORDS, 0);
        for (word, bit) in places(id) {
            self.words[word] |= bit;
        }
    }

    /// Whether it may be among them.
    pub fn may_hold(&self, id: &MessageId) -> bool {
        !self.words.is_empty() && places(id).all(|(word, bit)| self.words[word] & bit != 0)
    }
}

fn places(id: &MessageId) -> impl Iterator<Item = (usize, u64)> {
    // FNV-1a, stirred: the same on every machine and in every release, because it is stored.
    let hash = id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let stirred = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (first, step) = (stirred & 0xFFFF_FFFF, (stirred >> 32) | 1);
    (0..BITS_EACH).map(move |n| {
        let place = first.wrapping_add(n.wrapping_mul(step)) % (WORDS as u64 * 64);
        (usize::try_from(place / 64).unwrap_or_default(), 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_forgotten_is_held() {
        let mut forgotten = Forgotten::default();
        for n in 0..10_000 {
            forgotten.add(&id(n));
        }
        assert!((0..10_000).all(|n| forgotten.may_hold(&id(n))));
    }

    #[test]
    fn few_new_ids_are_taken_for_forgotten_ones() {
        let mut forgotten = Forgotten::default();
        assert!(!forgotten.may_hold(&id(0)));
        for n in 0..10_000 {
            forgotten.add(&id(n));
        }
        let wrong = (10_000..20_000).filter(|n| forgotten.may_hold(&id(*n))).count();
        assert!(wrong < 300, "{wrong} of 10,000");
    }

    fn id(number: u64) -> MessageId {
        format!("message-{number}").into()
    }
}
