//! Webchannel clients: their keys, and the spent nonces of each key.
//!
//! A key is stored sealed under its client's token, and only the token's hash is stored. The key
//! can therefore be read only while the client presents its token.
//!
//! **Invariant**: a spent nonce is on disk before its message is passed on. A nonce among the last
//! [`NONCES_REMEMBERED_MAX`] of its key is never accepted again, not even after a restart.
//!
//! Not here: the key exchange and the sealed content (`wire::webchannel`).

use std::net::IpAddr;

use domain::{CredentialId, Timestamp};
use sha2::{Digest as _, Sha256};
use store::{Credential, CredentialKind};
use wire::visitor::Recognised;
use wire::webchannel::seal::{KEY_BYTES, Key, NONCE_BYTES};
use wire::webchannel::{NONCES_REMEMBERED_MAX, TOKEN_LIFETIME_MS, is_paired};

use super::{Auth, Issued, PairRefused, issue, plain_name, secret};
use crate::records::{Office, RecordsFault};

/// What the key that seals a key is derived for.
const AT_REST: &[u8] = b"farhelm webchannel key at rest";
/// Each token seals one key, once.
const ONLY_NONCE: [u8; NONCE_BYTES] = [0; NONCE_BYTES];

impl Auth {
    /// Exchanges a code for a webchannel client's token, and keeps its key.
    pub async fn redeem_channel(
        &self,
        code: &str,
        name: &str,
        key: Option<[u8; KEY_BYTES]>,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<Result<Issued, PairRefused>, RecordsFault> {
        let (code, name) = (code.to_owned(), plain_name(name));
        let job = move |office: &mut Office| {
            let role = match office.pairing.redeem(&code, from, now) {
                Ok(role) => role,
                Err(refused) => return Ok(Err(refused)),
            };
            let issued = issue(office, CredentialKind::Webchannel, role, name, now)?;
            if let Some(key) = key {
                let kept = keep(office, &issued, &key);
                if kept.is_err() {
                    // A client that seals with what nobody else has would never be understood.
                    office.vault.revoke_credential(&issued.id, now)?;
                    let book = &office.book;
                    book.send_modify(|book| std::sync::Arc::make_mut(book).remove(&issued.id));
                }
                kept?;
            }
            Ok(Ok(issued))
        };
        self.records.ask(job).await
    }

    /// Who shows this token, with the key that was agreed on; `None` for nobody.
    pub async fn recognise(&self, token: String, now: Timestamp) -> Option<Recognised> {
        let principal = self.check(&token, now)?;
        if !is_paired(&principal) {
            return Some(Recognised { principal, key: None, expires_at: None });
        }
        let book = self.book.borrow().clone();
        let expires_at = book.find(&secret::hash(&token))?.expires_at();
        let id = principal.credential.clone();
        let kept = self.records.ask(move |office| Ok(office.vault.meta(&key_row(&id))?)).await;
        let key = match kept {
            Ok(Some(sealed)) if !sealed.is_empty() => Some(opened(&token, &sealed)?),
            Ok(_) => None,
            Err(fault) => {
                tracing::warn!(%fault, "could not read the key of a webchannel client");
                return None;
            }
        };
        Some(Recognised { principal, key, expires_at })
    }

    /// Notes a nonce for good. Whether it was new; `false` also when it could not be noted.
    pub async fn spend(&self, credential: &CredentialId, nonce: [u8; NONCE_BYTES]) -> bool {
        let id = credential.clone();
        let noted = self.records.ask(move |office| {
            let row = nonces_row(&id);
            let mut spent = office.vault.meta(&row)?.unwrap_or_default();
            if spent.chunks_exact(NONCE_BYTES).any(|known| known == nonce) {
                return Ok(false);
            }
            if spent.len() >= NONCES_REMEMBERED_MAX * NONCE_BYTES {
                spent.drain(..NONCE_BYTES);
            }
            spent.extend_from_slice(&nonce);
            office.vault.set_meta(&row, &spent)?;
            Ok(true)
        });
        noted.await.unwrap_or_else(|fault| {
            tracing::warn!(%fault, "could not record the nonce of a sealed message");
            false
        })
    }
}

/// When a credential ends by itself.
pub(super) fn expires_at(credential: &Credential) -> Option<Timestamp> {
    match credential.kind {
        CredentialKind::Token | CredentialKind::Device => None,
        CredentialKind::Webchannel => Some(credential.created_at.plus_ms(TOKEN_LIFETIME_MS)),
    }
}

/// Whether a credential opens anything.
pub(crate) fn is_valid(credential: &Credential, now: Timestamp) -> bool {
    let is_over = expires_at(credential).is_some_and(|at| at <= now);
    credential.revoked_at.is_none() && !is_over
}

/// The credential was revoked: nothing of its key remains.
pub(super) fn forget(office: &mut Office, id: &CredentialId) -> Result<(), RecordsFault> {
    for row in [key_row(id), nonces_row(id)] {
        if office.vault.meta(&row)?.is_some() {
            office.vault.set_meta(&row, &[])?;
        }
    }
    Ok(())
}

fn keep(office: &mut Office, issued: &Issued, key: &[u8; KEY_BYTES]) -> Result<(), RecordsFault> {
    let mut sealed = key.to_vec();
    rest_key(&issued.token).seal_in_place(ONLY_NONCE, &mut sealed);
    Ok(office.vault.set_meta(&key_row(&issued.id), &sealed)?)
}

fn opened(token: &str, sealed: &[u8]) -> Option<[u8; KEY_BYTES]> {
    rest_key(token).open(ONLY_NONCE, sealed)?.try_into().ok()
}

fn rest_key(token: &str) -> Key {
    let mut hash = Sha256::new();
    hash.update(AT_REST);
    hash.update(token.as_bytes());
    Key::from(<[u8; KEY_BYTES]>::from(hash.finalize()))
}

fn key_row(id: &CredentialId) -> String {
    format!("webchannel:{id}:key")
}

fn nonces_row(id: &CredentialId) -> String {
    format!("webchannel:{id}:nonces")
}

#[cfg(test)]
mod tests {
    use domain::Role;
    use store::Ledger as _;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);
    const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

