//! The book: every valid credential in memory, so that no request waits for the database.
//!
//! **Invariant**: the one task that changes the database replaces the book in the same step, so a
//! revoked credential is in no later book.
//!
//! Not here: the database's rows (`store`), who replaces the book (`records`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{CredentialId, Principal, Role, Timestamp};
use store::Credential;

use super::secret::SecretHash;

/// Uses of a credential within this time are noted once.
pub(crate) const TOUCH_INTERVAL_MS: u64 = 60_000;

/// Every valid credential, by the hash of its secret.
#[derive(Debug, Clone, Default)]
pub(crate) struct Book {
    by_hash: HashMap<SecretHash, Arc<Entry>>,
    /// Of the same credentials: every open socket asks for its own after every change.
    ids: HashSet<CredentialId>,
}

/// A valid credential.
#[derive(Debug)]
pub(crate) struct Entry {
    id: CredentialId,
    role: Role,
    name: String,
    touched_ms: AtomicU64,
    /// `None`: until somebody revokes it.
    expires_at: Option<Timestamp>,
}

impl Book {
    /// The credentials among these that open something.
    pub(crate) fn new(credentials: &[Credential]) -> Self {
        let mut book = Self::default();
        for credential in credentials.iter().filter(|it| it.revoked_at.is_none()) {
            book.insert(credential);
        }
        book
    }

    pub(crate) fn insert(&mut self, credential: &Credential) {
        let entry = Entry {
            id: credential.id.clone(),
            role: credential.role,
            name: credential.name.clone(),
            touched_ms: AtomicU64::new(credential.last_used_at.unwrap_or_default().0),
            expires_at: super::channel::expires_at(credential),
        };
        self.ids.insert(credential.id.clone());
        self.by_hash.insert(credential.secret_hash, Arc::new(entry));
    }

    pub(crate) fn remove(&mut self, id: &CredentialId) {
        if self.ids.remove(id) {
            self.by_hash.retain(|_, entry| entry.id != *id);
        }
    }

    pub(crate) fn find(&self, hash: &SecretHash) -> Option<&Arc<Entry>> {
        self.by_hash.get(hash)
    }

    pub(crate) fn has(&self, id: &CredentialId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }
}

impl Entry {
    pub(crate) fn id(&self) -> &CredentialId {
        &self.id
    }

    /// Whether it still opens anything.
    pub(crate) fn is_good(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }

    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    pub(crate) fn principal(&self) -> Principal {
        Principal {
            credential: self.id.clone(),
            role: self.role,
            client: None,
            name: self.name.clone(),
        }
    }

    /// Whether this use is the one of its interval that is written down.
    pub(crate) fn touch(&self, now: Timestamp) -> bool {
        let touched = self.touched_ms.load(Ordering::Relaxed);
        let due = now.0 >= touched.saturating_add(TOUCH_INTERVAL_MS) || touched == 0;
        let swap = |next| {
            let order = Ordering::Relaxed;
            self.touched_ms.compare_exchange(touched, next, order, order).is_ok()
        };
        due && swap(now.0)
    }
}

#[cfg(test)]
mod tests {
    use store::CredentialKind;

    use super::*;

    #[test]
    fn a_revoked_credential_is_not_in_the_book() {
        let book =
            Book::new(&[credential("tok_a", [1; 32], None), credential("tok_b", [2; 32], Some(5))]);

        assert!(book.find(&[1; 32]).is_some());
        assert!(book.find(&[2; 32]).is_none());
        assert!(!book.has(&"tok_b".into()));
    }

    #[test]
    fn uses_within_an_interval_are_noted_once() {
        let book = Book::new(&[credential("tok_a", [1; 32], None)]);
        let entry = book.find(&[1; 32]).unwrap();

        assert!(entry.touch(Timestamp(1_000)));
        assert!(!entry.touch(Timestamp(1_000 + TOUCH_INTERVAL_MS - 1)));
        assert!(entry.touch(Timestamp(1_000 + TOUCH_INTERVAL_MS)));
    }

    // spec: webchannel/tokens.4
    #[test]
    fn a_webchannel_credential_ends_by_itself_and_others_do_not() {
        let mut paired = credential("web_a", [1; 32], None);
        paired.kind = CredentialKind::Webchannel;
        let book = Book::new(&[paired, credential("tok_b", [2; 32], None)]);
        let end = Timestamp(1 + wire::webchannel::TOKEN_LIFETIME_MS);

        let entry = book.find(&[1; 32]).unwrap();
        assert!(entry.is_good(Timestamp(end.0 - 1)));
        assert!(!entry.is_good(end));
        assert!(book.find(&[2; 32]).unwrap().is_good(Timestamp(u64::MAX)));
    }

    fn credential(id: &str, secret_hash: SecretHash, revoked_ms: Option<u64>) -> Credential {
        Credential {
            id: id.into(),
            kind: CredentialKind::Token,
            role: Role::Operator,
            name: "n".into(),
            secret_hash,
            created_at: Timestamp(1),
            last_used_at: None,
            revoked_at: revoked_ms.map(Timestamp),
        }
    }
}
