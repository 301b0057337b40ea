//! The `uuid` of every SDK message, derived from what the message is about. It is the same for
//! every connection and every time the message is sent.

use domain::{Sequence, SessionId};
use sha2::{Digest as _, Sha256};

/// The uuid of the `place`th frame of a recorded event.
pub(super) fn of_event(session: &SessionId, sequence: Sequence, place: usize) -> String {
    of(&[session.as_str(), &sequence.0.to_string(), &place.to_string()])
}

/// A uuid of these words: version 8, which is "whatever its maker says".
pub(super) fn of(words: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for word in words {
        hasher.update(word.as_bytes());
        // A byte that cannot be in the others keeps "ab" + "c" apart from "a" + "bc".
        hasher.update([0xff]);
    }
    let hash: [u8; 32] = hasher.finalize().into();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for half in [byte >> 4, byte & 0x0f] {
            text.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: control/messages.1
    #[test]
    fn a_uuid_looks_like_one_and_tells_frames_apart() {
        let first = of_event(&"s".into(), Sequence(1), 0);
        assert_eq!(first.len(), 36);
        assert_eq!((&first[14..15], &first[8..9]), ("8", "-"));
        assert_eq!(first, of_event(&"s".into(), Sequence(1), 0));
        assert_ne!(first, of_event(&"s".into(), Sequence(1), 1));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
