//! Fingerprints. They are computed here so that the domain can recognise repeats without reading
//! them.
//!
//! Each is the first eight bytes of a SHA-256.

use domain::content::Digest;
use sha2::{Digest as _, Sha256};

use super::{AuthorWord, Time};

/// Recognises a message that came without an id when it is told again.
pub fn message_digest(role: AuthorWord, content: &str, created_at: Option<Time>) -> Digest {
    let time = created_at.map(|time| time.to_string()).unwrap_or_default();
    // A byte that cannot be in the others keeps "ab" + "c" apart from "a" + "bc".
    of(&[role.as_str().as_bytes(), &[0xff], time.as_bytes(), &[0xff], content.as_bytes()])
}

fn of(pieces: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update(piece);
    }
    let hash: [u8; 32] = hasher.finalize().into();
    let first = hash.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Digest(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_time_and_words_all_count() {
        let (user, agent) = (AuthorWord::User, AuthorWord::Assistant);
        let time = Time::parse("2026-03-19T10:15:30.000Z");
        let digest = message_digest(user, "x", time);
        assert_ne!(digest, message_digest(agent, "x", time));
        assert_ne!(digest, message_digest(user, "x", None));
        assert_ne!(digest, message_digest(user, "y", time));
    }
}
