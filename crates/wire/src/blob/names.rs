//! The ids of sends that come through this dialect. Each contains the client's request id, so that
//! every connection, also after a restart, can name the request that is queued.

use domain::{ConnectionId, MessageId};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "run_";
/// A fingerprint of the connection.
const CONNECTION_DIGITS: usize = 16;
/// Then the number of the send, in at least so many digits.
const COUNT_DIGITS: usize = 8;

/// An id that no other connection makes, of the request that it came with.
pub(super) fn send(connection: &ConnectionId, count: u64, request: &str) -> MessageId {
    format!("{}{count:0COUNT_DIGITS$x}_{request}", prefix(connection)).into()
}

/// Whether a send came through this connection.
pub(super) fn is_own(connection: &ConnectionId, send: &MessageId) -> bool {
    send.as_str().starts_with(PREFIX) && send.as_str().starts_with(&prefix(connection))
}

fn prefix(connection: &ConnectionId) -> String {
    let hash: [u8; 32] = Sha256::digest(connection.as_str().as_bytes()).into();
    let mut name = String::from(PREFIX);
    for byte in &hash[..CONNECTION_DIGITS / 2] {
        for half in [byte >> 4, byte & 0x0f] {
            name.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    name
}

/// The client's own id of the request that a send came with; of a send from another dialect, the
/// send's.
pub(super) fn request(send: &MessageId) -> &str {
    let own = send.as_str();
    let made_here = own.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
    match made_here {
        Some((hex, request))
            if hex.len() >= CONNECTION_DIGITS && hex.bytes().all(|it| it.is_ascii_hexdigit()) =>
        {
            request
        }
        Some(_) | None => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: blob/queue.2
    #[test]
    fn a_send_keeps_its_request() {
        let first = send(&"conn_1".into(), 1, "req-1_é");
        assert_eq!(request(&first), "req-1_é");
        assert_ne!(first, send(&"conn_1".into(), 2, "req-1_é"));
        assert_ne!(first, send(&"conn_2".into(), 1, "req-1_é"));
        let far = send(&"conn_1".into(), u64::MAX, "_");
        assert_eq!(request(&far), "_");
        for other in ["m1", "run_", "run_xyz", "run_0123456789abcdef", "run_0123456789abcdéf"] {
            assert_eq!(request(&other.into()), other);
        }
    }

    // spec: blob/events.1
    #[test]
    fn a_send_knows_its_connection() {
        let own = send(&"conn_1".into(), 1, "r");
        assert!(is_own(&"conn_1".into(), &own));
        assert!(!is_own(&"conn_2".into(), &own));
        assert!(!is_own(&"conn_1".into(), &"m1".into()));
    }
}
