//! Recognises a send in the echo that an agent's window shows of it, however that trims its ends.

use domain::content::Digest;
use sha2::{Digest as _, Sha256};

/// The first eight bytes of a SHA-256 of the words.
pub(crate) fn digest(text: &str) -> Digest {
    let hash: [u8; 32] = Sha256::digest(text.trim().as_bytes()).into();
    Digest(hash.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_recognised_whatever_its_ends_look_like() {
        assert_eq!(digest("hello"), digest(" hello\n"));
        assert_ne!(digest("hello"), digest("hello!"));
    }
}