    fn opened_on(disk: &store::MemoryDisk) -> Auth {
        Auth::open(disk.open().unwrap().vault().unwrap()).unwrap()
    }

    async fn paired(auth: &Auth, key: Option<[u8; KEY_BYTES]>) -> Issued {
        let code = auth.offer_code(Role::Operator, NOW).await.unwrap().code;
        let here = IpAddr::from([127, 0, 0, 1]);
        auth.redeem_channel(&code, "ui", key, here, NOW).await.unwrap().unwrap()
    }

    // spec: webchannel/tokens.3
    #[tokio::test]
    async fn a_key_outlives_a_restart_and_is_nowhere_readable_without_its_token() {
        let disk = store::MemoryDisk::default();
        let issued = paired(&opened_on(&disk), Some(KEY)).await;

        let auth = opened_on(&disk);
        let known = auth.recognise(issued.token.clone(), NOW).await.unwrap();
        assert_eq!((known.key, &known.principal.credential), (Some(KEY), &issued.id));
        assert_eq!(known.expires_at, Some(NOW.plus_ms(TOKEN_LIFETIME_MS)));
        let row = key_row(&issued.id);
        let kept = auth.records.ask(move |office| Ok(office.vault.meta(&row)?)).await;
        let kept = kept.unwrap().unwrap();
        assert!(!kept.windows(4).any(|some| some == &KEY[..4]));
        assert_eq!(opened("fh_another", &kept), None);
    }

    #[tokio::test]
    async fn a_client_without_a_key_and_a_token_of_another_kind_are_recognised_without_one() {
        let auth = opened_on(&store::MemoryDisk::default());
        let plain = paired(&auth, None).await;
        let token = auth.create(CredentialKind::Token, Role::Viewer, "v", NOW).await.unwrap();

        assert_eq!(auth.recognise(plain.token, NOW).await.unwrap().key, None);
        assert_eq!(auth.recognise(token.token, NOW).await.unwrap().expires_at, None);
        assert!(auth.recognise("fh_nobody".to_owned(), NOW).await.is_none());
    }

    #[tokio::test]
    async fn a_revoked_or_expired_client_is_nobody_and_its_key_is_gone() {
        let auth = opened_on(&store::MemoryDisk::default());
        let (one, other) = (paired(&auth, Some(KEY)).await, paired(&auth, Some(KEY)).await);
        assert!(auth.spend(&one.id, [1; NONCE_BYTES]).await);

        auth.revoke(&one.id, NOW).await.unwrap();
        assert!(auth.recognise(one.token, NOW).await.is_none());
        for row in [key_row(&one.id), nonces_row(&one.id)] {
            let kept = auth.records.ask(move |office| Ok(office.vault.meta(&row)?)).await;
            assert_eq!(kept.unwrap(), Some(vec![]));
        }
        let end = NOW.plus_ms(TOKEN_LIFETIME_MS);
        assert!(auth.recognise(other.token.clone(), end).await.is_none());
        assert!(auth.check(&other.token, end).is_none());
        let listed = auth.list().await.unwrap();
        assert!(!listed.iter().any(|it| is_valid(it, end)));
    }

    // spec: webchannel/sealing.6
    #[tokio::test]
    async fn a_nonce_is_taken_once_per_key_also_after_a_restart() {
        let disk = store::MemoryDisk::default();
        let auth = opened_on(&disk);
        let (one, other) = (paired(&auth, Some(KEY)).await, paired(&auth, Some(KEY)).await);
        assert!(auth.spend(&one.id, [1; NONCE_BYTES]).await);
        assert!(!auth.spend(&one.id, [1; NONCE_BYTES]).await);
        assert!(auth.spend(&other.id, [1; NONCE_BYTES]).await);

        let auth = opened_on(&disk);
        assert!(!auth.spend(&one.id, [1; NONCE_BYTES]).await);
        for number in 0..NONCES_REMEMBERED_MAX as u64 {
            let mut nonce = [2; NONCE_BYTES];
            nonce[..8].copy_from_slice(&number.to_le_bytes());
            assert!(auth.spend(&one.id, nonce).await);
        }
        // The bound was met: the oldest is forgotten, and nothing grew beyond it.
        assert!(auth.spend(&one.id, [1; NONCE_BYTES]).await);
        let row = nonces_row(&one.id);
        let kept = auth.records.ask(move |office| Ok(office.vault.meta(&row)?)).await;
        assert_eq!(kept.unwrap().unwrap().len(), NONCES_REMEMBERED_MAX * NONCE_BYTES);
    }
}
