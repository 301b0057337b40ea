//! Secrets: random, shown once, stored only as hashes.
//!
//! **Invariant**: nothing in this crate stores or logs a secret. Lookups use its hash, so their
//! duration reveals nothing about a secret that is almost right.
//!
//! Not here: whose secret it is (`book`), where hashes are stored (`store`).

use sha2::{Digest, Sha256};

/// What every secret begins with, so that people and scanners recognise one.
pub const SECRET_PREFIX: &str = "fh_";
/// 256 bits.
const SECRET_BYTES: usize = 32;
/// Enough that two ids never meet.
const ID_BYTES: usize = 8;

/// A SHA-256 hash of a secret.
pub(crate) type SecretHash = [u8; 32];

/// The operating system gave no randomness.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the operating system gave no random bytes ({0}); try again")]
pub struct NoRandomness(String);

/// A new secret.
pub(crate) fn secret() -> Result<String, NoRandomness> {
    Ok(format!("{SECRET_PREFIX}{}", hex(&random::<SECRET_BYTES>()?)))
}

/// A new id: `prefix_0123456789abcdef`.
pub(crate) fn id(prefix: &str) -> Result<String, NoRandomness> {
    Ok(format!("{prefix}_{}", hex(&random::<ID_BYTES>()?)))
}

/// What chance begins with, for whoever may not ask for it themselves.
pub(crate) fn seed() -> Result<[u8; 32], NoRandomness> {
    random()
}

/// Six digits, each as likely as the others.
pub(crate) fn six_digits() -> Result<String, NoRandomness> {
    const CODES: u32 = 1_000_000;
    // The last, incomplete stretch of the range would make small codes likelier.
    const FAIR: u32 = u32::MAX - u32::MAX % CODES;
    loop {
        let drawn = u32::from_le_bytes(random()?);
        if drawn < FAIR {
            return Ok(format!("{:06}", drawn % CODES));
        }
    }
}

/// What is stored and looked up in place of a secret.
pub(crate) fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| NoRandomness(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_its_prefix_and_256_bits() {
        let (one, other) = (secret().unwrap(), secret().unwrap());

        assert!(one.starts_with(SECRET_PREFIX));
        assert_eq!(one.len(), SECRET_PREFIX.len() + 64);
        assert_ne!(one, other);
    }

    #[test]
    fn a_code_is_six_digits() {
        for _ in 0..100 {
            let code = six_digits().unwrap();
            assert!(code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()), "{code}");
        }
    }
}
