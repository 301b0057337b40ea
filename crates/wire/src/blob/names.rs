//! The ids of sends that come through this dialect. Each holds the client's request id, so that
//! every connection, also after a restart, can say whose request waits in the queue.

use domain::{ConnectionId, MessageId};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "run_";
const HEX_DIGITS: usize = 16;

/// An id that no other connection makes, of the request that it came with.
pub(super) fn send(connection: &ConnectionId, count: u64, request: &str) -> MessageId {
    let hash: [u8; 32] = Sha256::digest(format!("{connection} {count}").as_bytes()).into();
    let mut name = String::from(PREFIX);
    for byte in &hash[..HEX_DIGITS / 2] {
        for half in [byte >> 4, byte & 0x0f] {
            name.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    name.push('_');
    name.push_str(request);
    name.into()
}

/// The client's own id of the request that a send came with; of a send from another dialect, the
/// send's.
pub(super) fn request(send: &MessageId) -> &str {
    let own = send.as_str();
    let made_here = own.strip_prefix(PREFIX).and_then(|rest| rest.split_at_checked(HEX_DIGITS));
    match made_here {
        Some((hex, rest)) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            rest.strip_prefix('_').unwrap_or(own)
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
        for other in ["m1", "run_", "run_xyz", "run_0123456789abcdef", "run_0123456789abcdéf"] {
            assert_eq!(request(&other.into()), other);
        }
    }
}
