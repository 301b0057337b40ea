//! Pairing: a code and a public key in, a token and a public key out.
//!
//! **Invariant**: an unusable public key does not use up a code.
//!
//! Not here: which codes are valid, and who tried too often (`server`).

use domain::content::Failure;
use domain::{Principal, Timestamp};
use serde_json::{Value, json};

use super::{Asked, Connection, Known, TOKEN_LIFETIME_MS, seal};
use crate::visitor::Act;

/// What a client that named itself nothing is called in lists.
const UNNAMED_CLIENT: &str = "webchannel";
/// Bytes of a code that are looked at; people type spaces.
const CODE_BYTES_MAX: usize = 64;

/// A pairing on its way.
#[derive(Debug)]
pub(super) struct Pairing {
    request: Option<String>,
    session: String,
    /// The key, and our public half of it.
    agreed: Option<(seal::Key, [u8; seal::KEY_BYTES])>,
}

impl Connection {
    pub(super) fn on_pairing(
        &mut self,
        request: Option<String>,
        session: String,
        code: Option<String>,
        public: Option<&Value>,
        name: Option<String>,
    ) -> Vec<Act> {
        let refuse = |connection: &Self, code: &str, words: &str| {
            vec![Act::Send(connection.writer.error(request.as_deref(), code, words))]
        };
        // People type what they see printed in groups.
        let is_code = |letter: &char| !letter.is_whitespace() && *letter != '-';
        let code = code.filter(|code| code.len() <= CODE_BYTES_MAX).unwrap_or_default();
        let code: String = code.chars().filter(is_code).collect();
        if code.is_empty() {
            let words = "A pairing_request needs a pairing_code; get one with farhelm pair";
            return refuse(self, "pairing_missing_code", words);
        }
        let agreed = match public.map(|public| self.agree(public)) {
            None => None,
            Some(Some(agreed)) => Some(agreed),
            Some(None) => {
                let words = "client_pub is not an X25519 public key (32 bytes, base64url). A \
                    browser can create one only on a page served over HTTPS or from localhost";
                return refuse(self, "pairing_invalid_client_pub", words);
            }
        };
        let key = agreed.as_ref().map(|(key, _)| key.bytes());
        let name = name.filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or_else(|| UNNAMED_CLIENT.to_owned());
        let ticket = self.ticket(Asked::Pair(Box::new(Pairing { request, session, agreed })));
        self.busy = Some(ticket);
        vec![Act::Pair { code, name, key, ticket }]
    }

    pub(super) fn on_paired(
        &mut self,
        pairing: Pairing,
        paired: Result<(Principal, String), Failure>,
        now: Timestamp,
    ) -> Vec<Act> {
        let Pairing { request, session, agreed } = pairing;
        let (principal, token) = match paired {
            Ok(paired) => paired,
            Err(failure) => {
                let code = match failure.code.as_str() {
                    "pairing_code_invalid" => "pairing_invalid_code",
                    "rate_limited" => "pairing_locked_out",
                    "pairing_failed" => "pairing_disabled",
                    _ => "pairing_internal_error",
                };
                let error = self.writer.error(request.as_deref(), code, &failure.message);
                return vec![Act::Send(error)];
            }
        };
        self.name_session(&session);
        let mut payload = json!({
            "ok": true, "client_id": principal.credential, "access_token": token,
            "token_type": "Bearer", "expires_in": TOKEN_LIFETIME_MS / 1_000,
            "e2e_required": agreed.is_some(),
        });
        if let Some((key, public)) = &agreed {
            // The same once more under the key: newer clients look for it there.
            let mut sealed = payload.to_string().into_bytes();
            let nonce = self.chance.nonce();
            key.seal_in_place(nonce, &mut sealed);
            payload["e2e"] = json!({
                "alg": seal::ALGORITHM, "agent_pub": seal::encode(public),
                "nonce": seal::encode(&nonce), "ciphertext": seal::encode(&sealed),
            });
        }
        let key = agreed.map(|(key, _)| key);
        let expires_at = Some(now.plus_ms(TOKEN_LIFETIME_MS));
        self.known = Some(Known { token, principal, key, expires_at });
        let payload = payload.to_string();
        let told = self.writer.write("pairing_result", request.as_deref(), payload.as_bytes());
        let mut acts = vec![Act::Send(told)];
        self.may_speak = true;
        match self.session.clone() {
            // It stays where it is: only what is said to it changes.
            Some(session) => acts.push(self.follow(session)),
            None => acts.extend(self.find_session()),
        }
        acts
    }

    /// A key pair of our own for this client alone, and the key that follows from both.
    fn agree(&mut self, public: &Value) -> Option<(seal::Key, [u8; seal::KEY_BYTES])> {
        let theirs = seal::decode_exactly(public.as_str()?)?;
        let own = self.chance.secret();
        Some((seal::Key::agree(&own, &theirs)?, own.public()))
    }
}
