//! Recognises the echo of a send in an agent's window, whichever dialect the send came through.

use domain::content::Digest;
use sha2::{Digest as _, Sha256};

/// The fingerprint of a send's words, however their ends are trimmed: the first eight bytes of a
/// SHA-256.
pub fn echo_digest(content: &str) -> Digest {
    let hash: [u8; 32] = Sha256::digest(content.trim().as_bytes()).into();
    Digest(hash.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_recognised_whatever_its_ends_look_like() {
        assert_eq!(echo_digest("hello"), echo_digest(" hello\n"));
        assert_ne!(echo_digest("hello"), echo_digest("hello!"));
    }
}
