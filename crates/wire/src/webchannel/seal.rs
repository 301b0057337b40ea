//! The cryptography of webchannel: a key per client from X25519, and frames sealed with it.
//!
//! `key = SHA-256("webchannel-e2e-v1" ‖ shared secret)`; a frame is ChaCha20-Poly1305 under that
//! key with a random nonce of 12 bytes, no associated data, and its tag at the end.
//!
//! **Invariant**: randomness comes from outside: the caller that creates a [`Chance`] provides its
//! seed.
//!
//! Not here: which client has which key (`server`), refusing spent nonces (`server`).

use std::fmt;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chacha20poly1305::aead::{Aead as _, AeadInOut as _};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _};
use sha2::{Digest as _, Sha256};
use x25519_dalek::{PublicKey, StaticSecret};

/// What envelopes call it.
pub const ALGORITHM: &str = "x25519-chacha20poly1305-v1";
/// Bytes of a key, of either half of a key pair, and of a seed.
pub const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;
/// What a key is derived for.
const CONTEXT: &[u8] = b"webchannel-e2e-v1";

/// Written without padding, read with or without it.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What one client and the relay seal with.
#[derive(Clone)]
pub struct Key {
    bytes: [u8; KEY_BYTES],
    cipher: ChaCha20Poly1305,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl From<[u8; KEY_BYTES]> for Key {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        Self { bytes, cipher: ChaCha20Poly1305::new(&bytes.into()) }
    }
}

impl Key {
    /// The key that the two halves share. `None` for a public half that contributes nothing: one
    /// of low order, with which anybody would know the key.
    pub fn agree(own: &Secret, theirs: &[u8; KEY_BYTES]) -> Option<Self> {
        let shared = own.0.diffie_hellman(&PublicKey::from(*theirs));
        if !shared.was_contributory() {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update(CONTEXT);
        hash.update(shared.as_bytes());
        Some(Self::from(<[u8; KEY_BYTES]>::from(hash.finalize())))
    }

    /// The key itself, to be kept.
    pub fn bytes(&self) -> [u8; KEY_BYTES] {
        self.bytes
    }

    /// Turns what is in the buffer into ciphertext, with its tag at the end.
    pub fn seal_in_place(&self, nonce: [u8; NONCE_BYTES], buffer: &mut Vec<u8>) {
        // Fails only beyond 256 GiB.
        let sealed = self.cipher.encrypt_in_place(&nonce.into(), b"", buffer);
        if sealed.is_err() {
            buffer.clear();
        }
    }

    /// What was sealed; `None` when it was not sealed with this key and nonce, or was changed.
    pub fn open(&self, nonce: [u8; NONCE_BYTES], ciphertext: &[u8]) -> Option<Vec<u8>> {
        self.cipher.decrypt(&nonce.into(), ciphertext).ok()
    }
}

/// The private half of a key pair.
pub struct Secret(StaticSecret);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<[u8; KEY_BYTES]> for Secret {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        Self(StaticSecret::from(bytes))
    }
}

impl Secret {
    /// The half that is told.
    pub fn public(&self) -> [u8; KEY_BYTES] {
        PublicKey::from(&self.0).to_bytes()
    }
}

/// Bytes that nobody can foresee who does not know the seed.
pub struct Chance {
    seed: [u8; KEY_BYTES],
    drawn: u64,
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance(…)")
    }
}

impl Chance {
    /// A seed that no other has: from the operating system, but for tests.
    pub fn new(seed: [u8; KEY_BYTES]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// For a nonce.
    pub fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&self.block()[..NONCE_BYTES]);
        nonce
    }

    /// For a key pair.
    pub fn secret(&mut self) -> Secret {
        Secret::from(self.block())
    }

    fn block(&mut self) -> [u8; KEY_BYTES] {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(self.drawn.to_le_bytes());
        hash.finalize().into()
    }
}

/// As envelopes write bytes: base64url without padding.
pub fn encode(bytes: &[u8]) -> String {
    BASE64URL.encode(bytes)
}

/// The same, at the end of a text.
pub fn encode_into(bytes: &[u8], text: &mut String) {
    BASE64URL.encode_string(bytes, text);
}

/// Bytes of any number.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64URL.decode(text).ok()
}

/// Bytes of this number.
pub fn decode_exactly<const N: usize>(text: &str) -> Option<[u8; N]> {
    // The decoder would make room for whatever somebody sent.
    if text.len() > N.div_ceil(3) * 4 {
        return None;
    }
    decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests;
