//! Names that drivers derive, so that the same attempt always gets the same name.

use domain::{MessageId, RunId, Sequence, SessionId};
use sha2::{Digest, Sha256};

/// Bytes of a message's id that its run's id repeats: ids on the wire have a bound.
const RUN_NAME_BYTES_MAX: usize = 64;

/// The run that an attempt at a send begins.
pub fn run_id(message: &MessageId, attempt: Sequence) -> RunId {
    let name = message.as_str();
    let end = (0..=RUN_NAME_BYTES_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    format!("run-{}-{attempt}", &name[..end.unwrap_or(0)]).into()
}

/// An id in the form of a UUID for an attempt at a send, for agents that want one and keep it:
/// that is how it is found again in their own record.
pub fn uuid_of(session: &SessionId, message: &MessageId, attempt: Sequence) -> String {
    let mut hash = Sha256::new();
    for piece in [session.as_str(), message.as_str(), &attempt.to_string()] {
        hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(piece.as_bytes());
    }
    let digest = hash.finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    // Version 8 (made by a rule of our own), variant 1.
    bytes[6] = bytes[6] & 0x0F | 0x80;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_attempt_has_the_same_uuid_and_another_has_another() {
        let (session, message) = (SessionId::from("sess_1"), MessageId::from("m1"));
        let first = uuid_of(&session, &message, Sequence(4));
        assert_eq!(first, uuid_of(&session, &message, Sequence(4)));
        assert_ne!(first, uuid_of(&session, &message, Sequence(5)));
        assert_ne!(first, uuid_of(&session, &"m2".into(), Sequence(4)));
        assert_eq!(first.len(), 36);
        assert_eq!(&first[14..15], "8");
    }

    #[test]
    fn the_name_of_a_run_is_cut_at_a_character() {
        let long = "ä".repeat(100);
        assert_eq!(
            run_id(&long.as_str().into(), Sequence(1)).as_str(),
            format!("run-{}-1", "ä".repeat(32))
        );
    }
}
