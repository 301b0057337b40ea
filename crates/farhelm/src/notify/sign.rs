//! HMAC-SHA256 (RFC 2104), so that the receiver of a notification can verify its sender.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// The signature of `timestamp.body`, in lower-case hexadecimal.
pub(super) fn signature(secret: &[u8], timestamp_s: u64, body: &[u8]) -> String {
    let timestamp = format!("{timestamp_s}.");
    hex(authenticate(secret, &[timestamp.as_bytes(), body]))
}

fn hex(bytes: [u8; 32]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn authenticate(secret: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; BLOCK_BYTES];
    if secret.len() > BLOCK_BYTES {
        key[..32].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let mut inner = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let outer = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_cases_of_rfc_4231() {
        assert_eq!(
            hex(authenticate(b"Jefe", &[b"what do ya want ", b"for nothing?"])),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(authenticate(
                &[0xaa; 131],
                &[b"Test Using Larger Than Block-Size Key - Hash Key First"]
            )),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn the_time_is_signed_with_the_body() {
        let signed = signature(b"Jefe", 7, b"{}");
        assert_eq!(signed, hex(authenticate(b"Jefe", &[b"7.{}"])));
        assert_ne!(signed, signature(b"Jefe", 8, b"{}"));
    }
}
